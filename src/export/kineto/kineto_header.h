#pragma once

#include "export/kineto/kineto_file.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Everything in front of the events: the machine, the rank, what else the trace says of itself.
/// `base_ns` is the clock's value at time 0.
void write_kineto_header(const Trace& trace, std::int64_t base_ns, KinetoFile& file);

}  // namespace foretrace

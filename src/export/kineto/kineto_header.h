#pragma once

#include "export/kineto/kineto_file.h"
#include "foretrace/trace.h"

namespace foretrace {

/// Writes everything before the events: the machine, the rank, other metadata of the trace.
/// `base_ns` is the value of the clock at time 0.
void write_kineto_header(const Trace& trace, std::int64_t base_ns, KinetoFile& file);

}  // namespace foretrace

#pragma once

#include <string>
#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

/// The bytes that write_ftrace() writes and read_ftrace() reads. from_ftrace() throws TraceError if
/// they are damaged or describe an impossible trace.
std::string to_ftrace(const Trace& trace);
Trace from_ftrace(std::string_view file);

}  // namespace foretrace

#pragma once

#include <string>
#include <string_view>

#include "foretrace/trace.h"

namespace foretrace {

/// What write_ftrace() writes and read_ftrace() reads, without a file around it.
std::string to_ftrace(const Trace& trace);
Trace from_ftrace(std::string_view file);

}  // namespace foretrace

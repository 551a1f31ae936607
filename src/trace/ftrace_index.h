#pragma once

#include <string_view>
#include <vector>

#include "trace/ftrace_layout.h"

namespace foretrace::ftrace {

/// Reads the index at the end of `file`, which is a whole .ftrace file. Throws TraceError if the
/// index is damaged, a section lies outside the file, or rows or sizes exceed the limits for a file
/// of this size.
std::vector<Table> read_index(std::string_view file);

}  // namespace foretrace::ftrace

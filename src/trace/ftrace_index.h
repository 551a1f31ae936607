#pragma once

#include <string_view>
#include <vector>

#include "trace/ftrace_layout.h"

namespace foretrace::ftrace {

/// The index of a whole file. Once it is read, every section lies inside the file, and rows and
/// sizes are within the limits of the file's size. Throws TraceError.
std::vector<Table> read_index(std::string_view file);

}  // namespace foretrace::ftrace

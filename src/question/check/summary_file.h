#pragma once

#include <string>

namespace foretrace {

/// Appends to the file instead of replacing it, because other steps of a build may be writing to it
/// at the same time. What does not fit into GitHub's limit is cut after a whole line. If the whole
/// text cannot be written, the file keeps its old size. Throws Error.
void append_summary(const std::string& path, const std::string& text);

}  // namespace foretrace

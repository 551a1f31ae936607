#pragma once

// Reads JSON that people wrote by hand: errors have a line and a column, and a duplicate key is an
// error.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

/// Throws Error `line 3, column 7: ...`, also if the text is more than 64 levels deep.
nlohmann::json parse_json_text(std::string_view text);

/// Returns the whole file, at most 16 MB. Throws Error without the path.
std::string read_text_file(const std::string& path);

/// Reads a file of at most 16 MB. Throws Error that begins with the path.
nlohmann::json read_json_file(const std::string& path);

}  // namespace foretrace

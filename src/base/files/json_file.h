#pragma once

// Reads a JSON text the way a person who wrote it by hand wants it read: errors have a line and a
// column, and a key that is given twice is an error.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

/// Throws Error: `line 3, column 7: expected ...`. At most 64 levels deep.
nlohmann::json parse_json_text(std::string_view text);

/// The whole file, at most 16 MB. Throws Error without the path.
std::string read_text_file(const std::string& path);

/// At most 16 MB. Throws Error that begins with the path.
nlohmann::json read_json_file(const std::string& path);

}  // namespace foretrace

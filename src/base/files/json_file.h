#pragma once

// Reads files that people wrote by hand.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

/// Like parse_json() of base/json_text.h, for JSON that people wrote by hand: a duplicate key is an
/// error, too.
nlohmann::json parse_json_text(std::string_view text);

/// Returns the whole file, at most 16 MB. Throws Error without the path.
std::string read_text_file(const std::string& path);

/// Reads a file of at most 16 MB by parse_json_text(). Throws Error that begins with the path.
nlohmann::json read_json_file(const std::string& path);

}  // namespace foretrace

#pragma once

// Reads files that people wrote by hand.

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace foretrace {

/// Returns the whole file, at most 16 MB. Throws Error without the path.
std::string read_text_file(const std::string& path);

/// Reads a file of at most 16 MB by parse_json_text(). Throws Error that begins with the path.
nlohmann::json read_json_file(const std::string& path);

}  // namespace foretrace

#pragma once

// JSON from text and to text. The parser and the serializer are large templates: they are compiled
// here once instead of in each file that uses them.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

/// Returns `text` as a JSON string, including quotes; bytes that are not UTF-8 become replacement
/// characters.
std::string json_string(std::string_view text);

/// Returns the value on one line; bytes as in json_string().
std::string json_line(const nlohmann::json& value);
std::string json_line(const nlohmann::ordered_json& value);

/// Returns the value on several lines, indented by two spaces a level; see json_line().
std::string indented_json(const nlohmann::json& value);
std::string indented_json(const nlohmann::ordered_json& value);

/// `Json` is nlohmann::json or nlohmann::ordered_json. Throws nlohmann::json::parse_error.
template <class Json>
Json parse_json(std::string_view text);

/// Like parse_json(), but a text that is not JSON gives a value that is_discarded().
template <class Json>
Json try_parse_json(std::string_view text);

/// Reads a whole number, which may be written as 2.0. Throws Error if the value is another one or
/// does not fit.
template <class Json>
std::int64_t whole_number(const Json& value);

}  // namespace foretrace

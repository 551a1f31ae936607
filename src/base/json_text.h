#pragma once

// JSON from text and to text. The parser and the serializer are large templates: they are compiled
// here once instead of in each file that uses them.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace foretrace {

/// No text that is read, JSON or other, may nest values deeper than this. Whatever copies, prints
/// or walks a value recurses once a level.
inline constexpr int kMaxNesting = 64;

/// Whether JSON nests deeper than kMaxNesting. Linear; the text need not be JSON.
bool nests_too_deeply(std::string_view json);

/// Returns `text` as a JSON string, including quotes; bytes that are not UTF-8 become replacement
/// characters.
std::string json_string(std::string_view text);

/// Returns the value on one line; bytes as in json_string().
std::string json_line(const nlohmann::json& value);
std::string json_line(const nlohmann::ordered_json& value);

/// Returns the value on several lines, indented by two spaces a level; see json_line().
std::string indented_json(const nlohmann::json& value);
std::string indented_json(const nlohmann::ordered_json& value);

/// `Json` is nlohmann::json or nlohmann::ordered_json. Throws Error `line 3, column 7: ...`, also
/// if the text nests too deeply or has a zero byte, behind which the parser would ignore the rest.
template <class Json>
Json parse_json(std::string_view text);

/// Like parse_json(), but a text that it refuses gives a value that is_discarded().
template <class Json>
Json try_parse_json(std::string_view text);

/// Reads a whole number, which may be written as 2.0. Throws Error if the value is another one or
/// does not fit.
template <class Json>
std::int64_t whole_number(const Json& value);

}  // namespace foretrace

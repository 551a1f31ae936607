#include "base/json_text.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"

namespace foretrace {
namespace {

template <class Json>
std::string text_of(const Json& value, int indentation) {
  return value.dump(indentation, ' ', false, Json::error_handler_t::replace);
}

/// Returns line and column of the character at `offset`, counted from 1.
std::string line_and_column(std::string_view text, std::size_t offset) {
  std::size_t line = 1;
  std::size_t column = 1;
  for (std::size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') ++line, column = 1;
    // A character of several bytes counts once.
    else if ((static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80U)
      ++column;
  }
  return fmt::format("line {}, column {}", line, column);
}

/// The library's message without its own numbering: "unexpected end of input; expected ']'".
std::string reason_of(const nlohmann::json::exception& error) {
  std::string text = error.what();
  const std::size_t dash = text.find(" - ");
  if (dash != std::string::npos) return text.substr(dash + 3);
  const std::size_t colon = text.rfind(": ");
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace

bool nests_too_deeply(std::string_view json) {
  int depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_text = !in_text;
    if (in_text && c == '\\') ++i;
    if (in_text) continue;
    if (c == ']' || c == '}') --depth;
    if ((c == '[' || c == '{') && ++depth > kMaxNesting) return true;
  }
  return false;
}

std::string json_string(std::string_view text) { return json_line(nlohmann::json(text)); }

std::string json_line(const nlohmann::json& value) { return text_of(value, -1); }
std::string json_line(const nlohmann::ordered_json& value) { return text_of(value, -1); }

std::string indented_json(const nlohmann::json& value) { return text_of(value, 2); }
std::string indented_json(const nlohmann::ordered_json& value) { return text_of(value, 2); }

template <class Json>
Json parse_json(std::string_view text) {
  if (const std::size_t zero = text.find('\0'); zero != text.npos)
    throw Error(line_and_column(text, zero) + ": must be JSON, got a byte that is 0");
  if (nests_too_deeply(text))
    throw Error(fmt::format("must be at most {} levels deep", kMaxNesting));
  try {
    return Json::parse(text);
  } catch (const typename Json::parse_error& error) {
    throw Error(fmt::format("{}: must be JSON, got {}",
                            line_and_column(text, error.byte > 0 ? error.byte - 1 : 0),
                            reason_of(error)));
  } catch (const typename Json::out_of_range&) {
    throw Error("must have numbers that fit 64 bits");
  }
}
template nlohmann::json parse_json(std::string_view text);
template nlohmann::ordered_json parse_json(std::string_view text);

template <class Json>
Json try_parse_json(std::string_view text) {
  if (nests_too_deeply(text)) return typename Json::value_t{Json::value_t::discarded};
  return Json::parse(text, nullptr, false);
}
template nlohmann::json try_parse_json(std::string_view text);
template nlohmann::ordered_json try_parse_json(std::string_view text);

template <class Json>
std::int64_t whole_number(const Json& value) {
  if (value.is_number_unsigned() && value.template get<std::uint64_t>() > INT64_MAX)
    throw Error("must be at most 9223372036854775807, got " + json_line(value));
  if (value.is_number_float()) {  // JSON has only one kind of number, so 2.0 is as whole as 2.
    const auto number = value.template get<double>();
    if (std::floor(number) != number || std::abs(number) > 9e15)
      throw Error("must be a whole number");
    return static_cast<std::int64_t>(number);
  }
  if (!value.is_number_integer()) throw Error("must be a whole number");
  return value.template get<std::int64_t>();
}
template std::int64_t whole_number(const nlohmann::json& value);
template std::int64_t whole_number(const nlohmann::ordered_json& value);

}  // namespace foretrace

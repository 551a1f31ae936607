#include "base/json_text.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"

namespace foretrace {
namespace {

template <class Json>
std::string text_of(const Json& value, int indentation) {
  return value.dump(indentation, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string json_string(std::string_view text) { return json_line(nlohmann::json(text)); }

std::string json_line(const nlohmann::json& value) { return text_of(value, -1); }
std::string json_line(const nlohmann::ordered_json& value) { return text_of(value, -1); }

std::string indented_json(const nlohmann::json& value) { return text_of(value, 2); }
std::string indented_json(const nlohmann::ordered_json& value) { return text_of(value, 2); }

template <class Json>
Json parse_json(std::string_view text) {
  return Json::parse(text);
}
template nlohmann::json parse_json(std::string_view text);
template nlohmann::ordered_json parse_json(std::string_view text);

template <class Json>
Json try_parse_json(std::string_view text) {
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

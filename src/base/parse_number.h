#pragma once

// Numbers that are the whole of a text.

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace foretrace {

/// The number that `text` is, in the syntax of std::from_chars() in base 10: no blanks, no '+'.
/// nullopt if any other text comes with it, or if `Number` cannot hold it. A floating-point number
/// may be infinite or not a number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace foretrace

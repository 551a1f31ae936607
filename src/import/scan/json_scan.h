#pragma once

// Finds where the values of a JSON text begin and end, without building anything: a value is a span
// of the text, decoded only on demand. The text must be followed by TextWindow::kPadding bytes of
// 0.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "import/scan/json_blocks.h"

namespace foretrace {

enum class ValueKind : std::uint8_t { none, text, number, literal, array, object };

/// The text between the quotes; for any other value all of it.
struct JsonValue {
  const char* begin = nullptr;
  std::uint32_t size = 0;
  ValueKind kind = ValueKind::none;
  bool escaped = false;  ///< Has a backslash.
  bool non_ascii = false;

  std::string_view view() const { return {begin, size}; }
};

/// Errors in a text that is readable nevertheless.
struct JsonOddities {
  std::int64_t control_characters = 0;
  std::int64_t unescaped_quotes = 0;
  std::int64_t trailing_commas = 0;
  std::int64_t no_numbers = 0;  ///< NaN, Infinity.
};

/// A position in the text. Every member that returns a bool returns whether it found what it looked
/// for; if not, `ran_out` is set if only the text in the window ended.
class JsonCursor {
 public:
  static constexpr int kDeepest = 256;

  JsonCursor(const char* from, const char* to) : at(from), end(to) {}

  void skip_space() {
    while (static_cast<unsigned char>(*at) <= ' ' && is_space(*at)) ++at;
  }

  /// The next character after white space, 0 at the end.
  char peek() {
    skip_space();
    if (at >= end) ran_out = true;
    return *at;
  }

  /// Scans a text, when `at` is at its opening quote.
  bool scan_text(JsonValue& value) {
    // Most texts are keys and short names.
    const TextBits bits = look_at_text(at + 1);
    const auto stop = static_cast<std::uint32_t>(std::countr_zero(bits.stops));
    if (bits.stops == 0 || at[1 + stop] != '"' || at + 1 + stop >= end || lenient)
      return scan_any_text(value);
    value = {.begin = at + 1,
             .size = stop,
             .kind = ValueKind::text,
             .escaped = false,
             .non_ascii = (bits.high & ((1U << stop) - 1)) != 0};
    at += stop + 2;
    return true;
  }
  /// Scans any value. Arrays and objects may nest kDeepest levels; if they nest deeper, `too_deep`
  /// is set.
  bool scan_value(JsonValue& value);

  const char* at;
  const char* end;
  bool ran_out = false;
  bool too_deep = false;
  /// A quote ends a text only where the text may end: for names with quotes that are not escaped.
  /// Slow.
  bool lenient = false;
  bool in_key = false;  ///< For `lenient`: whether the text is a key.
  JsonOddities odd;

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  bool scan_any_text(JsonValue& value);
  bool ends_text(const char* behind_quote) const;
  bool scan_container(JsonValue& value);
  bool scan_scalar(JsonValue& value);
};

/// The text without escapes and with every invalid UTF-8 byte replaced by U+FFFD; increments
/// `invalid` if there was one.
std::string decode_text(const JsonValue& value, std::int64_t& invalid);
/// The same for text that never was JSON.
std::string valid_text(std::string_view text, std::int64_t& invalid);

/// The value modulo 2^64; 0 if there are no digits. Signs and anything after the digits are
/// accepted, so that "12", "-3" and 7.0 all work.
std::int64_t to_integer(const JsonValue& value);
/// Whether to_integer() would use any digit.
bool is_integer(const JsonValue& value);

/// A decimal number of microseconds, exactly, as nanoseconds. False if it is not a finite number of
/// at most `most`.
struct ExactTime {
  std::int64_t ns = 0;
  bool whole_us = true;
};
bool to_nanoseconds(const JsonValue& value, std::int64_t most, ExactTime& time);

}  // namespace foretrace

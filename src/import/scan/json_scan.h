#pragma once

// Finds where the values of a JSON text begin and end, without building anything: a value is a span
// of the text, decoded only on demand. TextWindow::kPadding zero bytes must follow the text.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "import/scan/json_blocks.h"

namespace foretrace {

enum class ValueKind : std::uint8_t { none, text, number, literal, array, object };

/// A span of the text: for a text, the characters between its quotes; for other values, all of
/// them.
struct JsonValue {
  const char* begin = nullptr;
  std::uint32_t size = 0;
  ValueKind kind = ValueKind::none;
  bool escaped = false;  ///< Whether it contains a backslash.
  bool non_ascii = false;

  std::string_view view() const { return {begin, size}; }
};

/// Counts of errors that do not prevent reading the text.
struct JsonOddities {
  std::int64_t control_characters = 0;
  std::int64_t unescaped_quotes = 0;
  std::int64_t trailing_commas = 0;
  std::int64_t no_numbers = 0;  ///< NaN, Infinity.
};

/// A position in the text. Every member that returns a bool returns false if it does not find what
/// it is called for. Then `ran_out` tells whether this is only because the text in the window
/// ended.
class JsonCursor {
 public:
  JsonCursor(const char* from, const char* to) : at(from), end(to) {}

  void skip_space() {
    while (static_cast<unsigned char>(*at) <= ' ' && is_space(*at)) ++at;
  }

  /// The next character after white space; 0 at the end.
  char peek() {
    skip_space();
    if (at >= end) ran_out = true;
    return *at;
  }

  /// Scans a text. REQUIRES: `at` is at its opening quote.
  bool scan_text(JsonValue& value) {
    // Fast path: most texts are keys and short names.
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
  /// Scans any value. Arrays and objects may nest kMaxNesting levels; if they nest deeper,
  /// `too_deep` is set.
  bool scan_value(JsonValue& value);

  const char* at;
  const char* end;
  bool ran_out = false;
  bool too_deep = false;
  /// Accept unescaped quotes in texts: a quote ends a text only if a separator follows. Slow.
  bool lenient = false;
  bool in_key = false;  ///< Whether the text is a key; only `lenient` scanning uses it.
  JsonOddities odd;

 private:
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
  bool scan_any_text(JsonValue& value);
  bool ends_text(const char* behind_quote) const;
  bool scan_container(JsonValue& value);
  bool scan_scalar(JsonValue& value);
};

/// Decodes escapes and replaces every invalid UTF-8 byte by U+FFFD. Increments `invalid` once if
/// there are any invalid bytes.
std::string decode_text(const JsonValue& value, std::int64_t& invalid);
/// The same for a text outside JSON, which has no escapes.
std::string valid_text(std::string_view text, std::int64_t& invalid);
/// Appends a code point.
void append_utf8(std::uint32_t code, std::string& out);

/// The value modulo 2^64; 0 if there are no digits. Accepts a sign and ignores anything after the
/// digits, so that "12", "-3" and 7.0 all work.
std::int64_t to_integer(const JsonValue& value);
/// Whether to_integer() would use any digit.
bool is_integer(const JsonValue& value);

struct ExactTime {
  std::int64_t ns = 0;
  bool whole_us = true;
};
/// Converts a decimal number of microseconds to nanoseconds, without floating point. Returns false
/// unless it is a finite number of at most `most` nanoseconds.
bool to_nanoseconds(const JsonValue& value, std::int64_t most, ExactTime& time);

/// Throws TraceError if a cursor found values that nest too deeply.
void check_depth(bool too_deep, std::int64_t offset);

}  // namespace foretrace

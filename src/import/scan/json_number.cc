
#include "import/scan/json_scan.h"

namespace foretrace {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// A decimal number as digits * 10^exponent. At most 18 digits are kept; the others only count in
/// the exponent.
struct Decimal {
  std::int64_t digits = 0;
  std::int64_t exponent = 0;
  bool round_up = false;  ///< Whether the first dropped digit is 5 or more.
};

/// Parses an unsigned number. Returns false if the text is not a number.
bool read_decimal(const char* at, const char* end, Decimal& number) {
  int kept = 0;
  bool any = false;
  bool dropped = false;
  bool in_fraction = false;
  for (; at < end; ++at) {
    if (*at == '.' && !in_fraction) {
      in_fraction = true;
      continue;
    }
    if (!is_digit(*at)) break;
    any = true;
    if (kept < 18) {
      number.digits = number.digits * 10 + (*at - '0');
      if (number.digits != 0) ++kept;
      if (in_fraction) --number.exponent;
    } else {
      if (!dropped) number.round_up = *at >= '5';
      dropped = true;
      if (!in_fraction) ++number.exponent;
    }
  }
  if (!any) return false;
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    const bool down = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    if (at == end || !is_digit(*at)) return false;
    std::int64_t power = 0;
    for (; at < end && is_digit(*at); ++at) {
      if (power < 100000) power = power * 10 + (*at - '0');
    }
    number.exponent += down ? -power : power;
  }
  return at == end;
}

/// Computes digits * 10^exponent, rounded to the nearest integer. Clears `exact` if it had to
/// round. Returns false if the result is more than `most`.
bool to_whole(Decimal number, std::int64_t most, std::int64_t& whole, bool& exact) {
  if (number.digits == 0) number.exponent = 0;
  if (number.exponent >= 0 && number.round_up) ++number.digits;
  for (; number.exponent > 0; --number.exponent) {
    if (number.digits > most / 10) return false;
    number.digits *= 10;
  }
  std::int64_t last = 0;
  for (; number.exponent < 0 && (number.digits != 0 || last != 0); ++number.exponent) {
    if (last != 0) exact = false;
    last = number.digits % 10;
    number.digits /= 10;
  }
  if (last != 0) exact = false;
  whole = number.digits + (last >= 5 ? 1 : 0);
  return whole <= most;
}

}  // namespace

bool is_integer(const JsonValue& value) {
  if (value.kind != ValueKind::number && value.kind != ValueKind::text) return false;
  std::string_view text = value.view();
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && is_digit(text[0]);
}

std::int64_t to_integer(const JsonValue& value) {
  const char* at = value.begin;
  const char* end = value.begin + value.size;
  const bool negative = at < end && *at == '-';
  if (negative || (at < end && *at == '+')) ++at;
  std::uint64_t number = 0;
  for (; at < end && is_digit(*at); ++at)
    number = number * 10 + static_cast<std::uint64_t>(*at - '0');
  return static_cast<std::int64_t>(negative ? 0 - number : number);
}

bool to_nanoseconds(const JsonValue& value, std::int64_t most, ExactTime& time) {
  if (value.kind != ValueKind::number && value.kind != ValueKind::text) return false;
  const char* at = value.begin;
  const char* const end = value.begin + value.size;
  const bool negative = at < end && *at == '-';
  if (negative || (at < end && *at == '+')) ++at;

  // Fast path: profilers write at most 15 digits and 3 decimals.
  std::int64_t us = 0;
  const char* digit = at;
  while (digit < end && digit - at < 17 && is_digit(*digit)) us = us * 10 + (*digit++ - '0');
  if (digit > at && digit - at <= 16) {
    std::int64_t below = 0;
    const char* fraction = digit;
    if (digit < end && *digit == '.' && end - digit >= 2 && end - digit <= 4) {
      std::int64_t weight = 100;
      for (++fraction; fraction < end && is_digit(*fraction); ++fraction, weight /= 10) {
        below += weight * (*fraction - '0');
      }
    }
    if (fraction == end) {
      if (us > most / 1000 - 1) return false;
      time.ns = us * 1000 + below;
      time.whole_us = below == 0;
      if (negative) time.ns = -time.ns;
      return true;
    }
  }

  Decimal number;
  if (!read_decimal(at, end, number)) return false;
  number.exponent += 3;
  bool exact = true;
  std::int64_t ns = 0;
  if (!to_whole(number, most, ns, exact)) return false;
  time.ns = negative ? -ns : ns;
  time.whole_us = ns % 1000 == 0 && exact;
  return true;
}

}  // namespace foretrace

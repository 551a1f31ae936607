#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <optional>

#include "base/wide.h"
#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr Unit kTimes[] = {
    {"ns", 1},          {"us", 1'000},        {"\u00b5s", 1'000},  // Micro sign.
    {"\u03bcs", 1'000},                                            // Greek mu.
    {"ms", 1'000'000},  {"s", 1'000'000'000}, {"min", 60'000'000'000}, {"h", 3'600'000'000'000},
};

constexpr Unit kPrefixes[] = {
    {"", 1},
    {"k", 1'000},
    {"K", 1'000},
    {"M", 1'000'000},
    {"G", 1'000'000'000},
    {"T", 1'000'000'000'000},
    {"P", 1'000'000'000'000'000},
    {"ki", std::int64_t{1} << 10},
    {"Ki", std::int64_t{1} << 10},
    {"Mi", std::int64_t{1} << 20},
    {"Gi", std::int64_t{1} << 30},
    {"Ti", std::int64_t{1} << 40},
    {"Pi", std::int64_t{1} << 50},
};

template <std::size_t Count>
std::optional<std::int64_t> factor_of(const Unit (&units)[Count], std::string_view name) {
  for (const Unit& unit : units) {
    if (unit.name == name) return unit.factor;
  }
  return std::nullopt;
}

std::optional<std::int64_t> prefix_before(std::string_view suffix, std::string_view unit) {
  if (!unit.ends_with(suffix)) return std::nullopt;
  unit.remove_suffix(suffix.size());
  return factor_of(kPrefixes, unit);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The parts of a written number, and its unit.
struct Quantity {
  bool negative = false;
  std::string_view whole;     ///< At least one digit.
  std::string_view fraction;  ///< Digits after the point, may be empty.
  std::string_view number;    ///< Sign, digits and exponent together.
  bool has_exponent = false;
  std::string_view unit;
};

std::string_view take_digits(std::string_view& rest) {
  std::size_t count = 0;
  while (count < rest.size() && is_digit(rest[count])) ++count;
  const std::string_view digits = rest.substr(0, count);
  rest.remove_prefix(count);
  return digits;
}

/// Skips an exponent such as "e+12", unless it is the start of a unit; returns whether there was
/// one.
bool take_exponent(std::string_view& rest) {
  std::string_view behind = rest;
  if (behind.empty() || (behind.front() != 'e' && behind.front() != 'E')) return false;
  behind.remove_prefix(1);
  if (!behind.empty() && (behind.front() == '+' || behind.front() == '-')) behind.remove_prefix(1);
  if (take_digits(behind).empty()) return false;
  rest = behind;
  return true;
}

std::optional<Quantity> split_quantity(std::string_view text) {
  Quantity quantity;
  const std::string_view all = trimmed(text);
  std::string_view rest = all;
  if (!rest.empty() && rest.front() == '-') quantity.negative = true, rest.remove_prefix(1);
  quantity.whole = take_digits(rest);
  if (quantity.whole.empty()) return std::nullopt;
  if (rest.size() > 1 && rest[0] == '.' && is_digit(rest[1])) {
    rest.remove_prefix(1);
    quantity.fraction = take_digits(rest);
  }
  quantity.has_exponent = take_exponent(rest);
  quantity.number = all.substr(0, all.size() - rest.size());
  quantity.unit = trimmed(rest);
  return quantity;
}

/// Returns whole.fraction * factor, rounded half away from zero; nullopt if it does not fit 64
/// bits.
std::optional<std::int64_t> exact_product(const Quantity& quantity, std::int64_t factor) {
  constexpr std::size_t kMaxDigits =
      18;  // Further digits are worth less than half of the smallest unit.
  const std::int64_t most = INT64_MAX / factor;
  std::int64_t whole = 0;
  for (const char digit : quantity.whole) {
    if (whole > (most - (digit - '0')) / 10) return std::nullopt;
    whole = whole * 10 + (digit - '0');
  }
  Wide fraction = 0;
  Wide divisor = 1;
  for (const char digit : quantity.fraction.substr(0, kMaxDigits)) {
    fraction = fraction * 10 + (digit - '0');
    divisor *= 10;
  }
  const Wide value =
      static_cast<Wide>(whole) * factor + (fraction * factor + divisor / 2) / divisor;
  if (value > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(quantity.negative ? -value : value);
}

[[noreturn]] void refuse(std::string_view expected, std::string_view text) {
  throw Error(fmt::format("must be {}, got \"{}\"", expected, text));
}

constexpr std::string_view kTimeExpected = "a time with its unit (ns, us, ms, s, min or h)";
constexpr std::string_view kBytesExpected =
    "a size with its unit (B, kB, MB, GB, KiB, MiB, GiB ...)";
constexpr std::string_view kBandwidthExpected =
    "a bandwidth with its unit (GB/s for bytes, Gb/s for bits ...)";
constexpr std::string_view kThroughputExpected =
    "a throughput with its unit (TFLOP/s, GFLOP/s ...)";

std::optional<double> bandwidth_factor(std::string_view unit) {
  for (const std::string_view bytes : {"B/s", "Bps"}) {
    if (const auto factor = prefix_before(bytes, unit)) return static_cast<double>(*factor);
  }
  for (const std::string_view bits : {"b/s", "bit/s", "bps"}) {
    if (const auto factor = prefix_before(bits, unit)) return static_cast<double>(*factor) / 8;
  }
  return std::nullopt;
}

std::optional<double> throughput_factor(std::string_view unit) {
  for (const std::string_view name : {"FLOP/s", "FLOPS", "FLOPs", "Flop/s", "OP/s", "OPS"}) {
    if (const auto factor = prefix_before(name, unit)) return static_cast<double>(*factor);
  }
  return std::nullopt;
}

/// Parses a rate. Throws Error if it is negative or not finite.
double parse_rate(std::string_view text, std::optional<double> (*factor_of_unit)(std::string_view),
                  std::string_view expected) {
  const auto quantity = split_quantity(text);
  if (!quantity) refuse(expected, text);
  const auto factor = factor_of_unit(quantity->unit);
  if (!factor) refuse(expected, text);
  double number = 0;
  const std::string_view digits = quantity->number;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc{} || !std::isfinite(number * *factor)) refuse("of a usual size", text);
  if (number < 0) throw Error(fmt::format("must not be negative, got \"{}\"", text));
  return number * *factor;
}

}  // namespace

Nanoseconds parse_time(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (!quantity || quantity->has_exponent) refuse(kTimeExpected, text);
  const auto factor = factor_of(kTimes, quantity->unit);
  if (!factor) refuse(kTimeExpected, text);
  const auto value = exact_product(*quantity, *factor);
  if (!value) refuse("a time below 292 years", text);
  return Nanoseconds{*value};
}

Bytes parse_bytes(std::string_view text) {
  const auto quantity = split_quantity(text);
  if (!quantity || quantity->has_exponent) refuse(kBytesExpected, text);
  const auto factor = prefix_before("B", quantity->unit);
  if (!factor) refuse(kBytesExpected, text);
  const auto value = exact_product(*quantity, *factor);
  if (!value) refuse("a size below 2^63 bytes", text);
  return Bytes{*value};
}

Bandwidth parse_bandwidth(std::string_view text) {
  return {parse_rate(text, bandwidth_factor, kBandwidthExpected)};
}

Throughput parse_throughput(std::string_view text) {
  return {parse_rate(text, throughput_factor, kThroughputExpected)};
}

}  // namespace foretrace

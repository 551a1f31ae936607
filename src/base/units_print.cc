#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <span>

#include "base/wide.h"
#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

/// `upto` is where people change to the next unit, which is not always where that unit begins: 90
/// s, not 1.5 min.
struct ShownUnit {
  std::string_view name;
  std::int64_t factor;
  std::int64_t upto = INT64_MAX;
};

constexpr ShownUnit kShownTimes[] = {
    {"ns", 1, 1'000},
    {"us", 1'000, 1'000'000},
    {"ms", 1'000'000, 1'000'000'000},
    {"s", 1'000'000'000, 600'000'000'000},
    {"min", 60'000'000'000, 36'000'000'000'000},
    {"h", 3'600'000'000'000},
};

constexpr std::int64_t kKilo = 1'000;
constexpr ShownUnit kShownSizes[] = {
    {"B", 1, kKilo},
    {"kB", kKilo, kKilo* kKilo},
    {"MB", kKilo* kKilo, kKilo* kKilo* kKilo},
    {"GB", kKilo* kKilo* kKilo, kKilo* kKilo* kKilo* kKilo},
    {"TB", kKilo* kKilo* kKilo* kKilo, kKilo* kKilo* kKilo* kKilo* kKilo},
    {"PB", kKilo* kKilo* kKilo* kKilo* kKilo},
};

/// Largest first, powers of two and of ten mixed; the first unit that divides exactly is used.
constexpr ShownUnit kExactSizes[] = {
    {"PiB", std::int64_t{1} << 50}, {"PB", 1'000'000'000'000'000},
    {"TiB", std::int64_t{1} << 40}, {"TB", 1'000'000'000'000},
    {"GiB", std::int64_t{1} << 30}, {"GB", 1'000'000'000},
    {"MiB", std::int64_t{1} << 20}, {"MB", 1'000'000},
    {"KiB", std::int64_t{1} << 10}, {"kB", 1'000},
};

constexpr std::string_view kShownPrefixes[] = {"", "k", "M", "G", "T", "P"};

constexpr int kSignificantDigits = 4;

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string to_chars(double value, std::chars_format format, int precision = -1) {
  std::array<char, 400>
      text;  // In fixed notation the longest double has 309 digits before the point.
  const auto end = text.data() + text.size();
  const auto result = precision < 0 ? std::to_chars(text.data(), end, value, format)
                                    : std::to_chars(text.data(), end, value, format, precision);
  CHECK(result.ec == std::errc{});
  return {text.data(), result.ptr};
}

/// Returns `value` in multiples of 10^-decimals of the unit, rounded half up.
UnsignedWide in_steps(std::uint64_t value, const ShownUnit& unit, int decimals) {
  UnsignedWide scaled = value;
  for (int i = 0; i < decimals; ++i) scaled *= 10;
  const auto factor = static_cast<UnsignedWide>(unit.factor);
  return (scaled + factor / 2) / factor;
}

int decimals_for(std::uint64_t whole) {
  int decimals = kSignificantDigits - 1;
  for (; whole >= 10 && decimals > 0; whole /= 10) --decimals;
  return decimals;
}

std::string scaled_text(std::int64_t value, std::span<const ShownUnit> units) {
  const auto size =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::size_t at = 0;
  const auto decimals = [&] {
    return decimals_for(size / static_cast<std::uint64_t>(units[at].factor));
  };
  // Rounding may lead to the next unit: 999.96 us is 1 ms.
  const auto too_large = [&] {
    UnsignedWide limit = static_cast<UnsignedWide>(units[at].upto / units[at].factor);
    for (int i = 0; i < decimals(); ++i) limit *= 10;
    return in_steps(size, units[at], decimals()) >= limit;
  };
  while (at + 1 < units.size() && too_large()) ++at;
  const int places = units[at].factor == 1 ? 0 : decimals();
  const auto steps = static_cast<std::uint64_t>(in_steps(size, units[at], places));
  std::string digits = std::to_string(steps);
  const auto shown = static_cast<std::size_t>(places);
  if (shown > 0) {
    if (digits.size() <= shown) digits.insert(0, shown + 1 - digits.size(), '0');
    digits.insert(digits.size() - shown, 1, '.');
  }
  return fmt::format("{}{} {}", value < 0 ? "-" : "", without_trailing_zeros(std::move(digits)),
                     units[at].name);
}

std::string rate_text(double value, std::string_view unit) {
  const auto shown = [](double number) {
    const double size = std::abs(number);
    return to_chars(number, std::chars_format::fixed,
                    size < 10     ? 3
                    : size < 100  ? 2
                    : size < 1000 ? 1
                                  : 0);
  };
  std::size_t at = 0;
  while (at + 1 < std::size(kShownPrefixes) && std::abs(value) >= 999.95) value /= 1000, ++at;
  return fmt::format("{} {}{}", without_trailing_zeros(shown(value)), kShownPrefixes[at], unit);
}

std::string exact_rate_text(double value, std::string_view unit) {
  double factor = 1e15;
  for (std::size_t at = std::size(kShownPrefixes); at-- > 1; factor /= 1000) {
    if (value < factor) continue;
    const double scaled = value / factor;
    const std::string text = to_text(scaled);
    if (scaled * factor == value && text.size() <= to_text(value).size()) {
      return fmt::format("{}{}{}", text, kShownPrefixes[at], unit);
    }
  }
  return to_text(value) + std::string(unit);
}

template <std::size_t Count>
std::string exact_text(std::int64_t value, const ShownUnit (&largest_first)[Count],
                       std::string_view smallest) {
  if (value != 0) {
    for (const ShownUnit& unit : largest_first) {
      if (value % unit.factor == 0) return fmt::format("{}{}", value / unit.factor, unit.name);
    }
  }
  return fmt::format("{}{}", value, smallest);
}

}  // namespace

std::string to_text(Nanoseconds value) { return scaled_text(value.count(), kShownTimes); }
std::string to_text(Bytes value) { return scaled_text(value.count, kShownSizes); }
std::string to_text(Bandwidth value) { return rate_text(value.bytes_per_second, "B/s"); }
std::string to_text(Throughput value) { return rate_text(value.flops_per_second, "FLOP/s"); }

std::string to_exact_text(Nanoseconds value) {
  static constexpr ShownUnit kLargestFirst[] = {kShownTimes[5], kShownTimes[4], kShownTimes[3],
                                                kShownTimes[2], kShownTimes[1]};
  return exact_text(value.count(), kLargestFirst, "ns");
}
std::string to_exact_text(Bytes value) { return exact_text(value.count, kExactSizes, "B"); }
std::string to_exact_text(Bandwidth value) {
  return exact_rate_text(value.bytes_per_second, "B/s");
}
std::string to_exact_text(Throughput value) {
  return exact_rate_text(value.flops_per_second, "FLOP/s");
}

std::string to_text(double value) {
  const double size = std::abs(value);
  // The shortest form of 100000 is "1e+05", which is hard to read.
  const bool readable = size == 0 || (size >= 1e-6 && size < 1e16);
  return to_chars(value, readable ? std::chars_format::fixed : std::chars_format::scientific);
}

std::string to_fixed(double value, int decimals) {
  std::string text = to_chars(value, std::chars_format::fixed, decimals);
  const bool is_zero = text.find_first_not_of("-0.") == std::string::npos;
  if (is_zero && text.front() == '-') text.erase(0, 1);
  return text;
}

std::string to_percent(double fraction, int decimals) {
  const std::string text = to_fixed(fraction * 100, decimals);
  const bool is_zero = text.find_first_not_of("0.") == std::string::npos;
  return fmt::format("{}{} %", is_zero || text.front() == '-' ? "" : "+", text);
}

std::string to_share(double fraction, int decimals) {
  return to_fixed(100 * fraction, decimals) + " %";
}

// Computes in whole numbers: a factor is mantissa * 2^exponent, so the result is the same on every
// machine and a factor of two doubles exactly.
Nanoseconds scaled(Nanoseconds value, double factor) {
  CHECK(!std::isnan(factor));
  const bool negative = (value.count() < 0) != (factor < 0);
  const Nanoseconds saturated = negative ? Nanoseconds::min() : Nanoseconds::max();
  if (value.count() == 0 || factor == 0) return Nanoseconds{0};
  if (std::isinf(factor)) return saturated;

  constexpr int kMantissaBits = 53;
  int exponent = 0;
  const double fraction = std::frexp(std::abs(factor), &exponent);
  const auto mantissa = static_cast<UnsignedWide>(std::ldexp(fraction, kMantissaBits));
  const std::int64_t count = value.count();
  const auto size =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  UnsignedWide product = mantissa * size;  // At most 53 + 64 bits.
  const int shift = kMantissaBits - exponent;
  constexpr auto kMax = static_cast<UnsignedWide>(INT64_MAX);
  if (shift >= 127) return Nanoseconds{0};
  if (shift > 0) {
    product = (product + (UnsignedWide{1} << (shift - 1))) >> shift;
  } else if (shift <= -64 || product > (kMax >> -shift)) {
    return saturated;
  } else {
    product <<= -shift;
  }
  if (product > kMax) return saturated;
  const auto result = static_cast<std::int64_t>(product);
  return Nanoseconds{negative ? -result : result};
}

Bytes scaled(Bytes value, double factor) {
  return {scaled(Nanoseconds(value.count), factor).count()};
}

Nanoseconds from_nanoseconds(double nanoseconds) {
  constexpr auto kMax = static_cast<double>(kLongestTime.count());
  return Nanoseconds{std::llround(std::clamp(nanoseconds, -kMax, kMax))};
}

Nanoseconds from_microseconds(double us) { return from_nanoseconds(us * 1e3); }

Nanoseconds time_for(Bytes amount, Bandwidth rate) {
  if (amount.count == 0) return Nanoseconds{0};
  const double nanoseconds = static_cast<double>(amount.count) * 1e9 / rate.bytes_per_second;
  if (std::isnan(nanoseconds) || std::isinf(nanoseconds)) {
    return amount.count < 0 ? Nanoseconds::min() : Nanoseconds::max();
  }
  return from_nanoseconds(nanoseconds);
}

}  // namespace foretrace

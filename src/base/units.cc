#include "foretrace/units.h"

#include <algorithm>
#include <cmath>

#include "base/wide.h"
#include "foretrace/error.h"

namespace foretrace {

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
  constexpr auto kMost = static_cast<UnsignedWide>(INT64_MAX);
  if (shift >= 127) return Nanoseconds{0};
  if (shift > 0) {
    product = (product + (UnsignedWide{1} << (shift - 1))) >> shift;
  } else if (shift <= -64 || product > (kMost >> -shift)) {
    return saturated;
  } else {
    product <<= -shift;
  }
  if (product > kMost) return saturated;
  const auto result = static_cast<std::int64_t>(product);
  return Nanoseconds{negative ? -result : result};
}

Bytes scaled(Bytes value, double factor) {
  return {scaled(Nanoseconds(value.count), factor).count()};
}

Nanoseconds from_nanoseconds(double nanoseconds) {
  constexpr auto kMost = static_cast<double>(kLongestTime.count());
  return Nanoseconds{std::llround(std::clamp(nanoseconds, -kMost, kMost))};
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

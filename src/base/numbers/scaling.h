#pragma once

// Ratios of two quantities; and Scaling, which scales many times by one factor with the same
// results as scaled(), but faster.

#include <cmath>
#include <cstdint>

#include "foretrace/units.h"

namespace foretrace {

/// Returns part / whole; 0 unless whole is positive.
inline double ratio(Nanoseconds part, Nanoseconds whole) {
  return whole <= Nanoseconds(0)
             ? 0
             : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}
inline double ratio(Bytes part, Bytes whole) {
  return whole.count <= 0 ? 0 : static_cast<double>(part.count) / static_cast<double>(whole.count);
}

class Scaling {
 public:
  explicit Scaling(double factor) : factor_(factor) {
    // A factor is mantissa * 2^-shift. Within these bounds every product fits 128 bits, and the
    // result fits 64.
    if (!(factor >= 0x1p-10 && factor <= 0x1p20)) return;
    int exponent = 0;
    mantissa_ =
        static_cast<std::uint64_t>(std::ldexp(std::frexp(factor, &exponent), kMantissaBits));
    shift_ = kMantissaBits - exponent;
  }

  Nanoseconds operator()(Nanoseconds value) const {
    const auto size = static_cast<std::uint64_t>(value.count());  // Negative values become large.
    if (shift_ == 0 || size > kMaxPlain) return scaled(value, factor_);
    const Wide product = Wide{mantissa_} * size + (Wide{1} << (shift_ - 1));
    // `shift_` is in the range 32 to 63.
    const auto low = static_cast<std::uint64_t>(product);
    const auto high = static_cast<std::uint64_t>(product >> 64);
    return Nanoseconds(static_cast<std::int64_t>(low >> shift_ | high << (64 - shift_)));
  }

 private:
  __extension__ typedef unsigned __int128 Wide;
  static constexpr int kMantissaBits = 53;
  static constexpr std::uint64_t kMaxPlain = std::uint64_t{1} << 42;  ///< 73 minutes.

  double factor_;
  std::uint64_t mantissa_ = 0;
  int shift_ = 0;  ///< 0 means to call scaled().
};

}  // namespace foretrace

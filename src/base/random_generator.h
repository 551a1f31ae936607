#pragma once

// Random numbers that are the same on every machine: integers by splitmix64 (Steele, Lea and Flood,
// OOPSLA 2014), the rest by additions, multiplications and square roots, which IEEE 754 rounds the
// same everywhere. The usual methods for normal numbers need logarithms and cosines, whose rounding
// differs.

#include <cmath>
#include <cstdint>

namespace foretrace {

class RandomGenerator {
 public:
  explicit RandomGenerator(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// Uniform in 0 .. count - 1.
  std::uint64_t below(std::uint64_t count) { return (next() >> 32U) * count >> 32U; }

  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }

  /// Has mean 0 and variance 1: the sum of twelve uniform numbers (Irwin and Hall), close to normal
  /// up to three deviations.
  double normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

  /// Turns a normal number into one of Student's distribution, which is wider because its scale was
  /// estimated from only `outcomes` values.
  double studentized(double value, int outcomes) {
    double squares = 0;
    for (int i = 0; i < outcomes; ++i) {
      const double deviate = normal();
      squares += deviate * deviate;
    }
    return value * std::sqrt(outcomes / squares);
  }

 private:
  std::uint64_t state_;
};

}  // namespace foretrace

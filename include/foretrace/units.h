#pragma once

// Quantities that do not mix: time, bytes, rates. Time is integer nanoseconds everywhere; a double
// is never a time. Text with a unit ("5us", "25GB/s") is converted to a quantity, and a quantity to
// text, only here.

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

using Nanoseconds = std::chrono::nanoseconds;
using namespace std::chrono_literals;

struct Bytes {
  std::int64_t count = 0;

  friend auto operator<=>(const Bytes&, const Bytes&) = default;
  Bytes& operator+=(Bytes other) { return count += other.count, *this; }
  Bytes& operator-=(Bytes other) { return count -= other.count, *this; }
  friend Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend Bytes operator-(Bytes a, Bytes b) { return a -= b; }
};

struct Bandwidth {
  double bytes_per_second = 0;
  friend auto operator<=>(const Bandwidth&, const Bandwidth&) = default;
};

/// Arithmetic speed.
struct Throughput {
  double flops_per_second = 0;
  friend auto operator<=>(const Throughput&, const Throughput&) = default;
};

/// "5us", "1.5 ms", "-3ns"; units ns us ms s min h. Throws Error if the unit is missing or
/// unknown, or the value does not fit 64-bit nanoseconds. Decimal digits are read exactly, not
/// through double.
Nanoseconds parse_time(std::string_view text);

/// "512B", "25 MB" (10^6), "25MiB" (2^20). Throws Error.
Bytes parse_bytes(std::string_view text);

/// "25GB/s" (bytes) or "100Gb/s", "100Gbit/s", "100Gbps" (bits). Throws Error.
Bandwidth parse_bandwidth(std::string_view text);

/// "312TFLOP/s" (also TFLOPS, GFLOP/s). Throws Error.
Throughput parse_throughput(std::string_view text);

/// For people, scaled: "1.234 ms", "12.5 MB", "25 GB/s". At most four significant digits.
std::string to_text(Nanoseconds value);
std::string to_text(Bytes value);
std::string to_text(Bandwidth value);
std::string to_text(Throughput value);

/// For settings: the largest unit that loses nothing, without a space ("1500us"); parse_*() of the
/// result gives the same value.
std::string to_exact_text(Nanoseconds value);
std::string to_exact_text(Bytes value);
std::string to_exact_text(Bandwidth value);
std::string to_exact_text(Throughput value);

/// The one function that prints a floating-point number: shortest text that reads back the same,
/// independent of locale.
std::string to_text(double value);
/// With a fixed number of decimals, for tables.
std::string to_fixed(double value, int decimals);
/// "+12.3 %", a change.
std::string to_percent(double fraction, int decimals = 1);
/// "12.3 %", a part of something.
std::string to_share(double fraction, int decimals = 1);

/// `value * factor`, rounded to the nearest nanosecond, saturating.
Nanoseconds scaled(Nanoseconds value, double factor);
/// The same for bytes.
Bytes scaled(Bytes value, double factor);
/// No run takes this long, and many such times can still be added up.
inline constexpr Nanoseconds kLongestTime = std::chrono::hours(1000);
/// Rounded to the nearest nanosecond, at most kLongestTime in either direction; for models that
/// compute in floating point.
Nanoseconds from_nanoseconds(double nanoseconds);
Nanoseconds from_microseconds(double us);

/// How long `amount` takes at `rate`, rounded to the nearest nanosecond, at most kLongestTime.
/// Returns the greatest time if the rate is 0.
Nanoseconds time_for(Bytes amount, Bandwidth rate);

}  // namespace foretrace

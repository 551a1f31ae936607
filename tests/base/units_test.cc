#include "foretrace/units.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "foretrace/error.h"

namespace foretrace {
namespace {

template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Units, ReadTimes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"5ns", 5},
      {"5us", 5'000},
      {"5\u00b5s", 5'000},
      {"5\u03bcs", 5'000},
      {"1.5 ms", 1'500'000},
      {" 2s ", 2'000'000'000},
      {"1min", 60'000'000'000},
      {"2h", 7'200'000'000'000},
      {"-3ns", -3},
      {"0.0000000005s", 1},
      {"0.0000000004s", 0},
      {"-0.0000000005s", -1},
      {"9223372036854775807ns", std::numeric_limits<std::int64_t>::max()},
      {"9223372036.854775807s", std::numeric_limits<std::int64_t>::max()},
      {"0.1s", 100'000'000},
      {"1234567.890123456789ms", 1'234'567'890'123},
      {"000000000000000000000000001ns", 1},
  };
  for (const auto& [text, nanoseconds] : cases) {
    EXPECT_EQ(parse_time(text).count(), nanoseconds) << text;
  }
}

TEST(Units, RefuseOtherTimes) {
  const std::string wanted = "must be a time with its unit (ns, us, ms, s, min or h), got \"";
  for (const std::string text : {"", "5", "us", "5 seconds", "five us", "5us!", "1e3us", ".5us",
                                 "+5us", "- 5us", "5 u s", "0x5us", "nan s", "inf s", "1.us"}) {
    EXPECT_EQ(error_of([&] { parse_time(text); }), wanted + text + "\"");
  }
  for (const std::string text : {"9223372036854775808ns", "9223372036.8547758075s", "1000000000h",
                                 "99999999999999999999999999999999999999999s"}) {
    EXPECT_EQ(error_of([&] { parse_time(text); }),
              "must be a time below 292 years, got \"" + text + "\"");
  }
}

TEST(Units, ReadBytes) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"512B", 512},       {"25 MB", 25'000'000}, {"25MiB", 25 << 20}, {"1.5GB", 1'500'000'000},
      {"1kB", 1000},       {"1KB", 1000},         {"1KiB", 1024},      {"2TB", 2'000'000'000'000},
      {"1PiB", 1LL << 50}, {"0.5KiB", 512},       {"-1MB", -1'000'000}};
  for (const auto& [text, count] : cases) EXPECT_EQ(parse_bytes(text).count, count) << text;
  for (const char* text : {"25", "25Mb", "MB", "25 mb", "1e3B"}) {
    EXPECT_EQ(error_of([&] { parse_bytes(text); }),
              "must be a size with its unit (B, kB, MB, GB, KiB, MiB, GiB ...), got \"" +
                  std::string(text) + "\"");
  }
}

TEST(Units, TellBitsFromBytes) {
  EXPECT_EQ(parse_bandwidth("25GB/s").bytes_per_second, 25e9);
  EXPECT_EQ(parse_bandwidth("100Gb/s").bytes_per_second, 12.5e9);
  EXPECT_EQ(parse_bandwidth("100Gbit/s").bytes_per_second, 12.5e9);
  EXPECT_EQ(parse_bandwidth("100Gbps").bytes_per_second, 12.5e9);
  EXPECT_EQ(parse_bandwidth("1 GiB/s").bytes_per_second, 1073741824.0);
  EXPECT_EQ(parse_bandwidth("2.5e9B/s").bytes_per_second, 2.5e9);
  EXPECT_EQ(parse_throughput("312TFLOP/s").flops_per_second, 312e12);
  EXPECT_EQ(parse_throughput("19.5 TFLOPS").flops_per_second, 19.5e12);
  EXPECT_EQ(parse_throughput("624TOPS").flops_per_second, 624e12);
}

TEST(Units, RefuseOtherRates) {
  EXPECT_EQ(error_of([] { parse_bandwidth("25GB"); }),
            "must be a bandwidth with its unit (GB/s for bytes, Gb/s for bits ...), got \"25GB\"");
  EXPECT_EQ(error_of([] { parse_bandwidth("-1GB/s"); }), "must not be negative, got \"-1GB/s\"");
  EXPECT_EQ(error_of([] { parse_throughput("1e400FLOP/s"); }),
            "must be of a usual size, got \"1e400FLOP/s\"");
  EXPECT_EQ(error_of([] { parse_throughput("312"); }),
            "must be a throughput with its unit (TFLOP/s, GFLOP/s ...), got \"312\"");
}

TEST(Units, ShowFourDigitsToPeople) {
  const std::pair<std::int64_t, const char*> times[] = {
      {0, "0 ns"},
      {999, "999 ns"},
      {1'000, "1 us"},
      {1'234'567, "1.235 ms"},
      {-1'234'567, "-1.235 ms"},
      {12'345'678, "12.35 ms"},
      {999'949, "999.9 us"},
      {999'960, "1 ms"},
      {1'500'000, "1.5 ms"},
      {90'000'000'000, "90 s"},
      {599'960'000'000, "9.999 min"},
      {36'000'000'000'000, "10 h"},
      {std::numeric_limits<std::int64_t>::max(), "2562048 h"},
      {std::numeric_limits<std::int64_t>::min(), "-2562048 h"},
  };
  for (const auto& [count, text] : times) EXPECT_EQ(to_text(Nanoseconds{count}), text);
  EXPECT_EQ(to_text(Bytes{12'500'000}), "12.5 MB");
  EXPECT_EQ(to_text(Bytes{512}), "512 B");
  EXPECT_EQ(to_text(Bytes{-999'999}), "-1 MB");
  EXPECT_EQ(to_text(Bandwidth{25e9}), "25 GB/s");
  EXPECT_EQ(to_text(Bandwidth{0}), "0 B/s");
  EXPECT_EQ(to_text(Throughput{312e12}), "312 TFLOP/s");
  EXPECT_EQ(to_text(Throughput{999.96e12}), "1 PFLOP/s");
}

TEST(Units, LoseNothingInSettings) {
  EXPECT_EQ(to_exact_text(1500us), "1500us");
  EXPECT_EQ(to_exact_text(0ns), "0ns");
  EXPECT_EQ(to_exact_text(120s), "2min");
  EXPECT_EQ(to_exact_text(-90s), "-90s");
  EXPECT_EQ(to_exact_text(Bytes{1 << 20}), "1MiB");
  EXPECT_EQ(to_exact_text(Bytes{25'000'000}), "25MB");
  EXPECT_EQ(to_exact_text(Bytes{1001}), "1001B");
  EXPECT_EQ(to_exact_text(Bandwidth{25e9}), "25GB/s");
  EXPECT_EQ(to_exact_text(Bandwidth{1}), "1B/s");
  EXPECT_EQ(to_exact_text(Throughput{19.5e12}), "19.5TFLOP/s");
}

TEST(Units, ExactTextsReadBackTheSame) {
  std::mt19937_64 random(1);
  for (int run = 0; run < 2000; ++run) {
    const auto count = static_cast<std::int64_t>(random() >> (random() % 63 + 1));
    EXPECT_EQ(parse_time(to_exact_text(Nanoseconds{count})).count(), count);
    EXPECT_EQ(parse_time(to_exact_text(Nanoseconds{-count})).count(), -count);
    EXPECT_EQ(parse_bytes(to_exact_text(Bytes{count})).count, count);
    const double rate = static_cast<double>(count) / 7;
    EXPECT_EQ(parse_bandwidth(to_exact_text(Bandwidth{rate})).bytes_per_second, rate);
    EXPECT_EQ(parse_throughput(to_exact_text(Throughput{rate})).flops_per_second, rate);
  }
}

TEST(Units, PrintNumbersThatReadBackTheSame) {
  EXPECT_EQ(to_text(0.1), "0.1");
  EXPECT_EQ(to_text(100000.0), "100000");
  EXPECT_EQ(to_text(1e300), "1e+300");
  EXPECT_EQ(to_text(-2.5), "-2.5");
  EXPECT_EQ(to_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(to_fixed(2.345, 1), "2.3");
  EXPECT_EQ(to_fixed(-0.001, 2), "0.00");
  EXPECT_EQ(to_percent(0.123), "+12.3 %");
  EXPECT_EQ(to_percent(-0.03), "-3.0 %");
  EXPECT_EQ(to_percent(0), "0.0 %");
  EXPECT_EQ(to_percent(0.00042, 2), "+0.04 %");
}

TEST(Units, ScaleWithoutLosingADigit) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(scaled(3ns, 0.5), 2ns);
  EXPECT_EQ(scaled(-3ns, 0.5), -2ns);
  EXPECT_EQ(scaled(10ns, 0.0), 0ns);
  EXPECT_EQ(scaled(10ns, 1e-300), 0ns);
  EXPECT_EQ(scaled(Nanoseconds{kMax / 2}, 2.0).count(), kMax - 1);
  EXPECT_EQ(scaled(Nanoseconds{kMax}, 1.0).count(), kMax);
  EXPECT_EQ(scaled(Nanoseconds{kMax}, 2.0), Nanoseconds::max());
  EXPECT_EQ(scaled(Nanoseconds{kMax}, -1e300), Nanoseconds::min());
  EXPECT_EQ(scaled(1ns, 1e300), Nanoseconds::max());
  std::mt19937_64 random(2);
  for (int run = 0; run < 2000; ++run) {
    const Nanoseconds value{static_cast<std::int64_t>(random() >> 3)};
    EXPECT_EQ(scaled(value, 1.0), value);
    EXPECT_EQ(scaled(value, 2.0), value * 2);
    EXPECT_EQ(scaled(value, 3.0).count() / 3, value.count() > kMax / 3 ? kMax / 3 : value.count());
  }
}

TEST(Units, TimeToMoveBytes) {
  EXPECT_EQ(time_for(Bytes{25'000'000}, {25e9}), 1ms);
  EXPECT_EQ(time_for(Bytes{0}, {0}), 0ns);
  EXPECT_EQ(time_for(Bytes{1}, {0}), Nanoseconds::max());
  EXPECT_EQ(time_for(Bytes{1}, {3e9}), 0ns);
  EXPECT_EQ(time_for(Bytes{1}, {1e-12}), std::chrono::hours(1000));
  EXPECT_EQ(from_microseconds(1e300), std::chrono::hours(1000));
  EXPECT_EQ(time_for(Bytes{5}, {3e9}), 2ns);
}

}  // namespace
}  // namespace foretrace

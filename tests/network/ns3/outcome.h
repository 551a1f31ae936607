#pragma once

// The input and the result of both simulators. ns-3's headers need C++17, ours C++20, so each has a
// file of its own.

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace ns3_check {

using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

inline constexpr std::uint32_t kPayload = 1448;    // With TCP's timestamps in 1,500 bytes of IP.
inline constexpr std::uint32_t kHeaders = 52 + 2;  // TCP with timestamps and IP; PPP.
inline constexpr std::int64_t kBytes = 10'000'000;
inline constexpr double kBitsPerSecond = 10e9;

struct Outcome {
  double seconds = 0;  // Simulated.
  double wall = 0;
  double hops = 0;  // Of data packets.
};

inline double now() {
  using Clock = std::chrono::steady_clock;  // clock: how much slower ns-3 is, is printed
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Outcome by_ns3(std::uint32_t hosts, const Pairs& pairs);

}  // namespace ns3_check

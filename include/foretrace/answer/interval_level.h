#pragma once

// What the interval of every prediction is: this share of the steps of the changed job are expected
// in it. It comes from draws with this seed, so that the same question has the same answer.

#include <cstdint>

namespace foretrace {

constexpr double kIntervalLevel = 0.8;
constexpr std::uint64_t kIntervalSeed = 1;

}  // namespace foretrace

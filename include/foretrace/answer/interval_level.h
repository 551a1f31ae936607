#pragma once

// The level of the interval of every prediction: it should contain this share of the steps of the
// changed job. Its draws use this seed, so the same question has the same answer.

#include <cstdint>

namespace foretrace {

constexpr double kIntervalLevel = 0.8;
constexpr std::uint64_t kIntervalSeed = 1;

}  // namespace foretrace

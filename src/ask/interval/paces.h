#pragma once

// Steps of a replay that run at two paces, though the recorded ones ran at one: some still work off
// what was launched before, the others go as fast as the host does.
//
//     recorded   10 10 10 10 10 10          replay   4 4 4 | 9 9 9
//
// The median is then that of whichever pace has more steps, so neither can be left out.

#include <cstddef>
#include <optional>
#include <string>

#include "foretrace/timeline.h"

namespace foretrace {

/// Medians of the faster and of the slower steps, and how many there are; of two or three steps
/// the fastest and the slowest.
struct Paces {
  Nanoseconds fast{0}, slow{0};
  std::size_t fast_steps = 0, slow_steps = 0;
};

/// "2 steps of the replay at 9.74 ms, 3 at 52.1 ms".
std::string to_text(const Paces& paces);

/// Splits the counted steps of a replay at their widest gap. Returns nullopt if they spread no
/// wider than kWideSpread or twice the `recorded` ones, or if only one of them or fewer than a
/// fifth are on one side, which is no pace.
std::optional<Paces> two_paces(const StepTimes& replayed, const StepTimes& recorded);

}  // namespace foretrace

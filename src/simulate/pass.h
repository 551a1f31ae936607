#pragma once

// The replay without a clock: where every lane runs its tasks in line, the rows of a graph stand in
// an order in which all waits of a task are in front of it, so one pass finds all times.

#include <cstdint>
#include <span>

#include "simulate/rows.h"

namespace foretrace {

/// One pass over the tasks in order: each starts at the latest of its waits. Fills `finish`,
/// returns the greatest.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish);

/// The same of the tasks from `begin` to before `end`, none of which starts before `earliest`.
Nanoseconds pass(const Rows& rows, std::span<Nanoseconds> finish, std::uint32_t begin,
                 std::uint32_t end, Nanoseconds earliest);

constexpr std::size_t kSetsAtOnce = 8;

/// A task whose times are wanted.
struct Probe {
  std::uint32_t task = 0;   ///< Its row.
  std::uint32_t place = 0;  ///< Locates its times among those of a set.
};

/// Times of the probes in each of eight replays: those of the first, those of the second ...
struct ProbeTimes {
  std::span<const Probe> probes;  ///< In order of their rows.
  std::span<std::int64_t> starts, finishes;
};

/// As pass(), with eight sets of durations at once. Writes the greatest finish of each.
void pass_eight(const Rows& rows, const std::int64_t* const (&durations)[kSetsAtOnce],
                std::int64_t (&greatest)[kSetsAtOnce], const ProbeTimes& wanted);

}  // namespace foretrace

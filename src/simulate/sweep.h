#pragma once

#include <cstdint>
#include <span>

#include "simulate/rows.h"

namespace foretrace {

/// One pass over the tasks in order: each starts at the latest of its waits. Fills `finish`,
/// returns the greatest.
Nanoseconds sweep(const Rows& rows, std::span<Nanoseconds> finish);

constexpr std::size_t kSetsAtOnce = 8;

/// As sweep(), with eight sets of durations at once. Writes the greatest finish of each.
void sweep_eight(const Rows& rows, const std::int64_t* const (&durations)[kSetsAtOnce],
                 std::int64_t (&greatest)[kSetsAtOnce]);

}  // namespace foretrace

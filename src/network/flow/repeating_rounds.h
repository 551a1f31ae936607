#pragma once

// Rounds that send the same messages to the same ranks, except for a byte more or less. If nothing
// depends on that byte, and the state of a simulation is the same after such a round as before it,
// all that follow take as long: rounds.cc skips them.

#include <vector>

#include "network/collective.h"

namespace foretrace {

struct RepeatingRounds {
  std::uint32_t first = 0, end = 0;  ///< The rounds, without `end`.
  Bytes least{}, most{};             ///< Bytes of a message, at most one apart.
  std::uint64_t messages = 0;        ///< In a round.
  Bytes moved{};                     ///< In all these rounds.
};

/// Finds the rounds from `first` on that send alike; at least that one. Makes their messages, and
/// keeps those of one round.
RepeatingRounds repeating_rounds(const Algorithm& algorithm, const Call& call, const Plan& plan,
                                 LinkCosts costs, std::uint32_t first);

}  // namespace foretrace

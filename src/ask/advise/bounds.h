#pragma once

// What thinking something away would bring at most, and how fast something would have to be. Each
// answer is a replay of an edited clone; none is worked out from shares of a breakdown.

#include <vector>

#include "ask/predict/lever.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// The step time with a lever pulled.
Nanoseconds step_with(const Graph& graph, const Lever& lever, double factor);

/// One rung for each lever, then "overlap" (nothing waits for anything but its lane: the busiest
/// lane's work) and "all". No rung is above `now`, and none below the last: in the few steps of a
/// recording a host that is ahead of the device can hide for a while that it is too slow.
std::vector<Rung> ladder_of(const Graph& graph, Nanoseconds now);

/// How many times as fast a lever's work must be for a step to take no longer than `target`; by
/// bisection. Nothing if that is not enough however fast; 1 if it holds now; 0 if only next to no
/// time, or none of what is there or not, will do.
std::optional<double> speed_needed(const Graph& graph, const Lever& lever, Nanoseconds target);

/// For each lever that there is something to pull at: what it brings at best, and from where on
/// more brings nothing; with a target also the speed that it takes.
std::vector<SpeedUp> speed_ups_of(const Graph& graph, const std::vector<Lever>& levers,
                                  Nanoseconds now, std::optional<Nanoseconds> target);

}  // namespace foretrace

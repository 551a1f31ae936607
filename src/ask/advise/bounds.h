#pragma once

// Upper bounds on the gain from removing something, and how fast something would have to be. Each
// answer is a replay of an edited clone; none is computed from shares of a breakdown.

#include <vector>

#include "ask/predict/lever.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// Step time with `lever` pulled to `factor`.
Nanoseconds step_with(const Graph& graph, const Lever& lever, double factor);

/// Returns one rung for each lever, then "overlap" (nothing waits for anything but its lane: the
/// busiest lane's work) and "all". No rung is above `now`, and none is below the last: within the
/// few steps of a recording, a host that runs ahead of the device can hide for a while that it is
/// too slow.
std::vector<Rung> ladder_of(const Graph& graph, Nanoseconds now);

/// How many times as fast a lever's work must be for a step to take no longer than `target`, by
/// bisection. Returns nullopt if no speed is enough, 1 if the target is met already, and 0 if the
/// work would have to take almost no time or cannot be sped up in part.
std::optional<double> speed_needed(const Graph& graph, const Lever& lever, Nanoseconds target);

/// For each lever with work: its gain at best, and the speed beyond which it gains nothing more;
/// with a target also the speed that reaches it. Works on all cores.
std::vector<SpeedUp> speed_ups_of(const Graph& graph, const std::vector<Lever>& levers,
                                  Nanoseconds now, std::optional<Nanoseconds> target);

}  // namespace foretrace

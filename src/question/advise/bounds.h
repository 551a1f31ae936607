#pragma once

// Upper bounds on the gain from removing something, and how fast something would have to be. Each
// answer is a replay of an edited clone; none is computed from shares of a breakdown.

#include <optional>
#include <span>
#include <vector>

#include "analysis/place/work_group.h"
#include "foretrace/answer/advice.h"

namespace foretrace {

/// Step time with the work of the groups of job.graph() scaled by `factor`.
Nanoseconds step_with(const JobGraph& job, std::span<const WorkGroup> groups, double factor);
Nanoseconds step_with(const JobGraph& job, const WorkGroup& group, double factor);

/// Returns one ceiling for each group, then "overlap" (nothing waits for anything but its lane: the
/// busiest lane's work) and "all". No ceiling is above `now`, and none is below the last: within
/// the few steps of a recording, a host that runs ahead of the device can hide for a while that it
/// is too slow.
std::vector<AdviceCeiling> ladder_of(const JobGraph& job, Nanoseconds now);

/// `largest` is the largest part of the path, which decides if nothing would make the step shorter.
StepBound bound_of(const std::vector<AdviceCeiling>& ladder, const std::vector<SpeedUp>& speed_ups,
                   PathPart largest, Nanoseconds now);

/// For each group with work: its gain at best, and the speed beyond which it gains nothing more;
/// with a target also the speed that reaches it. Works on all cores.
std::vector<SpeedUp> speed_ups_of(const JobGraph& job, const std::vector<WorkGroup>& groups,
                                  Nanoseconds now, std::optional<Nanoseconds> target);

}  // namespace foretrace

#pragma once

// The joint gain of the best suggestions: every subset of up to four is replayed, so that the sum
// of single gains can be compared with the real one, and the joint gain be divided among them
// (Shapley, 1953: the mean of what each adds over all orders of joining).
//
//     a alone 30, b alone 30, both 40     a removes waiting that b would also remove
//     a alone  0, b alone 10, both 25     a only counts once b is done

#include <vector>

#include "ask/advise/advised_job.h"

namespace foretrace {

/// The best one for time, and those that add more than noise to it, even if they gain nothing
/// alone. A single member if others are recommended, but none adds to the best. Empty if there is
/// none.
std::optional<JointAdvice> joint_advice(const AdvisedJob& job,
                                        const std::vector<Suggestion>& suggestions);

/// From the gain of every subset (bit i: member i), the empty one included. Adds up to that of all.
std::vector<Nanoseconds> shapley(const std::vector<Nanoseconds>& gains, std::size_t members);

}  // namespace foretrace

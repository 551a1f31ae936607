#pragma once

// The joint gain of the best suggestions: every subset of up to four is replayed, so that the sum
// of single gains can be compared with the real one, and the joint gain can be divided among them
// (Shapley, 1953: the mean of what each adds over all orders of joining).
//
//     a alone 30, b alone 30, both 40     a removes waiting that b would also remove
//     a alone  0, b alone 10, both 25     a only counts once b is done

#include <vector>

#include "question/advise/advised_job.h"

namespace foretrace {

/// Combines the best suggestion for time with those that add more than noise to it, even if they
/// gain nothing alone. The best one is the only member if no other adds to it. Returns nullopt if
/// nothing is recommended for time.
std::optional<JointAdvice> joint_advice(const AdvisedJob& job,
                                        const std::vector<Suggestion>& suggestions);

/// Shapley values from the gain of every subset, including the empty one; bit i of an index into
/// `gains` stands for member i. The values add up to the gain of all members.
std::vector<Nanoseconds> shapley(const std::vector<Nanoseconds>& gains, std::size_t members);

}  // namespace foretrace

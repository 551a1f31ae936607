#pragma once

// Which transforms are worth trying on a job nobody has said anything about, with which settings,
// and what they are to be judged by. One line for each transform in src/transform/worth.def: who
// gives advice goes through them, and knows none by name.

#include <string_view>
#include <vector>

namespace foretrace {

/// time: shorter steps. throughput: less time for a sample, as steps have other batches. memory:
/// room, at a price in time. device: other hardware. none: an edit or a question that needs an
/// answer from its user first.
enum class Goal { none, time, throughput, memory, device };
std::string_view to_string(Goal goal);

/// A condition on the job. single_precision: arithmetic-bound kernels use more than half precision,
/// most of the time.
enum class Premise { any_job, single_precision };

struct Worth {
  std::string_view name;  ///< Name of the transform.
  Goal goal = Goal::none;
  /// Settings to try, in order of effort: the first that is about as good as the best is advised.
  /// "<device>" stands for the built-in devices above the recorded one.
  std::vector<std::string_view> tries;
  double samples = 1;  ///< In a step, for each one recorded.
  /// The work that it applies to. Two that apply to the same work do not add up: one of them is
  /// chosen.
  std::vector<std::string_view> holds;
  Premise premise = Premise::any_job;
  std::string_view why_not;  ///< The reason, for transforms without a goal.
};

/// In the order of transforms().
const std::vector<Worth>& worths();

}  // namespace foretrace

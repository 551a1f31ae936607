#pragma once

// The ranks of a job whose steps are drawn together: see resample().

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "ask/interval/inputs.h"
#include "ask/job/job.h"

namespace foretrace {

/// Most tasks of a joint replay. A rank of a larger job is replayed alone, because joint replays
/// take too long.
constexpr std::size_t kMostTasksResampled = 3'000'000;

class ResampledJob {
 public:
  /// `replayed` has the rows of the ranks that it kept; graph_of(rank) returns the edited graph of
  /// a rank of the world. Both graphs and rows must outlive this object.
  ResampledJob(const JobRanks& job, const JointReplay& replayed, std::size_t shown,
               const std::function<const Graph&(std::size_t)>& graph_of);

  /// Returns nullptr if the ranks do not wait for each other, have too many tasks, or have no two
  /// steps that all can draw.
  const JointRanks* joint_ranks() const { return joint_ranks_ ? &*joint_ranks_ : nullptr; }

 private:
  std::vector<std::vector<Nanoseconds>> waits_;           ///< By recorded rank, then by task.
  std::vector<std::optional<StepVariation>> variations_;  ///< By recorded rank.
  std::vector<ResampledRank> ranks_;
  std::optional<JointRanks> joint_ranks_;
};

}  // namespace foretrace

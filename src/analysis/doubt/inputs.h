#pragma once

// Collects the sources of doubt about one prediction; interval.h draws from them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/doubt/interval.h"
#include "analysis/doubt/resample.h"
#include "analysis/doubt/step_variation.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/infer.h"
#include "job/job.h"

namespace foretrace {

/// The ranks that were replayed together with the rank of the answer.
struct JointRanks {
  std::span<const ResampledRank> all;
  std::size_t shown = 0;  ///< The rank of the answer among them.
  const JointRows& rows;
};

struct IntervalEvidence {
  const Inference& inference;
  const Graph& changed;  ///< A clone of the inferred graph after the what-if, or the graph itself.
  const Prediction& prediction;
  /// If nullptr, nothing is replayed again, and the variation of steps is scaled from the
  /// recording.
  const StepVariation* variation = nullptr;
  std::span<const KnownOutcome> user_outcomes = {};  ///< The user's ledger.
  /// If nullptr, the rank is replayed alone, and waits for others as long as in the answer.
  const JointRanks* ranks = nullptr;
};

/// Whether work that a what-if made longer or added counts, or is as long as before.
enum class Longer : std::uint8_t { kept, undone };
/// Step time if the work that the what-if made shorter took no time at all. No replay is faster
/// than with the rest kept, and with it undone no step is, however wrong the model is.
Nanoseconds least_step_time(const Graph& recorded, const Graph& changed, Longer longer);

IntervalInputs interval_inputs(const IntervalEvidence& evidence);

/// The same for the kernel time of a step, Prediction::predicted_breakdown.compute: recorded steps
/// and the errors of what-ifs that changed kernels.
IntervalInputs kernel_inputs(const IntervalEvidence& evidence);

// The ranks of a job whose steps are drawn together: see resample().

/// Most tasks of a joint replay. A rank of a larger job is replayed alone, because joint replays
/// take too long.
constexpr std::size_t kMaxTasksResampled = 3'000'000;

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

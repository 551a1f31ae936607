#pragma once

// From a plan to a graph, without a trace. A pipeline schedule says in which order ranks work,
// costs say how long each pass takes; the replay finds when it runs.
//
//     rank 0         0F0 0F1 ........ 0B0 0B1      one lane per rank
//     rank 0 to 1    . s0  s1                      sends: a lane per pair of ranks, where they may
//     queue rank 1         ...... 1F0 1B0 1F1 1B1
//
// Sends take no time of their ranks. Gradients are reduced on a lane of each rank, in the order in
// which the schedule starts it; all ranks with a copy of the stage take part.

#include <memory>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/units.h"
#include "schedule/schedule.h"

namespace foretrace {

/// The costs of one stage of the model, for a whole micro-batch.
struct StageCosts {
  Nanoseconds forward{0};
  Nanoseconds input_gradient{0};  ///< A whole backward pass takes this plus weight_gradient.
  Nanoseconds weight_gradient{0};
  Nanoseconds recompute{0};      ///< Precedes each backward pass or input gradient.
  Nanoseconds send_forward{0};   ///< Sends its result to the rank of the next stage.
  Nanoseconds send_backward{0};  ///< Sends its input gradient to the stage before.
  Nanoseconds all_reduce{0}, update{0};
  Bytes activations{};             ///< Kept from the forward pass to the input gradient.
  Bytes activations_for_weight{};  ///< The part of those that is kept to the weight gradient.
  Bytes parameters{};              ///< One version of the weights.
};

struct PipelineCosts {
  std::vector<StageCosts> stages;  ///< One for each stage of the model.
  /// Share of their time that two passes save by running together, in [0, 1).
  double overlap = 0;
};

struct RankRun {
  Nanoseconds busy{0};              ///< Time in passes.
  Nanoseconds begin{0}, end{0};     ///< When its first pass begins and its last one ends.
  std::int32_t peak_in_flight = 0;  ///< As peaks_in_flight() counts.
  Bytes peak_activations{};
  std::int32_t versions = 1;  ///< Versions of the weights that are kept at once.
  Bytes parameters{};         ///< All stages and versions of weights that it keeps.
  Nanoseconds span() const { return end - begin; }
};

struct PipelineRun {
  Nanoseconds makespan{0};  ///< Includes all-reduces and updates.
  std::vector<RankRun> ranks;
  /// The share of the longest span in which a rank is not busy, on average over ranks.
  double bubble_rate() const;
};

/// A pipeline as a graph. `tasks` has the task of each action, by rank and slot; kNoTask for an
/// all-reduce or update if none of them takes time.
struct PipelineGraph {
  Graph graph;
  std::vector<std::vector<TaskId>> tasks;
};

/// Throws Error if there are not as many costs as stages, or if one is negative. REQUIRES: the
/// schedule is legal.
PipelineGraph build_pipeline(const Schedule& schedule, const PipelineCosts& costs);

/// Whether sends may have to queue between two ranks. If not, a send only delays the pass that
/// waits for it, which is as exact and takes half as many tasks.
bool sends_queue(const Schedule& schedule, const PipelineCosts& costs);

/// A pipeline that is compiled once and run with many costs. Not thread-safe.
class PipelineReplay {
 public:
  /// Serves only costs that agree with `example` in whether sends queue, sends take time, and there
  /// are updates.
  PipelineReplay(const Schedule& schedule, const PipelineCosts& example);
  PipelineReplay(PipelineReplay&&) noexcept;
  PipelineReplay& operator=(PipelineReplay&&) noexcept;
  ~PipelineReplay();

  bool serves(const PipelineCosts& costs) const;
  /// REQUIRES: serves(costs). Throws Error as build_pipeline() does.
  PipelineRun run(const PipelineCosts& costs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Builds a pipeline, and runs it once.
PipelineRun run_pipeline(const Schedule& schedule, const PipelineCosts& costs);

}  // namespace foretrace

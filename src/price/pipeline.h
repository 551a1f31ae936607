#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "generate/generate.h"
#include "price/price.h"

namespace foretrace {

/// Returns the schedule of a layout. Throws Error if the schedule cannot run it.
Schedule schedule_for(const Layout& layout, std::int64_t micro_batches);

/// One rank of a pipeline: its parts of the model with the share of micro-batches that each
/// processes, the most passes in flight, and the number of weight versions that it keeps.
struct RankPlan {
  std::map<std::size_t, double> parts;
  double in_flight = 1;
  /// All micro-batches of a step are in flight at once, however many.
  bool keeps_all = false;
  std::int32_t versions = 1;
};
std::vector<RankPlan> rank_plans(const Schedule& schedule);

/// The work of all ranks of a pipeline, independent of times.
struct PipelineShape {
  std::vector<RankPlan> ranks;
  bool splits_backward = false;
  /// The pipeline empties after each batch; otherwise updates overlap passes.
  bool flushes = true;
  bool fills_and_drains = true;  ///< It flushes, and all micro-batches go down the ranks.
  /// By part of the model: the number of ranks of a pipeline that hold it.
  std::vector<std::int64_t> copies{};
  double updates = 1;  ///< Times that each part is updated per batch.
};

/// Times of pipelines by replay of their schedules. Each schedule is compiled once and kept.
class Pipelines {
 public:
  /// The result stays valid as long as this object. Throws Error if the schedule cannot run the
  /// layout.
  const PipelineShape& shape(const Layout& layout);

  /// Returns a lower bound of us() without a replay: the work of each rank, plus the work that has
  /// to run before its first pass and after its last.
  double at_least(const std::vector<StagePrice>& costs, const Layout& layout);

  /// Returns the time from the first forward pass to the last backward pass, in microseconds.
  /// `costs` has pipeline x virtual_stages parts. With many micro-batches, two short replays give
  /// the additional time per micro-batch once the pipeline is full; a pipeline without a flush is
  /// always full.
  double us(const std::vector<StagePrice>& costs, const Layout& layout);

 private:
  struct Compiled {
    std::unique_ptr<PipelineReplay> replay;
    Schedule schedule;
  };
  struct Replayed {
    double us = 0;
    std::int64_t micro_batches = 0;  ///< In all batches of the schedule.
  };
  Replayed replayed(const PipelineCosts& costs, const Layout& layout, std::int64_t micro_batches);

  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, Compiled> compiled_;
  std::map<Key, PipelineShape> shapes_;
};

}  // namespace foretrace

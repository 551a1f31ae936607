#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretrace/generate.h"
#include "foretrace/price.h"

namespace foretrace {

/// The schedule of a layout. Throws Error where it does not serve it.
Schedule schedule_for(const Layout& layout, std::int64_t micro_batches);

/// One rank of a pipeline: the parts of the model that it has, and the share of
/// micro-batches of each; how many of their passes are in flight at most; and the versions of their
/// weights that it keeps.
struct RankPlan {
  std::map<std::size_t, double> parts;
  double in_flight = 1;
  std::int32_t versions = 1;
};
std::vector<RankPlan> rank_plans(const Schedule& schedule);

/// The work of all ranks of a pipeline, without times.
struct PipelineShape {
  std::vector<RankPlan> ranks;
  bool splits_backward = false;
  bool flushes =
      true;  ///< The pipeline runs empty with each batch; else updates run beside passes.
  bool fills_and_drains = true;        ///< It flushes, and all micro-batches go down the ranks.
  std::vector<std::int64_t> copies{};  ///< By part of the model, the ranks of a pipeline with it.
  double updates = 1;                  ///< Times that each part is updated in a batch.
};

/// Pipelines by replay of their schedules. A schedule is compiled once and kept.
class Pipelines {
 public:
  /// Valid as long as the object. Throws Error where the schedule does not serve the layout.
  const PipelineShape& shape(const Layout& layout);

  /// No more than us(), without a replay: the work of each rank, what has to run before its first
  /// pass, and behind its last.
  double at_least(const std::vector<StagePrice>& costs, const Layout& layout);

  /// From the first forward to the last backward, in microseconds. `costs` has pipeline x
  /// virtual_stages parts. With many micro-batches, two replays with few of them give what one
  /// more takes once the pipeline is full; without a flush it is full all the time.
  double us(const std::vector<StagePrice>& costs, const Layout& layout);

 private:
  struct Compiled {
    std::unique_ptr<PipelineReplay> replay;
    Schedule schedule;
  };
  struct Replayed {
    double us = 0;
    std::int64_t micro_batches = 0;  ///< Of all batches in the schedule.
  };
  Replayed replayed(const PipelineCosts& costs, const Layout& layout, std::int64_t micro_batches);

  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, Compiled> kept_;
  std::map<Key, PipelineShape> shapes_;
};

}  // namespace foretrace

#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "foretrace/generate.h"
#include "foretrace/price.h"

namespace foretrace {

/// The schedule of a layout. Throws Error where it does not serve it.
Schedule schedule_for(const Layout& layout, std::int64_t micro_batches);

/// Pipelines by replay of their schedules. A schedule is compiled once and kept.
class Pipelines {
 public:
  /// From the first forward to the last backward, in microseconds. `costs` has pipeline x
  /// virtual_stages parts. With many micro-batches, two replays with few of them give what one
  /// more takes once the pipeline is full.
  double us(const std::vector<StagePrice>& costs, const Layout& layout);

 private:
  struct Compiled {
    std::unique_ptr<PipelineReplay> replay;
    Schedule schedule;
  };
  double replayed(const PipelineCosts& costs, const Layout& layout, std::int64_t micro_batches);

  std::map<std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>, Compiled> kept_;
};

}  // namespace foretrace

#include "price/pipeline.h"

#include <cmath>
#include <limits>

#include "base/fields/assignments.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kMicrosecond = 1e3;  ///< In nanoseconds.
/// A pipeline of p stages is in its steady state after so many times p micro-batches.
constexpr std::int64_t kFull = 2;

std::string schedule_of(const Layout& layout) {
  const bool is_plain = layout.schedule == "1f1b" || layout.schedule == "interleaved";
  if (layout.virtual_stages > 1 && is_plain) return "interleaved";
  return layout.schedule;
}

/// Ranks send and receive between passes, as Megatron-LM does, except with several chunks, where
/// sends run beside them.
PipelineCosts costs_of(const std::vector<StagePrice>& stages, const Layout& layout) {
  const bool blocks = layout.virtual_stages == 1;
  PipelineCosts costs;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StagePrice& stage = stages[i];
    const double forward = i + 1 < stages.size() ? stage.send : 0;
    const double backward = i > 0 ? stage.send : 0;
    // Where a schedule splits the backward pass, its halves are about as long.
    const double half = stage.backward / 2;
    StageCosts one{.forward = from_microseconds(stage.forward + (blocks ? forward : 0)),
                   .input_gradient = from_microseconds(half + (blocks ? backward : 0)),
                   .weight_gradient = from_microseconds(half),
                   .recompute = from_microseconds(stage.recompute)};
    if (!blocks)
      one.send_forward = from_microseconds(forward),
      one.send_backward = from_microseconds(backward);
    costs.stages.push_back(one);
  }
  return costs;
}

}  // namespace

Schedule schedule_for(const Layout& layout, std::int64_t micro_batches) {
  const std::string name = schedule_of(layout);
  auto rule = find_schedule(name);
  rule->stages = layout.pipeline, rule->micro_batches = micro_batches;
  if (name == "interleaved")
    read_assigned("chunks=" + std::to_string(layout.virtual_stages), *rule);
  return rule->make();
}

double Pipelines::us(const std::vector<StagePrice>& costs, const Layout& layout) {
  const std::int64_t m = layout.micro_batches(), p = layout.pipeline;
  if (p == 1) {
    double sum = 0;
    for (const StagePrice& cost : costs) sum += cost.forward + cost.backward + cost.recompute;
    return static_cast<double>(m) * sum;
  }
  const PipelineCosts given = costs_of(costs, layout);
  const std::int64_t few = kFull * p + m % p;
  if (m <= few + p) return replayed(given, layout, m);
  const double first = replayed(given, layout, few), second = replayed(given, layout, few + p);
  return second + (second - first) / static_cast<double>(p) * static_cast<double>(m - few - p);
}

double Pipelines::replayed(const PipelineCosts& costs, const Layout& layout,
                           std::int64_t micro_batches) {
  const auto key =
      std::make_tuple(schedule_of(layout), layout.pipeline, layout.virtual_stages, micro_batches);
  auto found = kept_.find(key);
  if (found == kept_.end()) {
    Schedule schedule = schedule_for(layout, micro_batches);
    if (static_cast<std::size_t>(schedule.stages) != costs.stages.size())
      throw Error("virtual_stages: " + layout.schedule + " needs " +
                  std::to_string(schedule.stages / schedule.ranks) + ", got " +
                  std::to_string(layout.virtual_stages));
    Compiled compiled{nullptr, std::move(schedule)};
    found = kept_.emplace(key, std::move(compiled)).first;
  }
  Compiled& compiled = found->second;
  if (!compiled.replay || !compiled.replay->serves(costs))
    compiled.replay = std::make_unique<PipelineReplay>(compiled.schedule, costs);
  return static_cast<double>(compiled.replay->run(costs).makespan.count()) / kMicrosecond;
}

}  // namespace foretrace

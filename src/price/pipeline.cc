#include "price/pipeline.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <limits>

#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kMicrosecond = 1e3;  ///< Nanoseconds.
/// A pipeline of p stages has reached its steady state after this many times p micro-batches.
constexpr std::int64_t kFull = 2;
/// Times are rounded to nanoseconds before a replay.
constexpr double kRounding = 1 - 1e-5;

/// Returns enough micro-batches to reach the peak of any schedule that does not keep all.
std::int64_t kept_micro_batches(const Layout& layout) {
  constexpr std::int64_t kEnough = 4;  // Times the number of stages.
  const std::int64_t m = layout.micro_batches(), p = layout.pipeline;
  return std::min(m, kEnough * p + m % p);
}

PipelineShape without_pipeline(std::int64_t parts) {
  PipelineShape shape;
  shape.ranks.resize(1);
  shape.copies.assign(static_cast<std::size_t>(parts), 1);
  for (std::int64_t part = 0; part < parts; ++part) shape.ranks[0].parts.emplace(part, 1.);
  return shape;
}

/// `micro_batches` is the number in one batch.
PipelineShape pipeline_shape(const Schedule& schedule, std::int64_t micro_batches, bool flushes) {
  PipelineShape shape{.ranks = rank_plans(schedule),
                      .splits_backward = schedule.splits_backward,
                      .flushes = flushes,
                      .fills_and_drains = flushes};
  for (const std::vector<Action>& order : schedule.orders) {
    for (const Action& action : order)
      shape.fills_and_drains = shape.fills_and_drains && action.pipeline == 0;
  }
  shape.copies.assign(static_cast<std::size_t>(schedule.stages), 0);
  for (const RankPlan& rank : shape.ranks)
    for (const auto& [part, share] : rank.parts) ++shape.copies[part];
  if (flushes) return shape;
  const auto is_update = [](const Action& action) { return action.kind == ActionKind::update; };
  const auto all = std::ranges::count_if(schedule.orders.front(), is_update);
  shape.updates =
      static_cast<double>(all * micro_batches) / static_cast<double>(schedule.micro_batches);
  return shape;
}

std::string schedule_of(const Layout& layout) {
  const bool is_plain = layout.schedule == "1f1b" || layout.schedule == "interleaved";
  if (layout.virtual_stages > 1 && is_plain) return "interleaved";
  return layout.schedule;
}

/// Ranks send and receive between passes, as in Megatron-LM, except with several chunks, where
/// sends overlap passes.
PipelineCosts costs_of(const std::vector<StagePrice>& stages, const Layout& layout) {
  const bool blocks = layout.virtual_stages == 1;
  PipelineCosts costs;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const StagePrice& stage = stages[i];
    const double forward = i + 1 < stages.size() ? stage.send : 0;
    const double backward = i > 0 ? stage.send : 0;
    // The two halves of a split backward pass take about the same time.
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

std::vector<RankPlan> rank_plans(const Schedule& schedule) {
  const std::vector<std::int32_t> peaks = peaks_in_flight(schedule);
  const std::vector<std::int32_t> versions = versions_kept(schedule);
  std::vector<RankPlan> ranks(schedule.orders.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].in_flight = peaks[rank], ranks[rank].versions = versions[rank];
    const double each = 1 / static_cast<double>(schedule.micro_batches);
    std::int64_t forward_passes = 0;
    for (const Action& action : schedule.orders[rank]) {
      if (action.kind != ActionKind::forward) continue;
      ++forward_passes;
      ranks[rank].parts[static_cast<std::size_t>(action.stage)] +=
          action.half == 0 ? each : each / 2;
    }
    ranks[rank].keeps_all = peaks[rank] == forward_passes;
  }
  return ranks;
}

Schedule schedule_for(const Layout& layout, std::int64_t micro_batches) {
  auto rule = find_schedule(schedule_of(layout));
  rule->stages = layout.pipeline, rule->micro_batches = micro_batches;
  if (rule->serves_any_chunks()) rule->chunks = layout.virtual_stages;
  Schedule schedule = rule->make();
  if (schedule.stages != layout.pipeline * layout.virtual_stages)
    throw Error(fmt::format("virtual_stages: {} needs {}, got {}", layout.schedule,
                            schedule.stages / schedule.ranks, layout.virtual_stages));
  return schedule;
}

const PipelineShape& Pipelines::shape(const Layout& layout) {
  const bool is_alone = layout.pipeline == 1;
  const bool flushes = is_alone || find_schedule(schedule_of(layout))->flushes();
  const std::int64_t m = flushes ? kept_micro_batches(layout) : layout.micro_batches();
  const Key key{schedule_of(layout), layout.pipeline, layout.virtual_stages, is_alone ? 1 : m};
  auto found = shapes_.find(key);
  if (found == shapes_.end()) {
    PipelineShape shape = is_alone ? without_pipeline(layout.virtual_stages)
                                   : pipeline_shape(schedule_for(layout, m), m, flushes);
    found = shapes_.emplace(key, std::move(shape)).first;
  }
  return found->second;
}

double Pipelines::at_least(const std::vector<StagePrice>& costs, const Layout& layout) {
  const auto m = static_cast<double>(layout.micro_batches());
  const PipelineShape& pipeline = shape(layout);
  const bool blocks = layout.virtual_stages == 1 && layout.pipeline > 1;
  const auto passes = [&](std::size_t part) {
    const StagePrice& cost = costs[part];
    const double sends = (part + 1 < costs.size() ? cost.send : 0) + (part > 0 ? cost.send : 0);
    return cost.forward + cost.backward + cost.recompute + (blocks ? sends : 0);
  };
  double most = 0;
  for (const RankPlan& rank : pipeline.ranks) {
    double work = 0;
    for (const auto& [part, share] : rank.parts) work += m * share * passes(part);
    const std::size_t before =
        pipeline.fills_and_drains && !rank.parts.empty() ? rank.parts.begin()->first : 0;
    for (std::size_t part = 0; part < before; ++part) {
      const StagePrice& cost = costs[part];
      work += cost.forward + cost.send;
      // Separate weight gradients may be the only work left when the last backward pass sends its
      // result.
      if (!pipeline.splits_backward)
        work += cost.backward + cost.recompute + (blocks && part == 0 ? 0 : cost.send);
    }
    most = std::max(most, work);
  }
  return most * kRounding;
}

double Pipelines::us(const std::vector<StagePrice>& costs, const Layout& layout) {
  const std::int64_t m = layout.micro_batches(), p = layout.pipeline;
  if (p == 1) {
    double sum = 0;
    for (const StagePrice& cost : costs) sum += cost.forward + cost.backward + cost.recompute;
    return static_cast<double>(m) * sum;
  }
  const PipelineCosts pipeline_costs = costs_of(costs, layout);
  const std::int64_t few = kFull * p + m % p;
  const bool flushes = shape(layout).flushes;
  if (m <= few + p && flushes) return replayed(pipeline_costs, layout, m).us;
  const Replayed first = replayed(pipeline_costs, layout, few),
                 second = replayed(pipeline_costs, layout, few + p);
  const double one_more =
      (second.us - first.us) / static_cast<double>(second.micro_batches - first.micro_batches);
  if (!flushes) {
    const double filling = first.us - one_more * static_cast<double>(first.micro_batches);
    const double drains =
        layout.drain_after > 0 ? filling / static_cast<double>(layout.drain_after) : 0;
    return one_more * static_cast<double>(m) + drains;
  }
  return second.us + one_more * static_cast<double>(m - few - p);
}

Pipelines::Replayed Pipelines::replayed(const PipelineCosts& costs, const Layout& layout,
                                        std::int64_t micro_batches) {
  const Key key{schedule_of(layout), layout.pipeline, layout.virtual_stages, micro_batches};
  auto found = compiled_.find(key);
  if (found == compiled_.end()) {
    Compiled compiled{nullptr, schedule_for(layout, micro_batches)};
    found = compiled_.emplace(key, std::move(compiled)).first;
  }
  Compiled& compiled = found->second;
  if (!compiled.replay || !compiled.replay->serves(costs))
    compiled.replay = std::make_unique<PipelineReplay>(compiled.schedule, costs);
  return {static_cast<double>(compiled.replay->run(costs).makespan.count()) / kMicrosecond,
          compiled.schedule.micro_batches};
}

}  // namespace foretrace

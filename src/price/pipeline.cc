#include "price/pipeline.h"

#include <algorithm>
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

std::vector<RankPlan> rank_plans(const Schedule& schedule) {
  const std::vector<std::int32_t> peaks = peaks_in_flight(schedule);
  const std::vector<std::int32_t> versions = versions_kept(schedule);
  std::vector<RankPlan> ranks(schedule.orders.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank].in_flight = peaks[rank], ranks[rank].versions = versions[rank];
    for (const Action& action : schedule.orders[rank]) {
      if (action.kind == ActionKind::forward)
        ranks[rank].parts.insert(static_cast<std::size_t>(action.stage));
    }
  }
  return ranks;
}

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
  const bool flushes = find_schedule(schedule_of(layout))->flushes();
  if (m < p && !flushes) schedule_for(layout, m);  // Says whether it can be.
  if (m <= few + p && flushes) return replayed(given, layout, m).us;
  const Replayed first = replayed(given, layout, few), second = replayed(given, layout, few + p);
  const double one_more =
      (second.us - first.us) / static_cast<double>(second.micro_batches - first.micro_batches);
  if (!flushes) return one_more * static_cast<double>(m);
  return second.us + one_more * static_cast<double>(m - few - p);
}

const Pipelines::Updates& Pipelines::updates(const Layout& layout) {
  const std::int64_t m = layout.micro_batches(), p = layout.pipeline;
  const auto key = std::make_tuple(schedule_of(layout), p, layout.virtual_stages, m);
  const auto [found, is_new] = updates_.try_emplace(key);
  Updates& updates = found->second;
  if (!is_new) return updates;
  const auto parts = static_cast<std::size_t>(p * layout.virtual_stages);
  updates.copies.assign(parts, 1);
  if (p == 1) {
    updates.ranks.resize(1);
    for (std::size_t part = 0; part < parts; ++part) updates.ranks[0].parts.insert(part);
    return updates;
  }
  updates.beside_passes = !find_schedule(schedule_of(layout))->flushes();
  const Schedule schedule =
      schedule_for(layout, updates.beside_passes ? m : std::min(m, kFull * p + m % p));
  updates.ranks = rank_plans(schedule);
  updates.copies.assign(static_cast<std::size_t>(schedule.stages), 0);
  for (const RankPlan& rank : updates.ranks)
    for (const std::size_t part : rank.parts) ++updates.copies[part];
  if (!updates.beside_passes) return updates;
  const auto is_update = [](const Action& action) { return action.kind == ActionKind::update; };
  const auto all = std::ranges::count_if(schedule.orders.front(), is_update);
  updates.per_batch = static_cast<double>(all * m) / static_cast<double>(schedule.micro_batches);
  return updates;
}

Pipelines::Replayed Pipelines::replayed(const PipelineCosts& costs, const Layout& layout,
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
  return {static_cast<double>(compiled.replay->run(costs).makespan.count()) / kMicrosecond,
          compiled.schedule.micro_batches};
}

}  // namespace foretrace

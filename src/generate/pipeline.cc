#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "generate/generate.h"
#include "generate/pipeline_tasks.h"

namespace foretrace {
namespace {

/// Returns the peak of activations of a rank, which depends only on the order of its passes.
Bytes peak_activations(const std::vector<Action>& order, const PipelineCosts& costs) {
  Bytes now{}, most{};
  for (const Action& action : order) {
    if (!is_pass(action) || action.half == 1) continue;  // Both halves count as done at the second.
    const StageCosts& stage = costs.stages[static_cast<std::size_t>(action.stage)];
    if (action.kind == ActionKind::forward) now += stage.activations;
    if (action.kind == ActionKind::backward) now -= stage.activations;
    if (action.kind == ActionKind::input_gradient)
      now -= stage.activations - stage.activations_for_weight;
    if (action.kind == ActionKind::weight_gradient) now -= stage.activations_for_weight;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

struct PipelineReplay::Impl {
  /// Passes of a rank that take the same time.
  struct EqualPasses {
    std::uint32_t time = 0;
    std::int64_t count = 0;
  };
  /// The part of the tasks that belongs to one rank.
  struct RankWork {
    std::vector<EqualPasses> work;
    std::vector<std::int32_t> stages;  ///< Each stage once.
    /// First and last pass: compiled positions and table indices of their times.
    std::uint32_t first = 0, last = 0, last_time = 0, first_time = 0;
    std::int32_t versions = 1;
    std::int32_t in_flight = 0;
  };

  Impl(const Schedule& from, const PipelineCosts& example)
      : schedule(from), kind(kind_of(from, example)), compiled(compile(example)) {
    const std::vector<std::int32_t> peaks = peaks_in_flight(schedule);
    const std::vector<std::int32_t> versions = versions_kept(schedule);
    for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
      ranks.push_back(rank_work(rank));
      ranks.back().in_flight = peaks[rank];
      ranks.back().versions = versions[rank];
    }
  }

  Compiled compile(const PipelineCosts& example) {
    std::vector<Nanoseconds> table = time_table(schedule, example);
    // The compiled form stores no lags if all of them are 0.
    for (std::int32_t stage = 0; stage < schedule.stages; ++stage)
      table[time_index(TimeRow::send_forward, stage, schedule.stages)] = 1ns;
    const PipelineTasks built = pipeline_tasks(schedule, kind, table, false);
    Compiled made(built.graph);
    tasks = built.tasks;
    order.assign(made.order().begin(), made.order().end());
    times.resize(built.times.size());
    for (std::size_t i = 0; i < built.times.size(); ++i) times[order[i]] = built.times[i];
    if (kind.sends == Sends::overlapping) {
      const Compiled::LagIndices places = made.lag_indices(built.graph);
      for (std::size_t i = 0; i < built.lags.size(); ++i)
        lags.emplace_back(places.of_dependency[i], built.lags[i]);
    }
    return made;
  }

  RankWork rank_work(std::size_t rank) const {
    RankWork rank_work;
    bool has_pass = false;
    const auto& actions = schedule.orders[rank];
    for (std::size_t slot = 0; slot < actions.size(); ++slot) {
      if (!is_pass(actions[slot])) continue;
      const std::uint32_t at = order[index(tasks[rank][slot])];
      const std::uint32_t time = times[at];
      if (!has_pass) rank_work.first = at, rank_work.first_time = time;
      rank_work.last = at;
      has_pass = true;
      const auto equal = std::find_if(rank_work.work.begin(), rank_work.work.end(),
                                      [&](const EqualPasses& work) { return work.time == time; });
      if (equal == rank_work.work.end())
        rank_work.work.push_back({time, 1});
      else
        ++equal->count;
      if (std::find(rank_work.stages.begin(), rank_work.stages.end(), actions[slot].stage) ==
          rank_work.stages.end())
        rank_work.stages.push_back(actions[slot].stage);
    }
    return rank_work;
  }

  Schedule schedule;
  PipelineKind kind;
  std::vector<std::vector<TaskId>> tasks;
  std::vector<std::uint32_t> order;  ///< Compiled position by task.
  std::vector<std::uint32_t> times;  ///< By compiled position, into the table.
  /// Place of the lag, and index of its time in the table.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lags;
  Compiled compiled;
  std::vector<RankWork> ranks;
};

PipelineReplay::PipelineReplay(const Schedule& schedule, const PipelineCosts& example)
    : impl_(std::make_unique<Impl>(schedule, example)) {}
PipelineReplay::PipelineReplay(PipelineReplay&&) noexcept = default;
PipelineReplay& PipelineReplay::operator=(PipelineReplay&&) noexcept = default;
PipelineReplay::~PipelineReplay() = default;

bool PipelineReplay::serves(const PipelineCosts& costs) const {
  return kind_of(impl_->schedule, costs) == impl_->kind;
}

PipelineRun PipelineReplay::run(const PipelineCosts& costs) {
  Impl& impl = *impl_;
  const std::vector<Nanoseconds> table = time_table(impl.schedule, costs);
  const std::span<Nanoseconds> durations = impl.compiled.durations();
  for (std::size_t i = 0; i < durations.size(); ++i) durations[i] = table[impl.times[i]];
  const std::span<std::int64_t> lags = impl.compiled.lags();
  if (!lags.empty()) {  // Empty if no two ranks send to each other.
    for (const auto& [place, time] : impl.lags) lags[place] = table[time].count();
  }
  PipelineRun run;
  run.makespan = impl.compiled.replay();
  const std::span<const Nanoseconds> finish = impl.compiled.finish();
  for (std::size_t rank = 0; rank < impl.ranks.size(); ++rank) {
    const Impl::RankWork& rank_work = impl.ranks[rank];
    RankRun& one = run.ranks.emplace_back();
    one.versions = rank_work.versions;
    // A rank without passes, which a schedule from a file may have.
    if (rank_work.work.empty()) continue;
    for (const Impl::EqualPasses& work : rank_work.work) one.busy += table[work.time] * work.count;
    one.begin = finish[rank_work.first] - table[rank_work.first_time];
    one.end = finish[rank_work.last];
    one.peak_in_flight = rank_work.in_flight;
    one.peak_activations = peak_activations(impl.schedule.orders[rank], costs);
    for (const std::int32_t stage : rank_work.stages)
      one.parameters.count +=
          costs.stages[static_cast<std::size_t>(stage)].parameters.count * rank_work.versions;
  }
  return run;
}

double PipelineRun::bubble_rate() const {
  Nanoseconds busy{0}, longest{0};
  for (const RankRun& rank : ranks) {
    busy += rank.busy;
    longest = std::max(longest, rank.span());
  }
  if (longest == 0ns) return 0;
  const double whole = static_cast<double>(longest.count()) * static_cast<double>(ranks.size());
  return std::max(0.0, 1 - static_cast<double>(busy.count()) / whole);
}

PipelineGraph build_pipeline(const Schedule& schedule, const PipelineCosts& costs) {
  PipelineTasks built =
      pipeline_tasks(schedule, kind_of(schedule, costs), time_table(schedule, costs), true);
  return {std::move(built.graph), std::move(built.tasks)};
}

PipelineRun run_pipeline(const Schedule& schedule, const PipelineCosts& costs) {
  return PipelineReplay(schedule, costs).run(costs);
}

}  // namespace foretrace

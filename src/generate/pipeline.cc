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
  struct Work {
    std::uint32_t time = 0;
    std::int64_t count = 0;
  };
  /// The part of the tasks that belongs to one rank.
  struct Own {
    std::vector<Work> work;
    std::vector<std::int32_t> stages;  ///< Each stage once.
    /// First and last pass: compiled positions and table indices of their times.
    std::uint32_t first = 0, last = 0, last_time = 0, first_time = 0;
    std::int32_t versions = 1;
    std::int32_t in_flight = 0;
  };

  Impl(const Schedule& of, const PipelineCosts& like)
      : schedule(of), kind(kind_of(of, like)), compiled(compile(like)) {
    const std::vector<std::int32_t> peaks = peaks_in_flight(schedule);
    const std::vector<std::int32_t> versions = versions_kept(schedule);
    for (std::size_t rank = 0; rank < schedule.orders.size(); ++rank) {
      ranks.push_back(own_part(rank));
      ranks.back().in_flight = peaks[rank];
      ranks.back().versions = versions[rank];
    }
  }

  Compiled compile(const PipelineCosts& like) {
    std::vector<Nanoseconds> table = time_table(schedule, like);
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
      const Compiled::LagPlaces places = made.lag_places(built.graph);
      for (std::size_t i = 0; i < built.lags.size(); ++i)
        lags.emplace_back(places.of_dependency[i], built.lags[i]);
    }
    return made;
  }

  Own own_part(std::size_t rank) const {
    Own own;
    bool any = false;
    const auto& actions = schedule.orders[rank];
    for (std::size_t slot = 0; slot < actions.size(); ++slot) {
      if (!is_pass(actions[slot])) continue;
      const std::uint32_t at = order[index(tasks[rank][slot])];
      const std::uint32_t time = times[at];
      if (!any) own.first = at, own.first_time = time;
      own.last = at;
      any = true;
      const auto same = std::find_if(own.work.begin(), own.work.end(),
                                     [&](const Work& work) { return work.time == time; });
      if (same == own.work.end())
        own.work.push_back({time, 1});
      else
        ++same->count;
      if (std::find(own.stages.begin(), own.stages.end(), actions[slot].stage) == own.stages.end())
        own.stages.push_back(actions[slot].stage);
    }
    return own;
  }

  Schedule schedule;
  PipelineKind kind;
  std::vector<std::vector<TaskId>> tasks;
  std::vector<std::uint32_t> order;  ///< Compiled position by task.
  std::vector<std::uint32_t> times;  ///< By compiled position, into the table.
  /// Place of the lag, and index of its time in the table.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> lags;
  Compiled compiled;
  std::vector<Own> ranks;
};

PipelineReplay::PipelineReplay(const Schedule& schedule, const PipelineCosts& like)
    : impl_(std::make_unique<Impl>(schedule, like)) {}
PipelineReplay::PipelineReplay(PipelineReplay&&) noexcept = default;
PipelineReplay& PipelineReplay::operator=(PipelineReplay&&) noexcept = default;
PipelineReplay::~PipelineReplay() = default;

std::size_t PipelineReplay::task_count() const { return impl_->compiled.task_count(); }

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
    const Impl::Own& own = impl.ranks[rank];
    RankRun& one = run.ranks.emplace_back();
    one.versions = own.versions;
    // A rank without passes, which a schedule from a file may have.
    if (own.work.empty()) continue;
    for (const Impl::Work& work : own.work) one.busy += table[work.time] * work.count;
    one.begin = finish[own.first] - table[own.first_time];
    one.end = finish[own.last];
    one.peak_in_flight = own.in_flight;
    one.peak_activations = peak_activations(impl.schedule.orders[rank], costs);
    for (const std::int32_t stage : own.stages)
      one.parameters.count +=
          costs.stages[static_cast<std::size_t>(stage)].parameters.count * own.versions;
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

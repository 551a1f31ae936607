#include "question/check/job/figures.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <fmt/core.h>
#include <iterator>
#include <map>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "question/check/job/changes.h"
#include "question/check/job/words.h"

namespace foretrace {
namespace {

std::int64_t share_of(std::int64_t part, std::int64_t whole) {
  constexpr double kShareWhole = 1'000'000;
  return whole <= 0
             ? 0
             : std::llround(static_cast<double>(part) / static_cast<double>(whole) * kShareWhole);
}

/// The share of the time of copies and collectives that is hidden behind kernels, in each step that
/// has any.
StepValues hidden_shares(const Graph& graph, const Timeline& timeline) {
  const SteadySteps steps(graph);
  const KernelOverlap overlap(graph, timeline);
  StepValues moved(steps.count(), 0), hidden(steps.count(), 0), shares;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    const std::optional<std::size_t> column = steps.column(task.step);
    if (graph.removed(TaskId{i}) || !leaves_device(task.kind) || !column) continue;
    moved[*column] += task.duration.count();
    hidden[*column] += overlap.hidden(TaskId{i}).count();
  }
  for (std::size_t step = 0; step < steps.count(); ++step) {
    if (moved[step] > 0) shares.push_back(share_of(hidden[step], moved[step]));
  }
  return shares;
}

/// How long the transfers of collectives take at most, without the waits for other ranks that
/// recorded durations contain. If a transfer takes T(b) = latency + b / bandwidth on a stream,
/// then for each recorded collective of b' bytes, which takes t' >= T(b'),
///
///     T(b) <= t'              for b <= b'
///     T(b) <= t' * b / b'     for b >  b'
class Transfers {
 public:
  explicit Transfers(const Graph& graph) : graph_(graph) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(TaskId{i});
      if (task.kind != TaskKind::collective || graph.removed(TaskId{i})) continue;
      const auto [found, added] = most_.try_emplace(key_of(TaskId{i}), task.duration);
      if (!added) found->second = std::min(found->second, task.duration);
    }
    if (most_.empty()) return;
    for (auto larger = std::prev(most_.end()); larger != most_.begin(); --larger) {
      const auto smaller = std::prev(larger);
      if (are_alike(smaller->first, larger->first))
        smaller->second = std::min(smaller->second, larger->second);
    }
    for (auto smaller = most_.begin(); std::next(smaller) != most_.end(); ++smaller) {
      const auto larger = std::next(smaller);
      if (are_alike(smaller->first, larger->first) && smaller->first.bytes > 0)
        larger->second = std::min(larger->second,
                                  scaled(smaller->second, growth(smaller->first, larger->first)));
    }
  }

  bool empty() const { return most_.empty(); }
  /// The duration of a task; of a collective, at most that of its transfer.
  Nanoseconds own_time(TaskId id) const {
    const Task& task = graph_.task(id);
    if (task.kind != TaskKind::collective) return task.duration;
    const auto found = most_.find(key_of(id));
    return found == most_.end() ? task.duration : std::min(task.duration, found->second);
  }

 private:
  /// Each group of ranks has a stream of its own.
  struct Key {
    LaneId lane{};
    NameId name{};
    std::int64_t bytes = 0;
    auto operator<=>(const Key&) const = default;
  };

  Key key_of(TaskId id) const {
    const Task& task = graph_.task(id);
    return {graph_.lane_of(id), task.name, task.bytes.count};
  }
  static bool are_alike(const Key& a, const Key& b) { return a.lane == b.lane && a.name == b.name; }
  static double growth(const Key& smaller, const Key& larger) {
    return static_cast<double>(larger.bytes) / static_cast<double>(smaller.bytes);
  }

  const Graph& graph_;
  std::map<Key, Nanoseconds> most_;
};

/// The hidden share in a replay in which collectives take as long as their transfers: how long this
/// rank waits for others is a matter of theirs, and moves the work behind it.
StepValues own_overlap(const MeasuredJob& measured) {
  const Transfers transfers(measured.job.graph);
  if (transfers.empty()) return hidden_shares(measured.job.graph, measured.job.timeline);
  Graph graph = measured.job.graph.clone();
  for (std::uint32_t i = 0; i < graph.task_count(); ++i)
    graph.task(TaskId{i}).duration = transfers.own_time(TaskId{i});
  return hidden_shares(graph, simulate(graph, {.reasons = false, .memory = false}));
}

/// The hidden share in a replay in which hosts take no time, nothing is delayed, and all ranks
/// arrive together. Shares are weighted by time, so short work hardly matters.
StepValues possible_overlap(const MeasuredJob& measured) {
  Graph graph = measured.job.graph.clone();
  const Transfers transfers(measured.job.graph);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    Task& task = graph.task(TaskId{i});
    task.duration = runs_on_device(task.kind) ? transfers.own_time(TaskId{i}) : 0ns;
    task.gap = 0ns;
    task.tail = {};
  }
  graph.change_dependencies([](Dependency& wait) { wait.lag = 0ns, wait.tail = {}; });
  return hidden_shares(graph, simulate(graph, {.reasons = false, .memory = false}));
}

/// The length of each single step, although the step time counts whole periods.
StepValues single_lengths(const MeasuredJob& job) {
  const StepTimes& times = job.recorded;
  StepValues single;
  for (std::size_t i = times.first; i < times.each.size(); ++i)
    single.push_back(times.each[i].count());
  return single.empty() ? counted_lengths(times) : single;
}

/// How much longer each step is than the median of the steps at its place in the period, as a share
/// of that median. Returns nothing if there are too few steps to know the usual length.
StepValues step_excesses(const MeasuredJob& job) {
  const StepTimes& times = job.recorded;
  const std::vector<UsualLength> steps = usual_lengths(times);
  if (steps.size() < kFewSteps * static_cast<std::size_t>(times.period)) return {};
  StepValues shares;
  for (const UsualLength& step : steps)
    shares.push_back(std::max<std::int64_t>(0, share_of(step.more().count(), step.usual.count())));
  return shares;
}

StepValues replay_error(const MeasuredJob& job) {
  const Nanoseconds recorded = job.recorded.step_time;
  return {share_of(std::abs((job.replayed.step_time - recorded).count()), recorded.count())};
}

StepValues stall_of_all(const MeasuredJob& job) {
  const InputStalls& stalls = job.stalls;
  return {
      (stalls.reading.stall + stalls.preparing.stall + stalls.waiting.stall + stalls.unknown.stall)
          .count()};
}

StepValues peak(const std::optional<Bytes>& bytes) {
  return bytes && *bytes > Bytes{} ? StepValues{bytes->count} : StepValues{};
}

using TaskRef = const CountedTask&;
using ChangeRef = const WorkChange&;

template <TaskKind kKind>
bool is_kind(TaskKind kind) {
  return kind == kKind;
}
constexpr auto kIsKernel = is_kind<TaskKind::kernel>;
constexpr auto kIsCollective = is_kind<TaskKind::collective>;

bool is_slower(ChangeRef c) { return c.added() > 0ns; }
bool is_exposed(ChangeRef c) { return c.exposed() > 0ns || is_slower(c); }
bool loses_overlap(ChangeRef c) {
  return is_event_wait(c) || (is_copy_kind(c.kind) && (c.exposed() > 0ns || c.has_more_tasks()));
}

constexpr FigureRule kFigures[] = {
    {.entry = {.name = kStepTime,
               .says = "a training step",
               .unit = FigureUnit::time,
               .limits = {.fail = "5%", .warn = "3%"}},
     .of_job = [](const MeasuredJob& job) { return counted_lengths(job.recorded); },
     .weighs = [](ChangeRef c) { return is_exposed(c) || c.has_more_tasks() || c.is_moved_wait(); },
     .slows_with = [](TaskKind) { return true; }},
    {.entry = {.name = kMeanStep,
               .says = "the mean of all steps, which includes pauses in some of them",
               .unit = FigureUnit::time,
               .value = FigureValue::mean,
               .limits = {.warn = "5%"}},
     .of_job = single_lengths,
     .has_own_causes = true},
    {.entry = {.name = kSlowestStep,
               .says = "the slowest step",
               .unit = FigureUnit::time,
               .value = FigureValue::greatest,
               .limits = {.warn = "10%"}},
     .of_job = single_lengths,
     .has_own_causes = true},
    {.entry = {.name = kSlowestExcess,
               .says = "how much longer the slowest step takes than the median step of the same "
                       "recording",
               .unit = FigureUnit::share,
               .value = FigureValue::greatest,
               .varies_with_times = true,
               .limits = {.warn = "10%"}},
     .of_job = step_excesses,
     .has_own_causes = true},
    {.entry = {.name = "kernel_time",
               .says = "work of kernels in a step",
               .unit = FigureUnit::time,
               .limits = {.fail = "5%", .warn = "3%"}},
     .of_kind = kIsKernel,
     .slows_with = kIsKernel},
    {.entry = {.name = "kernel_pace",
               .says = "time of a typical kernel, relative to the same kernel in the baseline",
               .unit = FigureUnit::share,
               .varies_with_times = true,
               .limits = {.warn = "2%"}},
     .against = [](const JobSummary& before,
                   const JobSummary& now) { return kernel_pace(before.kernels, now.kernels); },
     .slows_with = kIsKernel},
    {.entry = {.name = kSlowerKernels,
               .says = "kernels of one name and shape that take longer than others, beyond noise",
               .varies_with_times = true,
               .limits = {.warn = "+0"}},
     .against =
         [](const JobSummary& before, const JobSummary& now) {
           return StepValues{std::ssize(slower_kernels(before.kernels, now.kernels))};
         },
     .has_own_causes = true},
    {.entry = {.name = "slower_places",
               .says = "places where the same number of kernels takes longer",
               .varies_with_times = true,
               .limits = {.warn = "+0"}},
     .against = [](const JobSummary& before,
                   const JobSummary& now) { return StepValues{slower_places(before, now)}; },
     .weighs = [](ChangeRef c) { return c.stands_out; }},
    {.entry = {.name = kCollectiveTime,
               .says = "time of collectives in a step",
               .unit = FigureUnit::time,
               .limits = {.warn = "10%", .has_floor = true}},
     .of_kind = kIsCollective,
     .needs_collectives = true},
    {.entry = {.name = "copy_time",
               .says = "time of copies in a step",
               .unit = FigureUnit::time,
               .limits = {.warn = "10%", .has_floor = true}},
     .of_kind = is_copy_work},
    {.entry = {.name = "host_time",
               .says = "work per step of host threads that launch work, and recorded work of those "
                       "they wait for, without loading",
               .unit = FigureUnit::time,
               .limits = {.warn = "10%", .has_floor = true}},
     .of_task = [](TaskRef c) { return c.is_step_work && c.task.kind != TaskKind::input; },
     .weighs = [](ChangeRef c) { return runs_on_host(c.kind) && is_slower(c); },
     .slows_with = [](TaskKind kind) { return kind != TaskKind::kernel; },
     .since_schema = 2},
    {.entry = {.name = "input_stall",
               .says = "waiting for input in a step, with nothing on the device",
               .unit = FigureUnit::time,
               .limits = {.fail = "10%", .warn = "5%", .has_floor = true}},
     .of_job = stall_of_all,
     .weighs = [](ChangeRef c) { return c.kind == TaskKind::input && is_slower(c); }},
    {.entry = {.name = "exposed_copy",
               .says = "time of a step in which only copies run",
               .unit = FigureUnit::time,
               .limits = {.warn = "10%", .has_floor = true}},
     .of_job = [](const MeasuredJob& job) { return StepValues{job.parts.copy.count()}; },
     .weighs = [](ChangeRef c) { return is_copy_work(c.kind) && is_exposed(c); }},
    {.entry = {.name = kExposedCommunication,
               .says = "time of a step in which only collectives run",
               .unit = FigureUnit::time,
               .limits = {.warn = "10%", .has_floor = true}},
     .of_job = [](const MeasuredJob& job) { return StepValues{job.parts.communication.count()}; },
     .needs_collectives = true,
     .weighs = [](ChangeRef c) { return kIsCollective(c.kind) && is_exposed(c); }},
    {.entry = {.name = "overlap",
               .says = "share of copies and collectives hidden behind kernels, as if no other rank "
                       "came late",
               .unit = FigureUnit::share,
               .less_is_worse = true,
               .varies_with_times = true,
               .limits = {.fail = "-10%", .warn = "-5%"}},
     .of_job = own_overlap,
     .weighs = loses_overlap,
     .since_schema = 2},
    {.entry = {.name = "overlap_possible",
               .says = "share of copies and collectives that could run beside kernels if the host "
                       "took no time",
               .unit = FigureUnit::share,
               .less_is_worse = true,
               .limits = {.fail = "-5%"}},
     .of_job = possible_overlap,
     .weighs = loses_overlap,
     .since_schema = 2},
    {.entry = {.name = "kernels",
               .says = "kernels in a step",
               .limits = {.fail = "1%", .warn = "+0"}},
     .of_kind = kIsKernel},
    {.entry = {.name = "launches",
               .says = "launches in a step",
               .limits = {.fail = "1%", .warn = "+0"}},
     .of_kind = is_kind<TaskKind::launch>},
    {.entry = {.name = "syncs",
               .says = "calls in a step that wait for the device",
               .limits = {.fail = "+0"}},
     .of_task = [](TaskRef c) { return c.begins_call && is_synchronizing(c.job, c.id); },
     .weighs = [](ChangeRef c) { return c.kind == TaskKind::sync && c.has_more_tasks(); }},
    {.entry = {.name = "event_waits",
               .says = "waits of streams for events in a step",
               .limits = {.fail = "+0"}},
     .of_task = [](TaskRef c) { return c.begins_call && waits_for_event(c.job.graph.name(c.id)); },
     .weighs = is_event_wait},
    {.entry = {.name = "copies",
               .says = "copies in a step",
               .limits = {.fail = "1%", .warn = "+0"}},
     .of_kind = is_copy_work},
    {.entry = {.name = "pageable_copies",
               .says = "copies in a step from or to pageable memory",
               .limits = {.fail = "+0"}},
     .of_task =
         [](TaskRef c) { return is_copy_work(c.task.kind) && is_pageable(c.job.graph.name(c.id)); },
     .weighs =
         [](ChangeRef c) { return is_copy_work(c.kind) && c.after.pageable > c.before.pageable; }},
    {.entry = {.name = "collectives", .says = "collectives in a step", .limits = {.fail = "+0"}},
     .of_kind = kIsCollective},
    {.entry = {.name = "bytes_copied",
               .says = "bytes copied in a step",
               .unit = FigureUnit::bytes,
               .limits = {.fail = "1%"}},
     .of_kind = is_copy_work},
    {.entry = {.name = "bytes_communicated",
               .says = "bytes passed to collectives in a step",
               .unit = FigureUnit::bytes,
               .limits = {.fail = "1%"}},
     .of_kind = kIsCollective,
     .needs_collectives = true},
    {.entry = {.name = kPeakAllocated,
               .says = "most memory allocated on a device",
               .unit = FigureUnit::bytes,
               .limits = {.fail = "2%", .warn = "1%"}},
     .of_memory = [](const MeasuredMemory& m) { return peak(greatest_allocated(m.peaks)); },
     .has_own_causes = true},
    {.entry = {.name = kPeakReserved,
               .says = "most memory that the allocator reserves on a device",
               .unit = FigureUnit::bytes,
               .limits = {.fail = "5%", .warn = "2%"}},
     .of_memory = [](const MeasuredMemory& m) { return peak(greatest_reserved(m.peaks)); },
     .has_own_causes = true},
    {.entry = {.name = kMemoryGrowth,
               .says = "memory that stays allocated from step to step",
               .unit = FigureUnit::bytes,
               .limits = {.fail = "1MB"}},
     .of_memory =
         [](const MeasuredMemory& m) {
           return m.growth ? StepValues{m.growth->count} : StepValues{};
         },
     .has_own_causes = true,
     .may_fall = true},
    {.entry = {.name = "replay_error",
               .says = "error of the unmodified replay",
               .unit = FigureUnit::share,
               .limits = {.fail = "1%"}},
     .of_job = replay_error},
};

}  // namespace

std::span<const FigureRule> figure_rules() { return kFigures; }

const FigureRule& figure_rule(std::string_view name) {
  const auto found = std::find_if(std::begin(kFigures), std::end(kFigures),
                                  [&](const FigureRule& rule) { return rule.entry.name == name; });
  CHECK(found != std::end(kFigures));
  return *found;
}

bool weighs_on(const WorkChange& change, const FigureRule& rule) {
  if (rule.weighs != nullptr) return rule.weighs(change);
  if (rule.of_kind == nullptr || !rule.of_kind(change.kind)) return false;
  if (rule.entry.unit == FigureUnit::time) return is_slower(change);
  if (rule.entry.unit == FigureUnit::bytes) return change.after.bytes > change.before.bytes;
  return change.has_more_tasks();
}

const std::vector<FigureEntry>& figure_entries() {
  static const std::vector<FigureEntry> entries = [] {
    std::vector<FigureEntry> all;
    for (const FigureRule& rule : kFigures) all.push_back(rule.entry);
    return all;
  }();
  return entries;
}

const FigureEntry& figure_entry(std::string_view name) {
  std::vector<std::string_view> names;
  for (const FigureEntry& entry : figure_entries()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(fmt::format("there is no metric '{}'{}; the metrics are {}", name,
                          did_you_mean(name, names), joined(names)));
}

}  // namespace foretrace

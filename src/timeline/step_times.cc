#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/statistics.h"
#include "base/wide.h"
#include "timeline/step_distances.h"

namespace foretrace {
namespace {

/// An outlier is left out only if at least this many other steps remain.
constexpr std::size_t kMinOthers = 3;

/// The best candidate of one category for the start of a step.
struct Candidate {
  TaskId task = kNoTask;
  Nanoseconds time{};

  void offer(TaskId offered, Nanoseconds at) {
    if (task == kNoTask || at < time || (at == time && offered < task)) task = offered, time = at;
  }
};

struct Candidates {
  Candidate launched;  ///< Ordered by the start of the launching task.
  Candidate device;
  Candidate host;
};

bool belongs_to_step(const Graph& graph, TaskId task) {
  const std::int32_t step = graph.task(task).step;
  return step >= 0 && static_cast<std::size_t>(step) < graph.steps().size() && !graph.removed(task);
}

/// Considers only device tasks on the lane `only`, or all of them if it is kNoLane.
std::vector<Candidates> candidates(const Graph& graph, const Timeline& timeline, LaneId only_lane) {
  std::vector<Candidates> steps(graph.steps().size());
  const auto left_out = [&](TaskId task) {
    return only_lane != kNoLane && graph.lane_of(task) != only_lane;
  };
  const auto count = static_cast<std::uint32_t>(graph.task_count());
  for (std::uint32_t i = 0; i < count; ++i) {
    const TaskId task{i};
    const Task& attributes = graph.task(task);
    if (attributes.step < 0 || !belongs_to_step(graph, task)) continue;
    Candidates& step = steps[static_cast<std::size_t>(attributes.step)];
    const bool on_device = runs_on_device(attributes.kind);
    if (on_device && left_out(task)) continue;
    (on_device ? step.device : step.host).offer(task, timeline.start[i]);
  }
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why != Rule::launch || wait.provenance != Provenance::measured) return;
    if (!belongs_to_step(graph, wait.after) || !runs_on_device(graph.task(wait.after).kind)) return;
    if (left_out(wait.after)) return;
    Candidates& step = steps[static_cast<std::size_t>(graph.task(wait.after).step)];
    step.launched.offer(wait.after, timeline.start[index(wait.before)]);
  });
  return steps;
}

/// Returns the lanes that launch the device tasks of a step.
std::set<LaneId> launching_lanes(const Graph& graph, std::int32_t step) {
  std::set<LaneId> lanes;
  graph.each_dependency([&](const Dependency& wait) {
    const Task& task = graph.task(wait.after);
    if (wait.why != Rule::launch || wait.provenance != Provenance::measured) return;
    if (task.step != step || graph.removed(wait.after) || !runs_on_device(task.kind)) return;
    lanes.insert(graph.lane_of(wait.before));
  });
  return lanes;
}

/// When the threads that launch a step begin it; Nanoseconds::max() if none is known.
Nanoseconds host_begin(const Graph& graph, const Timeline& timeline, std::int32_t step) {
  Nanoseconds begin = Nanoseconds::max();
  for (const LaneId lane : launching_lanes(graph, step)) {
    if (const TaskId first = first_of_step(graph, lane, step, false); first != kNoTask)
      begin = std::min(begin, timeline.start[index(first)]);
  }
  return begin;
}

StepEnd end_of(const Graph& graph, const Timeline& timeline, const std::vector<StepMark>& marks) {
  const StepMark& last = marks.back();
  StepEnd end;
  const bool on_device = runs_on_device(graph.task(last.task).kind);
  for (const TaskId task : tasks_of_step(graph, last)) {
    Nanoseconds& latest = runs_on_device(graph.task(task).kind) == on_device ? end.work : end.host;
    latest = std::max(latest, timeline.finish[index(task)]);
  }
  if (!on_device) return end;
  end.host_begin = host_begin(graph, timeline, last.step);
  end.first_host_begin = host_begin(graph, timeline, marks.front().step);
  for (const LaneId lane : launching_lanes(graph, last.step)) {
    for (const auto& [front, waits] : waits_for_device(graph, lane, last.step))
      end.waited += timeline.start[index(waits)] - timeline.finish[index(front)];
  }
  return end;
}

/// Moves marks on the device to where their steps begin; see begin_of_step().
void move_to_begins(const Graph& graph, const Timeline& timeline, LaneId only_lane,
                    std::vector<StepMark>& marks) {
  for (StepMark& mark : marks) {
    if (!runs_on_device(graph.task(mark.task).kind)) continue;
    Nanoseconds backlog = Nanoseconds::min();
    for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
      if (only_lane != kNoLane && only_lane != LaneId{i}) continue;
      const TaskId front = in_front_of_step(graph, LaneId{i}, mark.step);
      if (front != kNoTask) backlog = std::max(backlog, timeline.finish[index(front)]);
      const TaskId pinned = pinned_begin(graph, LaneId{i}, mark.step);
      if (pinned != kNoTask) backlog = std::max(backlog, timeline.start[index(pinned)]);
    }
    mark.time = begin_of_step(mark.time, host_begin(graph, timeline, mark.step), backlog);
  }
}

std::vector<StepMark> marks_on(const Graph& graph, const Timeline& timeline, LaneId only_lane) {
  std::vector<StepMark> marks;
  const std::vector<Candidates> steps = candidates(graph, timeline, only_lane);
  std::size_t with_device = 0, with_tasks = 0;
  for (const Candidates& step : steps) {
    with_device += step.device.task != kNoTask ? 1 : 0;
    with_tasks += step.device.task != kNoTask || step.host.task != kNoTask ? 1 : 0;
  }
  const bool by_device = marked_by_device(with_device, with_tasks);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TaskId task = by_device ? steps[i].launched.task : steps[i].host.task;
    if (task == kNoTask) task = steps[i].device.task;
    if (task == kNoTask) continue;
    marks.push_back({static_cast<std::int32_t>(i), task, timeline.start[index(task)]});
  }
  if (last_counts(marks.size())) move_to_begins(graph, timeline, only_lane, marks);
  return marks;
}

bool they_rise(const std::vector<StepMark>& marks) {
  return std::is_sorted(marks.begin(), marks.end(),
                        [](const StepMark& a, const StepMark& b) { return a.time < b.time; });
}

/// Returns the stream that has work in the most steps; of several, the first.
LaneId steadiest_stream(const Graph& graph) {
  LaneId steadiest = kNoLane;
  std::size_t most = 0;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (!can_mark_steps(graph.lane(LaneId{i}))) continue;
    const std::size_t count = device_steps_on(graph, LaneId{i});
    if (count > most) most = count, steadiest = LaneId{i};
  }
  return steadiest;
}

/// Returns the stream whose marks are the steps if those of all streams together are not, or
/// kNoLane. If marks fall, they are of several streams, some of which run ahead of others. If a
/// stream has more work in the steps between the second mark and the last than fits between them,
/// input copies on their own stream run steps ahead of the work.
LaneId only_stream(const Graph& graph, const std::vector<StepMark>& marks) {
  if (marks.size() < 3) return kNoLane;
  if (!they_rise(marks)) return steadiest_stream(graph);
  LaneId overfull = kNoLane;
  Nanoseconds most = room_between(marks[1].time, marks.back().time);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (!can_mark_steps(graph.lane(LaneId{i}))) continue;
    const Nanoseconds work = work_in(graph, LaneId{i}, steps_between(marks));
    if (work > most) most = work, overfull = LaneId{i};
  }
  return overfull;
}

std::size_t period_within(const StepRule& rule, std::size_t distances) {
  return std::clamp<std::size_t>(static_cast<std::size_t>(rule.period), 1, distances);
}

/// Computes mean, spread and the other statistics of the steps that count.
void summarize(StepTimes& times) {
  std::vector<Nanoseconds> sorted = times.counted;
  std::sort(sorted.begin(), sorted.end());
  times.step_time = median(sorted);
  times.fastest = sorted.front(), times.slowest = sorted.back();
  // A sum of differences does not overflow.
  Nanoseconds sum{0};
  for (const Nanoseconds time : sorted) sum += time - times.fastest;
  times.mean = times.fastest + sum / static_cast<std::int64_t>(sorted.size());
  const Nanoseconds range = times.slowest - times.fastest;
  if (times.step_time > 0ns)
    times.spread =
        static_cast<double>(range.count()) / static_cast<double>(times.step_time.count());
}

/// Returns a number for each step, the same for steps with the same work: compared by the names of
/// their device tasks, or of their host tasks if these mark the steps.
std::vector<std::size_t> kinds_of_steps(const Graph& graph, std::span<const StepMark> marks) {
  const bool on_device = runs_on_device(graph.task(marks.front().task).kind);
  std::vector<std::map<NameId, std::size_t>> work(graph.steps().size());
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (!belongs_to_step(graph, TaskId{i}) || runs_on_device(task.kind) != on_device) continue;
    ++work[static_cast<std::size_t>(task.step)][task.name];
  }
  std::map<std::map<NameId, std::size_t>, std::size_t> numbers;
  std::vector<std::size_t> kinds;
  for (const StepMark& mark : marks) {
    const auto& names = work[static_cast<std::size_t>(mark.step)];
    kinds.push_back(numbers.try_emplace(names, numbers.size()).first->second);
  }
  return kinds;
}

/// Returns after how many steps the same work recurs; 1 unless a longer period makes far more steps
/// equal. A period must have been recorded twice, and the first step may do more than others.
std::int32_t period_of(const std::vector<std::size_t>& kinds) {
  constexpr std::size_t kLongest = 64;
  constexpr double kMaxDiffering = 0.25;  // As a share of the steps that differ from the next one.
  const auto differing = [&](std::size_t distance) {
    const std::size_t first = kinds.size() > 2 * distance ? 1 : 0;
    std::size_t count = 0;
    for (std::size_t i = first; i + distance < kinds.size(); ++i)
      count += kinds[i] != kinds[i + distance] ? 1 : 0;
    return static_cast<double>(count) / static_cast<double>(kinds.size() - distance - first);
  };
  if (kinds.size() < 4) return 1;
  const double next = differing(1);
  for (std::size_t period = 2; next > 0 && period <= std::min(kLongest, kinds.size() / 2); ++period)
    if (differing(period) <= kMaxDiffering * next) return static_cast<std::int32_t>(period);
  return 1;
}

bool first_is_outlier(const std::vector<Nanoseconds>& times) {
  if (times.size() <= kMinOthers) return false;
  const std::vector<Nanoseconds> others(times.begin() + 1, times.end());
  const auto [least, most] = std::minmax_element(others.begin(), others.end());
  const Nanoseconds off = times.front() - median(others);
  return std::max(off, -off) > *most - *least;
}

/// The steps of a timeline: where each begins, and where the last one ends, if it counts.
struct Steps {
  Steps(const Graph& graph, const Timeline& timeline) : marks(step_marks(graph, timeline)) {
    if (!marks.empty() && last_counts(marks.size())) end = end_of(graph, timeline, marks);
  }

  /// REQUIRES: at least one mark.
  StepTimes times(const StepRule& rule) const {
    std::vector<Nanoseconds> begins;
    for (const StepMark& mark : marks) begins.push_back(mark.time);
    if (!end) return times_between(rule, begins, {});
    return times_between(rule, begins,
                         {end->length(begins.front(), begins.back()), end->host_span()});
  }

  std::vector<StepMark> marks;
  std::optional<StepEnd> end;
};

}  // namespace

std::vector<StepMark> step_marks(const Graph& graph, const Timeline& timeline) {
  std::vector<StepMark> marks = marks_on(graph, timeline, kNoLane);
  const LaneId only = only_stream(graph, marks);
  if (only != kNoLane) marks = marks_on(graph, timeline, only);
  for (std::size_t i = 1; i < marks.size(); ++i)
    marks[i].time = std::max(marks[i].time, marks[i - 1].time);
  return marks;
}

bool can_mark_steps(const Lane& lane) {
  return lane.kind == LaneKind::stream && lane.discipline == Discipline::fifo;
}

TaskId first_of_step(const Graph& graph, LaneId lane, std::int32_t step, bool on_device) {
  TaskId task = graph.first(lane);
  while (task != kNoTask &&
         (graph.task(task).step != step || runs_on_device(graph.task(task).kind) != on_device))
    task = graph.next(task);
  return task;
}

TaskId in_front_of_step(const Graph& graph, LaneId lane, std::int32_t step) {
  const TaskId first = first_of_step(graph, lane, step, true);
  return first == kNoTask ? kNoTask : graph.previous(first);
}

TaskId pinned_begin(const Graph& graph, LaneId lane, std::int32_t step) {
  const TaskId first = first_of_step(graph, lane, step, true);
  bool pinned = false;
  if (first != kNoTask) {
    graph.each_wait(first,
                    [&](const Dependency& wait) { pinned |= wait.why == Rule::recorded_start; });
  }
  return pinned ? first : kNoTask;
}

std::vector<std::pair<TaskId, TaskId>> waits_for_device(const Graph& graph, LaneId lane,
                                                        std::int32_t step) {
  std::vector<std::pair<TaskId, TaskId>> waits;
  TaskId front = kNoTask;
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    if (graph.task(task).step != step) continue;
    bool for_device = false;
    graph.each_wait(task, [&](const Dependency& wait) {
      for_device |= wait.before != kNoTask && runs_on_device(graph.task(wait.before).kind);
    });
    if (for_device && front != kNoTask) waits.emplace_back(front, task);
    front = task;
  }
  return waits;
}

std::size_t device_steps_on(const Graph& graph, LaneId lane) {
  std::vector<char> has(graph.steps().size(), 0);
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    if (belongs_to_step(graph, task) && runs_on_device(graph.task(task).kind))
      has[static_cast<std::size_t>(graph.task(task).step)] = 1;
  }
  return static_cast<std::size_t>(std::count(has.begin(), has.end(), 1));
}

MarkedSteps steps_between(const std::vector<StepMark>& marks) {
  return {marks[1].step, marks.back().step};
}

Nanoseconds room_between(Nanoseconds from, Nanoseconds to) {
  const Nanoseconds span = to - from;
  return span + span / 20;
}

Nanoseconds work_in(const Graph& graph, LaneId lane, const MarkedSteps& steps) {
  Nanoseconds work{0};
  for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
    if (steps.has(graph.task(task))) work += graph.task(task).duration;
  }
  return work;
}

std::size_t first_counted(const StepRule& rule, std::size_t distances) {
  const std::size_t period = period_within(rule, distances);
  const bool skips = rule.skips_first && distances / period > kMinOthers;
  return distances % period + (skips ? period : 0);
}

std::size_t first_counted_mark(const Graph& graph, std::size_t marks) {
  return first_counted(graph.step_rule(), marks - (last_counts(marks) ? 0 : 1));
}

StepTimes times_without_steps(const StepRule& rule, Nanoseconds length) {
  StepTimes times;
  times.source = rule.source;
  times.step_time = times.mean = times.fastest = times.slowest = length;
  return times;
}

namespace {

/// The step time of few steps; see times_between().
Nanoseconds time_of_few(const StepRule& rule, const StepTimes& times, Nanoseconds host_span) {
  const auto count = static_cast<std::int64_t>(times.steps());
  const bool all_count = times.first == 0;
  const Nanoseconds on_host = all_count ? (host_span - rule.host_surplus) / count : 0ns;
  const Nanoseconds mean = std::max(times.mean, on_host);
  const Wide scaled = static_cast<Wide>(mean.count()) * rule.recorded_median.count();
  return std::clamp(Nanoseconds(static_cast<std::int64_t>(scaled / rule.recorded_mean.count())),
                    times.fastest, std::max(times.slowest, on_host));
}

}  // namespace

StepTimes times_between(const StepRule& rule, std::span<const Nanoseconds> marks,
                        const LastStep& last) {
  StepTimes times;
  times.source = rule.source;
  for (std::size_t i = 1; i < marks.size(); ++i) times.each.push_back(marks[i] - marks[i - 1]);
  if (last_counts(marks.size())) times.each.push_back(last.length);
  const std::size_t period = period_within(rule, times.each.size());
  times.period = static_cast<std::int32_t>(period);
  times.first = first_counted(rule, times.each.size());
  for (std::size_t i = times.first; i < times.each.size(); i += period) {
    const auto begin = times.each.begin() + static_cast<std::ptrdiff_t>(i);
    const Nanoseconds sum =
        std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(period), 0ns);
    times.counted.push_back(sum / static_cast<std::int64_t>(period));
  }
  summarize(times);
  if (last_counts(marks.size()) && rule.recorded_mean > 0ns)
    times.step_time = time_of_few(rule, times, last.host_span);
  return times;
}

StepTimes step_times(const Graph& graph, const Timeline& timeline) {
  const Steps steps(graph, timeline);
  return steps.marks.empty() ? times_without_steps(graph.step_rule(), timeline.length)
                             : steps.times(graph.step_rule());
}

std::vector<TaskId> tasks_of_step(const Graph& graph, const StepMark& mark) {
  const bool on_device = runs_on_device(graph.task(mark.task).kind);
  const std::set<LaneId> lanes = launching_lanes(graph, mark.step);
  std::vector<TaskId> tasks;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    if (graph.task(task).step != mark.step || graph.removed(task)) continue;
    if (runs_on_device(graph.task(task).kind) == on_device || lanes.contains(graph.lane_of(task)))
      tasks.push_back(task);
  }
  return tasks;
}

std::vector<std::int32_t> counted_steps(const Graph& graph) {
  std::vector<char> on_device(graph.steps().size(), 0), used(graph.steps().size(), 0);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (!belongs_to_step(graph, TaskId{i})) continue;
    const Task& task = graph.task(TaskId{i});
    used[static_cast<std::size_t>(task.step)] = 1;
    if (runs_on_device(task.kind)) on_device[static_cast<std::size_t>(task.step)] = 1;
  }
  const auto count = [](const std::vector<char>& steps) {
    return static_cast<std::size_t>(std::count(steps.begin(), steps.end(), 1));
  };
  const std::vector<char>& marked =
      marked_by_device(count(on_device), count(used)) ? on_device : used;
  std::vector<std::int32_t> steps;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] != 0) steps.push_back(static_cast<std::int32_t>(i));
  }
  if (steps.empty()) return steps;
  if (!last_counts(steps.size())) steps.pop_back();
  const std::size_t first = first_counted(graph.step_rule(), steps.size());
  steps.erase(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(first));
  return steps;
}

StepWindow step_window(const Graph& graph, const Timeline& timeline) {
  const Steps steps(graph, timeline);
  const std::vector<StepMark>& marks = steps.marks;
  if (marks.empty())
    return {.to = timeline.length,
            .times = times_without_steps(graph.step_rule(), timeline.length)};
  const StepTimes times = steps.times(graph.step_rule());
  StepWindow window{.from = marks[times.first].time,
                    .to = std::max(marks[times.first].time, marks.back().time),
                    .steps = static_cast<std::int64_t>(times.steps()),
                    .times = times};
  if (!steps.end) return window;
  window.to = std::max({marks.back().time, steps.end->work, steps.end->host});
  // The last step may take the host's lead into the first one; see StepEnd.
  if (times.first == 0) window.from -= times.each.back() - (window.to - marks.back().time);
  return window;
}

void set_step_rule(Graph& graph, const Timeline& recorded) {
  StepRule& rule = graph.step_rule();
  rule.period = 1, rule.skips_first = false;
  const Steps steps(graph, recorded);
  if (steps.marks.empty()) return;
  const std::size_t count = steps.marks.size() - (steps.end ? 0 : 1);
  rule.period = period_of(kinds_of_steps(graph, {steps.marks.data(), count}));
  rule.recorded_mean = 0ns;
  rule.skips_first = first_is_outlier(steps.times(rule).counted);
  if (!steps.end) return;
  const StepTimes times = steps.times(rule);
  rule.recorded_median = times.step_time, rule.recorded_mean = times.mean;
  const auto all = times.mean * static_cast<std::int64_t>(times.steps());
  rule.host_surplus = std::max(0ns, steps.end->host_span() - all);
}

}  // namespace foretrace

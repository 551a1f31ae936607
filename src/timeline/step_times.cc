#include <algorithm>

#include "timeline/marks.h"

namespace foretrace {
namespace {

/// What is known so far about the start of one step. Lower is better, the first that is there
/// counts.
struct Candidate {
  TaskId task = kNoTask;
  Nanoseconds time{};

  void offer(TaskId offered, Nanoseconds at) {
    if (task == kNoTask || at < time || (at == time && offered < task)) task = offered, time = at;
  }
};

struct Candidates {
  Candidate launched;  ///< By the start of the launching task.
  Candidate device;
  Candidate host;
};

bool belongs_to_step(const Graph& graph, TaskId task) {
  const std::int32_t step = graph.task(task).step;
  return step >= 0 && static_cast<std::size_t>(step) < graph.steps().size() && !graph.removed(task);
}

/// `only`: of the device tasks those on this lane; kNoLane: all.
std::vector<Candidates> candidates(const Graph& graph, const Timeline& timeline, LaneId only) {
  std::vector<Candidates> steps(graph.steps().size());
  const auto left_out = [&](TaskId task) { return only != kNoLane && graph.lane_of(task) != only; };
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    if (!belongs_to_step(graph, task)) continue;
    Candidates& step = steps[static_cast<std::size_t>(graph.task(task).step)];
    const bool on_device = runs_on_device(graph.task(task).kind);
    if (on_device && left_out(task)) continue;
    (on_device ? step.device : step.host).offer(task, timeline.start[i]);
  }
  const NameId launch = graph.names().find("launch");
  if (launch == NameId{}) return steps;
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why != launch || wait.provenance != Provenance::measured) return;
    if (!belongs_to_step(graph, wait.after) || !runs_on_device(graph.task(wait.after).kind)) return;
    if (left_out(wait.after)) return;
    Candidates& step = steps[static_cast<std::size_t>(graph.task(wait.after).step)];
    step.launched.offer(wait.after, timeline.start[index(wait.before)]);
  });
  return steps;
}

/// From the first start to the last finish of the device tasks of the only step, or of its host
/// tasks.
Nanoseconds length_of_step(const Graph& graph, const Timeline& timeline, std::int32_t step,
                           bool on_device) {
  Nanoseconds first = Nanoseconds::max(), last = Nanoseconds::min();
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.step != step || graph.removed(TaskId{i}) || runs_on_device(task.kind) != on_device)
      continue;
    first = std::min(first, timeline.start[i]);
    last = std::max(last, timeline.finish[i]);
  }
  return last - first;
}

Nanoseconds median(std::vector<Nanoseconds> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] + (values[middle] - values[middle - 1]) / 2;
}

std::vector<Mark> marks_on(const Graph& graph, const Timeline& timeline, LaneId only) {
  std::vector<Mark> marks;
  const std::vector<Candidates> steps = candidates(graph, timeline, only);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TaskId task = steps[i].launched.task;
    if (task == kNoTask) task = steps[i].device.task;
    if (task == kNoTask) task = steps[i].host.task;
    if (task == kNoTask) continue;
    marks.push_back({static_cast<std::int32_t>(i), task, timeline.start[index(task)]});
  }
  return marks;
}

/// The stream that has more to do in the steps between the second mark and the last than fits
/// between them, or kNoLane. The steps then are not what the marks say: input copies on a stream of
/// their own can run steps ahead of the work.
LaneId overfull_stream(const Graph& graph, const std::vector<Mark>& marks) {
  if (marks.size() < 3) return kNoLane;
  LaneId fullest = kNoLane;
  Nanoseconds most = room_between(marks[1].time, marks.back().time);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    if (lane.kind != LaneKind::stream || lane.discipline != Discipline::fifo) continue;
    Nanoseconds work{0};
    for (TaskId task = graph.first(LaneId{i}); task != kNoTask; task = graph.next(task)) {
      const std::int32_t step = graph.task(task).step;
      if (step >= marks[1].step && step < marks.back().step) work += graph.task(task).duration;
    }
    if (work > most) most = work, fullest = LaneId{i};
  }
  return fullest;
}

}  // namespace

std::vector<Mark> step_marks(const Graph& graph, const Timeline& timeline) {
  std::vector<Mark> marks = marks_on(graph, timeline, kNoLane);
  const LaneId overfull = overfull_stream(graph, marks);
  return overfull == kNoLane ? marks : marks_on(graph, timeline, overfull);
}

Nanoseconds room_between(Nanoseconds second, Nanoseconds last) {
  const Nanoseconds span = last - second;
  return span + span / 20;
}

StepTimes times_between(std::span<const Nanoseconds> marks) {
  StepTimes times;
  for (std::size_t i = 1; i < marks.size(); ++i) times.each.push_back(marks[i] - marks[i - 1]);
  const auto steady = times.each.begin() + (marks.size() >= 3 ? 1 : 0);
  times.step_time = median({steady, times.each.end()});
  return times;
}

StepTimes step_times(const Graph& graph, const Timeline& timeline) {
  const std::vector<Mark> marks = step_marks(graph, timeline);
  if (marks.empty()) return {.each = {}, .step_time = timeline.length};
  if (marks.size() == 1) {
    const bool on_device = runs_on_device(graph.task(marks[0].task).kind);
    const Nanoseconds length = length_of_step(graph, timeline, marks[0].step, on_device);
    return {.each = {length}, .step_time = length};
  }
  std::vector<Nanoseconds> times;
  for (const Mark& mark : marks) times.push_back(mark.time);
  return times_between(times);
}

}  // namespace foretrace

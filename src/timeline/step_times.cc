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

std::vector<Candidates> candidates(const Graph& graph, const Timeline& timeline) {
  std::vector<Candidates> steps(graph.steps().size());
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    if (!belongs_to_step(graph, task)) continue;
    Candidates& step = steps[static_cast<std::size_t>(graph.task(task).step)];
    const bool on_device = runs_on_device(graph.task(task).kind);
    (on_device ? step.device : step.host).offer(task, timeline.start[i]);
  }
  const NameId launch = graph.names().find("launch");
  if (launch == NameId{}) return steps;
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why != launch || wait.provenance != Provenance::measured) return;
    if (!belongs_to_step(graph, wait.after) || !runs_on_device(graph.task(wait.after).kind)) return;
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

}  // namespace

std::vector<Mark> step_marks(const Graph& graph, const Timeline& timeline) {
  std::vector<Mark> marks;
  const std::vector<Candidates> steps = candidates(graph, timeline);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    TaskId task = steps[i].launched.task;
    if (task == kNoTask) task = steps[i].device.task;
    if (task == kNoTask) task = steps[i].host.task;
    if (task == kNoTask) continue;
    marks.push_back({static_cast<std::int32_t>(i), task, timeline.start[index(task)]});
  }
  return marks;
}

StepTimes step_times(const Graph& graph, const Timeline& timeline) {
  const std::vector<Mark> marks = step_marks(graph, timeline);
  StepTimes times;
  if (marks.empty()) {
    times.step_time = timeline.length;
    return times;
  }
  if (marks.size() == 1) {
    const bool on_device = runs_on_device(graph.task(marks[0].task).kind);
    times.each.push_back(length_of_step(graph, timeline, marks[0].step, on_device));
  }
  for (std::size_t i = 1; i < marks.size(); ++i)
    times.each.push_back(marks[i].time - marks[i - 1].time);
  const auto steady = times.each.begin() + (marks.size() >= 3 ? 1 : 0);
  times.step_time = median({steady, times.each.end()});
  return times;
}

}  // namespace foretrace

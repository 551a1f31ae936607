#include "job/step_cost.h"

#include <algorithm>

#include "timeline/step_marks.h"

namespace foretrace {
namespace {

PathPart part_of_path(TaskKind kind) {
  switch (class_of(kind)) {
    case TaskClass::compute:
      return PathPart::kernels;
    case TaskClass::communication:
      return PathPart::communication;
    case TaskClass::copy:
      return PathPart::copies;
    case TaskClass::input:
      return PathPart::input;
    case TaskClass::launch:
      return PathPart::launches;
    case TaskClass::host:
    case TaskClass::sync:
      return PathPart::host;
    case TaskClass::unknown:
    case TaskClass::none:
      return PathPart::delays;
  }
  return PathPart::delays;
}

/// Time that a task adds to its lane, which is less than its duration if it overlaps the previous
/// task.
Nanoseconds exclusive_time(const Graph& graph, TaskId task) {
  return std::max(0ns, graph.task(task).duration - tail_in_front(graph, task));
}

Nanoseconds clipped(const PathSpan& span, Nanoseconds begin, Nanoseconds end) {
  return std::max(0ns, std::min(end, span.to) - std::max(begin, span.from));
}

PathShares add_up(const Graph& graph, const Timeline& timeline, const std::vector<TaskId>& path,
                  const PathSpan& span) {
  PathShares shares;
  const auto add = [&](PathPart part, Nanoseconds from, Nanoseconds to) {
    shares.parts[static_cast<std::size_t>(part)] += clipped(span, from, to);
  };
  std::int64_t waits = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Task& task = graph.task(path[i]);
    const Nanoseconds start = timeline.start[index(path[i])];
    Nanoseconds end = timeline.finish[index(path[i])];
    if (i + 1 < path.size()) end = std::min(end, timeline.start[index(path[i + 1])]);
    add(part_of_path(task.kind), start, end);
    if (i == 0) continue;
    const bool launched = timeline.reasons[index(path[i])].why == Rule::launch;
    add(launched ? PathPart::launches : PathPart::delays, timeline.finish[index(path[i - 1])],
        start);
    const bool from_device = runs_on_device(graph.task(path[i - 1]).kind);
    if (from_device && !runs_on_device(task.kind) && start >= span.from && start < span.to) ++waits;
  }
  for (Nanoseconds& part : shares.parts) part /= span.steps;
  shares.host_waits = static_cast<double>(waits) / static_cast<double>(span.steps);
  return shares;
}

}  // namespace

MeasuredSteps measured_steps(const Graph& graph) {
  const std::vector<std::int32_t> steps = counted_steps(graph);
  if (steps.empty()) return {.all = true};
  return {.first = steps.front(), .end = steps.back() + 1, .count = std::ssize(steps)};
}

std::vector<Nanoseconds> lane_work(const Graph& graph) {
  const MeasuredSteps steps = measured_steps(graph);
  std::vector<Nanoseconds> work(graph.lane_count(), 0ns);
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(LaneId{i});
    Bytes carried{};
    for (TaskId task = graph.first(LaneId{i}); task != kNoTask; task = graph.next(task)) {
      if (!steps.has(graph.task(task))) continue;
      if (lane.discipline == Discipline::shared)
        carried += graph.task(task).bytes;
      else
        work[i] += exclusive_time(graph, task);
    }
    if (carried > Bytes{}) work[i] = time_for(carried, lane.capacity);
    work[i] /= steps.count;
  }
  return work;
}

PathSpan path_span(const Graph& graph, const Timeline& timeline) {
  const std::vector<StepMark> marks = step_marks(graph, timeline);
  if (marks.size() < 2) return {};
  const std::size_t first = std::min(first_counted_mark(graph, marks.size()), marks.size() - 2);
  return {.last = marks.back().task,
          .from = marks[first].time,
          .to = marks.back().time,
          .steps = static_cast<std::int64_t>(marks.size() - 1 - first)};
}

PathShares path_shares(const Graph& graph, const Timeline& timeline, const PathSpan& span) {
  if (span.last != kNoTask) {
    const PathShares shares = add_up(graph, timeline, path_to(timeline, span.last), span);
    if (shares.total() > 0ns) return shares;
  }
  return add_up(graph, timeline, critical_path(graph, timeline), {});
}

PathShares path_shares(const Graph& graph, const Timeline& timeline) {
  return path_shares(graph, timeline, path_span(graph, timeline));
}

}  // namespace foretrace

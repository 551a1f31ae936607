#include "analysis/match/step_work.h"

#include <algorithm>
#include <fmt/core.h>

#include "timeline/step_marks.h"
#include "trace/step_name.h"

namespace foretrace {
namespace {

std::vector<LaneKey> lane_keys(const Graph& graph) {
  std::map<std::pair<LaneKind, std::int32_t>, std::size_t> lane_counts;
  std::vector<LaneKey> keys;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(static_cast<LaneId>(i));
    keys.emplace_back(lane.kind, lane.device, lane_counts[{lane.kind, lane.device}]++);
  }
  return keys;
}

/// The number of each name in `shared`. The profiler's step markers end in a number, which is
/// ignored.
std::vector<std::uint64_t> shared_numbers(const Names& names, Names& shared) {
  std::vector<std::uint64_t> numbers;
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[NameId{i}];
    const NameId number = shared.intern(name.starts_with(kProfilerStep) ? kProfilerStep : name);
    numbers.push_back(static_cast<std::uint64_t>(number));
  }
  return numbers;
}

}  // namespace

StepWork::StepWork(const Inference& inference, Names& names, std::span<const Nanoseconds> waits)
    : inference_(inference) {
  const Graph& graph = inference.graph;
  const std::vector<LaneKey> lanes = lane_keys(graph);
  const std::vector<std::uint64_t> numbers = shared_numbers(graph.names(), names);
  std::vector<std::map<LaneKey, StepLine>> by_step(graph.steps().size());
  std::vector<Nanoseconds> launch(graph.steps().size(), Nanoseconds::max());
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const auto lane = static_cast<LaneId>(i);
    for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
      const Task& task = graph.task(id);
      if (task.step < 0 || static_cast<std::size_t>(task.step) >= by_step.size()) continue;
      const auto step = static_cast<std::size_t>(task.step);
      StepLine& line = by_step[step][lanes[i]];
      line.tasks.push_back(id);
      line.keys.push_back(numbers[static_cast<std::size_t>(task.name)] << 8U |
                          static_cast<std::uint64_t>(task.kind));
      line.durations.push_back(task.duration - (waits.empty() ? 0ns : waits[index(id)]));
      line.launched.push_back(task.kind == TaskKind::launch || runs_on_device(task.kind));
      if (task.kind == TaskKind::launch)
        launch[step] = std::min(launch[step], inference.recorded.start[index(id)]);
    }
  }
  for (std::size_t step = 0; step < by_step.size(); ++step) {
    if (by_step[step].empty()) continue;
    lines_.push_back(std::move(by_step[step]));
    first_launch_.push_back(launch[step] == Nanoseconds::max() ? Nanoseconds::min() : launch[step]);
  }
}

std::map<LaneKey, StepLine> StepWork::head(std::size_t step) const {
  std::map<LaneKey, StepLine> heads;
  for (const auto& [lane, line] : lines_[step]) {
    StepLine head;
    for (std::size_t i = 0; i < line.tasks.size(); ++i) {
      if (runs_on_device(inference_.graph.task(line.tasks[i]).kind)) break;
      if (inference_.recorded.start[index(line.tasks[i])] >= first_launch_[step]) break;
      head.tasks.push_back(line.tasks[i]);
      head.keys.push_back(line.keys[i]);
      head.durations.push_back(line.durations[i]);
      head.launched.push_back(line.launched[i]);
    }
    if (!head.tasks.empty()) heads.emplace(lane, std::move(head));
  }
  return heads;
}

void note_overfull_lanes(const Graph& graph, const Timeline& timeline, Notes& notes) {
  std::vector<LaneId> lanes;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).discipline == Discipline::priority) lanes.push_back(LaneId{i});
  }
  if (lanes.empty()) return;
  const std::vector<StepMark> marks = step_marks(graph, timeline);
  if (marks.size() < 3) return;
  const Nanoseconds from = marks[1].time, to = marks.back().time;
  for (const LaneId id : lanes) {
    const Nanoseconds work = work_in(graph, id, steps_between(marks));
    if (work <= room_between(from, to)) continue;
    notes.add(
        Severity::warning,
        "a lane has more work in its steps than they are long: the step time leaves some out",
        fmt::format("\"{}\": {} in {}", graph.lane(id).name, to_text(work), to_text(to - from)));
  }
}

}  // namespace foretrace

#include "question/predict/drawn_run.h"

#include <algorithm>
#include <tuple>

namespace foretrace {
namespace {

/// Most lanes on a page, more than anyone looks at. A page with the threads of all ranks would be
/// too tall and too large.
constexpr std::size_t kMaxLanes = 48;

std::vector<StepExtent> step_extents(const DrawnRun& run) {
  std::vector<StepExtent> extents;
  for (const Step& step : run.graph.steps()) extents.push_back({.name = step.name});
  for (std::uint32_t i = 0; i < run.graph.task_count(); ++i) {
    const Task& task = run.graph.task(TaskId{i});
    if (task.step < 0 || static_cast<std::size_t>(task.step) >= extents.size()) continue;
    if (run.graph.removed(TaskId{i}) || task.kind == TaskKind::marker) continue;
    StepExtent& extent = extents[static_cast<std::size_t>(task.step)];
    const Nanoseconds from = run.timeline.start[i], to = run.timeline.finish[i];
    extent.from = extent.has_tasks ? std::min(extent.from, from) : from;
    extent.to = std::max(extent.to, to);
    extent.has_tasks = true;
  }
  return extents;
}

/// Returns a step in the middle, unaffected by warm-up and by the end of the recording;
/// steps.size() if no step has tasks.
std::size_t middle_step(const std::vector<StepExtent>& steps) {
  std::vector<std::size_t> whole;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].has_tasks) whole.push_back(i);
  }
  return whole.empty() ? steps.size() : whole[(whole.size() - 1) / 2];
}

std::vector<DrawnLane> lanes_with_tasks(const DrawnRun& run) {
  std::vector<DrawnLane> lanes;
  for (std::uint32_t i = 0; i < run.graph.lane_count(); ++i) {
    DrawnLane lane;
    lane.id = LaneId{i};
    for (TaskId at = run.graph.first(LaneId{i}); at != kNoTask; at = run.graph.next(at)) {
      if (run.graph.task(at).kind == TaskKind::marker) continue;
      lane.all.push_back(at);
      lane.busy += run.timeline.finish[index(at)] - run.timeline.start[index(at)];
    }
    if (lane.all.empty()) continue;
    lane.tasks = lane.all.size();
    std::sort(lane.all.begin(), lane.all.end(), [&](TaskId a, TaskId b) {
      return std::pair(run.timeline.start[index(a)], index(a)) <
             std::pair(run.timeline.start[index(b)], index(b));
    });
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

void keep_busiest(std::vector<DrawnLane>& lanes) {
  if (lanes.size() <= kMaxLanes) return;
  std::stable_sort(lanes.begin(), lanes.end(),
                   [](const DrawnLane& a, const DrawnLane& b) { return a.busy > b.busy; });
  lanes.resize(kMaxLanes);
}

/// Returns the sort key of a lane, which puts threads above the streams that they launch on.
auto lane_sort_key(const Graph& graph, const DrawnLane& drawn) {
  const Lane& lane = graph.lane(drawn.id);
  return std::tuple(lane.rank, lane.device, static_cast<int>(lane.kind), index(drawn.id));
}

/// Returns, for each task, whether it fits on the page.
std::vector<char> chosen_tasks(const DrawnRun& run, const Drawing& drawing, std::size_t most) {
  struct Candidate {
    bool elsewhere;  ///< The task is not in the step that is shown whole.
    std::int64_t shorter;
    std::uint32_t id;
    auto key() const { return std::tuple(elsewhere, shorter, id); }
    bool operator<(const Candidate& other) const { return key() < other.key(); }
  };
  std::vector<Candidate> candidates;
  for (const DrawnLane& lane : drawing.lanes) {
    for (const TaskId id : lane.all) {
      const Nanoseconds length = run.timeline.finish[index(id)] - run.timeline.start[index(id)];
      const std::int32_t step = run.graph.task(id).step;
      candidates.push_back(
          {step < 0 || static_cast<std::size_t>(step) != drawing.step, -length.count(), index(id)});
    }
  }
  if (candidates.size() > most) {
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(most),
                     candidates.end());
    candidates.resize(most);
  }
  std::vector<char> chosen(run.graph.task_count(), 0);
  for (const Candidate& candidate : candidates) chosen[candidate.id] = 1;
  return chosen;
}

}  // namespace

Drawing drawing_of(const DrawnRun& run, std::size_t most) {
  Drawing drawing;
  drawing.steps = step_extents(run);
  drawing.step = middle_step(drawing.steps);
  drawing.lanes = lanes_with_tasks(run);
  for (const DrawnLane& lane : drawing.lanes) drawing.tasks += lane.tasks;
  const std::size_t lanes = drawing.lanes.size();
  keep_busiest(drawing.lanes);
  drawing.lanes_left_out = lanes - drawing.lanes.size();
  std::sort(drawing.lanes.begin(), drawing.lanes.end(),
            [&](const DrawnLane& a, const DrawnLane& b) {
              return lane_sort_key(run.graph, a) < lane_sort_key(run.graph, b);
            });
  const std::vector<char> chosen = chosen_tasks(run, drawing, most);
  for (DrawnLane& lane : drawing.lanes) {
    std::copy_if(lane.all.begin(), lane.all.end(), std::back_inserter(lane.shown),
                 [&](TaskId id) { return chosen[index(id)] != 0; });
    drawing.tasks_shown += lane.shown.size();
  }
  if (!run.timeline.reasons.empty()) drawing.path = critical_path(run.graph, run.timeline);
  return drawing;
}

Nanoseconds lane_idle_before(const DrawnRun& run, TaskId task) {
  const TaskId before = run.graph.previous(task);
  Nanoseconds free{0};
  if (before != kNoTask) free = run.timeline.finish[index(before)] + run.graph.task(task).gap;
  return std::max(0ns, run.timeline.start[index(task)] - free);
}

TaskClass drawn_class(TaskKind kind) {
  const TaskClass of_kind = class_of(kind);
  if (of_kind == TaskClass::unknown) return TaskClass::sync;
  return of_kind == TaskClass::none ? TaskClass::host : of_kind;
}

std::string_view to_string(TaskClass task_class) {
  constexpr std::string_view kNames[kTaskClasses] = {
      "compute", "communication", "copy", "input", "host work", "launch", "synchronization"};
  return kNames[static_cast<std::size_t>(task_class)];
}

}  // namespace foretrace

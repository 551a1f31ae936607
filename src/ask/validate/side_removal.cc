#include "ask/validate/side_removal.h"

#include <algorithm>

#include "base/contains.h"
#include "foretrace/simulate.h"
#include "timeline/step_marks.h"

namespace foretrace {
namespace {

enum class Side : std::uint8_t { none, device, host };

/// Whether the host can wait for the device in a call; its time does not prove that the host
/// worked.
bool can_wait(std::string_view name) {
  return contains_any(name, {"Synchronize", "Memcpy", "Free", "HostAlloc"});
}

Side side_of(const Graph& graph, TaskId id) {
  const TaskKind kind = graph.task(id).kind;
  if (runs_on_device(kind)) return Side::device;
  if (kind == TaskKind::marker || kind == TaskKind::transfer) return Side::none;
  return Side::host;
}

/// The task that begins the last step; kNoTask means the end of the recording.
TaskId last_mark(const Inference& inference) {
  const std::vector<StepMark> marks = step_marks(inference.graph, inference.recorded);
  return marks.size() < 2 ? kNoTask : marks.back().task;
}

Nanoseconds end_of(const Timeline& timeline, TaskId last) {
  return last == kNoTask ? timeline.length : timeline.start[index(last)];
}

/// Time before `end` in which only `side` worked.
Nanoseconds time_alone(const Inference& inference, Nanoseconds end, Side side) {
  struct Change {
    Nanoseconds time;
    bool of_side;  ///< Whether the task belongs to `side`.
    int tasks;     ///< Tasks that start, less those that finish.
  };
  std::vector<Change> changes;
  const Graph& graph = inference.graph;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Side task_side = side_of(graph, TaskId{i});
    if (task_side == Side::none) continue;
    if (task_side == Side::host && can_wait(graph.name(TaskId{i}))) continue;
    const Nanoseconds start = inference.recorded.start[i];
    const Nanoseconds finish = std::min(inference.recorded.finish[i], end);
    if (start >= finish) continue;
    changes.push_back({start, task_side == side, 1});
    changes.push_back({finish, task_side == side, -1});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  Nanoseconds sum{0}, since{0};
  int on_side = 0, on_other = 0;
  for (const Change& change : changes) {
    if (on_side > 0 && on_other == 0) sum += change.time - since;
    since = change.time;
    (change.of_side ? on_side : on_other) += change.tasks;
  }
  return sum;
}

SideRemoval without(const Inference& inference, Side removed) {
  const TaskId last = last_mark(inference);
  Compiled compiled(inference.graph);
  const auto order = compiled.order();
  const auto durations = compiled.durations();
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    if (side_of(inference.graph, TaskId{i}) == removed) durations[order[i]] = 0ns;
  }
  Timeline replayed;
  replayed.length = compiled.replay();
  const auto finish = compiled.finish();
  replayed.start.resize(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i)
    replayed.start[i] = finish[order[i]] - durations[order[i]];
  const Nanoseconds end = end_of(inference.recorded, last);
  return {.recorded = end,
          .alone = time_alone(inference, end, removed),
          .remaining = end_of(replayed, last)};
}

}  // namespace

SideRemoval without_device(const Inference& inference) { return without(inference, Side::device); }
SideRemoval without_host(const Inference& inference) { return without(inference, Side::host); }

}  // namespace foretrace

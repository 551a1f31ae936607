#include "analysis/doubt/side_removal.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/contains.h"
#include "foretrace/simulate.h"
#include "timeline/step_marks.h"

namespace foretrace {
namespace {

enum class RemovedSide : std::uint8_t { device, host, none };

/// Whether the host can wait for the device in a call; its time does not prove that the host
/// worked.
bool can_wait(std::string_view name) {
  return contains_any(name, {"ynchroniz", "Memcpy", "Free", "HostAlloc"});
}

RemovedSide side_of(const Graph& graph, TaskId id) {
  const TaskKind kind = graph.task(id).kind;
  if (runs_on_device(kind)) return RemovedSide::device;
  return runs_on_host(kind) ? RemovedSide::host : RemovedSide::none;
}

/// The task that begins the last step; kNoTask means the end of the recording.
TaskId last_mark(const Inference& inference) {
  const std::vector<StepMark> marks = step_marks(inference.graph, inference.recorded);
  return marks.size() < 2 ? kNoTask : marks.back().task;
}

Nanoseconds end_of(const Timeline& timeline, TaskId last) {
  return last == kNoTask ? timeline.length : timeline.start[index(last)];
}

/// Starts and finishes before `end`, in order, packed so that sorting takes little time: the time
/// in ns, the side, and whether a task begins.
std::vector<std::int64_t> packed_changes(const Inference& inference, Nanoseconds end) {
  std::vector<std::int64_t> changes;
  const Graph& graph = inference.graph;
  changes.reserve(2 * graph.task_count());
  std::map<NameId, bool> waiting;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const RemovedSide side = side_of(graph, TaskId{i});
    const Nanoseconds start = inference.recorded.start[i];
    const Nanoseconds finish = std::min(inference.recorded.finish[i], end);
    if (side == RemovedSide::none || start >= finish) continue;
    if (side == RemovedSide::host) {
      const auto [known, is_new] = waiting.try_emplace(graph.task(TaskId{i}).name, false);
      if (is_new) known->second = can_wait(graph.name(TaskId{i}));
      if (known->second) continue;
    }
    const int bit = side == RemovedSide::host ? 2 : 0;
    changes.push_back(start.count() * 4 + bit + 1);
    changes.push_back(finish.count() * 4 + bit);
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

/// Time before `end` in which only one side worked, indexed by it.
std::array<Nanoseconds, 2> times_alone(const Inference& inference, Nanoseconds end) {
  std::array<Nanoseconds, 2> sums{};
  std::array<int, 2> running{};
  Nanoseconds since{0};
  for (const std::int64_t change : packed_changes(inference, end)) {
    const Nanoseconds time(change / 4);
    for (const std::size_t side : {0, 1}) {
      if (running[side] > 0 && running[1 - side] == 0) sums[side] += time - since;
    }
    since = time;
    running[static_cast<std::size_t>(change / 2 % 2)] += change % 2 != 0 ? 1 : -1;
  }
  return sums;
}

}  // namespace

SideRemovals remove_sides(const Inference& inference) {
  const TaskId last = last_mark(inference);
  const Nanoseconds end = end_of(inference.recorded, last);
  const std::array<Nanoseconds, 2> alone = times_alone(inference, end);
  Compiled compiled(inference.graph);
  const auto order = compiled.order();
  const std::vector<Nanoseconds> durations(compiled.durations().begin(),
                                           compiled.durations().end());
  const auto without = [&](RemovedSide removed) {
    for (std::uint32_t i = 0; i < order.size(); ++i)
      compiled.durations()[order[i]] =
          side_of(inference.graph, TaskId{i}) == removed ? 0ns : durations[order[i]];
    Nanoseconds remaining = compiled.replay();
    if (last != kNoTask) {
      const std::uint32_t row = order[index(last)];
      remaining = compiled.finish()[row] - compiled.durations()[row];
    }
    return SideRemoval{
        .recorded = end, .alone = alone[static_cast<std::size_t>(removed)], .remaining = remaining};
  };
  return {.device = without(RemovedSide::device), .host = without(RemovedSide::host)};
}

}  // namespace foretrace

// Takes the recorder's own work out of the host's time:
//
//     cpu     |oOOOoLLoOo|   ->   cpu     |OOOLLO|      o: notes the start or the end of a record
//
// Each stretch between two of these notes pays half of a record, each block of memory a whole one;
// what a stretch is too short for is taken from the next ones on the thread.

#include "graph/recorder_time.h"

#include <algorithm>

#include "base/contains.h"

namespace foretrace {
namespace {

/// A task keeps at least this part of its time (one fifth), because a program does something
/// between two records. Chosen.
constexpr std::int64_t kMinKept = 5;
constexpr std::uint32_t kNoRecord = Task{}.record;

/// Frames of Python are noted by a hook of the interpreter, which is much faster.
bool is_python_frame(std::string_view name) {
  return contains_any(name, {".py(", "nn.Module: ", "<built-in "});
}

/// The number of blocks that each task makes or frees.
std::vector<std::uint32_t> blocks_of(const Graph& graph) {
  std::vector<std::uint32_t> blocks(graph.task_count(), 0);
  for (const Allocation& block : graph.allocations()) {
    if (block.made_by != kNoTask) ++blocks[index(block.made_by)];
    if (block.freed_by != kNoTask) ++blocks[index(block.freed_by)];
  }
  return blocks;
}

}  // namespace

std::vector<std::pair<TaskId, Nanoseconds>> without_recorder(const Graph& graph,
                                                             Nanoseconds per_record) {
  std::vector<std::pair<TaskId, Nanoseconds>> shorter;
  const std::vector<std::uint32_t> blocks = blocks_of(graph);
  for (std::uint32_t lane = 0; lane < graph.lane_count(); ++lane) {
    if (graph.lane(LaneId{lane}).kind != LaneKind::host_thread) continue;
    Nanoseconds owed{0};
    for (TaskId id = graph.first(LaneId{lane}); id != kNoTask; id = graph.next(id)) {
      const Task& task = graph.task(id);
      owed += per_record * blocks[index(id)];
      if (task.kind != TaskKind::host && task.kind != TaskKind::launch) continue;
      if (task.record != kNoRecord && !is_python_frame(graph.name(id))) owed += per_record / 2;
      const Nanoseconds paid = std::min(owed, task.duration - task.duration / kMinKept);
      if (paid <= Nanoseconds(0)) continue;
      owed -= paid;
      shorter.emplace_back(id, task.duration - paid);
    }
  }
  return shorter;
}

}  // namespace foretrace

#include "transform/parallel/sent_gradients.h"

#include <algorithm>
#include <map>

#include "foretrace/error.h"

namespace foretrace {
namespace {

TaskId last_device_wait(const Graph& graph, const Timeline& timeline, TaskId task) {
  TaskId last = kNoTask;
  graph.each_wait(task, [&](const Dependency& wait) {
    if (!runs_on_device(graph.task(wait.before).kind)) return;
    if (last == kNoTask || timeline.finish[index(wait.before)] > timeline.finish[index(last)])
      last = wait.before;
  });
  return last;
}

}  // namespace

void describe_sent_gradients(Fields& fields, std::int64_t& ranks, Selector& where) {
  fields.integer("ranks", ranks,
                 "Ranks of a collective that does not tell how many it has; 0: it is left alone", 0,
                 1'000'000);
  fields.object("where", where, "The all-reduces that send gradients");
}

std::vector<SentGradients> sent_gradients(const Graph& graph, const Timeline& timeline,
                                          const Selector& where, std::int64_t ranks) {
  std::vector<char> chosen(graph.task_count(), 0);
  for (const TaskId id : where.select_some(graph)) chosen[index(id)] = 1;
  std::map<std::pair<std::int32_t, LaneId>, SentGradients> rows;
  for (const RecordedCollective& one : graph.collectives()) {
    const TaskId id = one.task;
    if (chosen[index(id)] == 0 || graph.removed(id) || one.bytes <= Bytes{}) continue;
    const std::int32_t members =
        one.group_size > 0 ? one.group_size : static_cast<std::int32_t>(ranks);
    const auto operation = operation_recorded_as(graph.names()[one.operation]);
    if (operation != Operation::all_reduce || members < 2 || graph.task(id).phase == Phase::forward)
      continue;
    rows[{graph.task(id).step, graph.lane_of(id)}].push_back(
        {.task = id, .bytes = one.bytes, .operation = *operation, .ranks = members});
  }
  if (rows.empty())
    throw Error(
        "no collective of the backward pass is an all-reduce whose size and number of ranks are "
        "known (the reduce-scatters of FSDP follow its units, not buckets); record with "
        "record_shapes=True, give \"ranks\", or put it behind data_parallel");
  std::vector<SentGradients> found;
  for (auto& [key, row] : rows) {
    std::ranges::stable_sort(
        row, {}, [&](const SentBucket& one) { return timeline.start[index(one.task)]; });
    Bytes sum{};
    for (SentBucket& one : row) {
      one.end = sum += one.bytes;
      one.ready = last_device_wait(graph, timeline, one.task);
    }
    found.push_back(std::move(row));
  }
  return found;
}

}  // namespace foretrace

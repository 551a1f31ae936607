#include "transform/parallel/sent_gradients.h"

#include <algorithm>
#include <map>

#include "foretrace/error.h"
#include "transform/parallel/known_collectives.h"

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

[[noreturn]] void refuse_none(Operation operation, bool exchanges_activations) {
  if (operation == Operation::all_to_all)
    throw Error(
        "no collective is an all-to-all whose size and number of ranks are known; record with "
        "record_shapes=True and a PyTorch that records what collectives send, or put this step "
        "after expert_parallel");
  if (exchanges_activations)
    throw Error(
        "the trace shows no gradients that are sent: the all-reduces outside the forward pass have "
        "counterparts of the same size in it, as they exchange activations of tensor parallel "
        "ranks");
  throw Error(
      "no collective of the backward pass is an all-reduce whose size and number of ranks are "
      "known (the reduce-scatters of FSDP follow its units, not buckets); record with "
      "record_shapes=True, give \"ranks\", or put this step after data_parallel");
}

}  // namespace

void describe_sent_gradients(Fields& fields, std::int64_t& ranks, Selector& where) {
  describe_ranks(fields, ranks);
  fields.object("where", where, "The all-reduces that send gradients");
}

std::vector<SentGradients> sent_gradients(const Graph& graph, const Timeline& timeline,
                                          const Selector& where, std::int64_t ranks,
                                          Operation operation) {
  std::map<std::pair<std::int32_t, LaneId>, SentGradients> rows;
  bool exchanges_activations = false;
  for (const KnownCollective& collective : known_collectives(graph, where, ranks).all) {
    const Task& task = graph.task(collective.task);
    if (collective.operation != operation) continue;
    if (operation == Operation::all_reduce && !collective.is_gradient) {
      exchanges_activations = exchanges_activations || task.phase != Phase::forward;
      continue;
    }
    rows[{task.step, graph.lane_of(collective.task)}].push_back({.task = collective.task,
                                                                 .bytes = collective.bytes,
                                                                 .operation = collective.operation,
                                                                 .ranks = collective.ranks,
                                                                 .type = collective.type});
  }
  if (rows.empty()) refuse_none(operation, exchanges_activations);
  std::vector<SentGradients> found;
  for (auto& [key, row] : rows) {
    std::ranges::stable_sort(
        row, {}, [&](const SentBucket& bucket) { return timeline.start[index(bucket.task)]; });
    Bytes sum{};
    for (SentBucket& bucket : row) {
      bucket.end = sum += bucket.bytes;
      bucket.ready = last_device_wait(graph, timeline, bucket.task);
    }
    found.push_back(std::move(row));
  }
  return found;
}

}  // namespace foretrace

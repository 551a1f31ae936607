#include "transform/memory/memory_edit.h"

#include <algorithm>
#include <fmt/core.h>
#include <tuple>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Sorts accesses into `count` buckets by `key`, and keeps their order within each. Returns the
/// index in `sorted` at which each bucket begins, and the end.
template <class Key>
std::vector<std::size_t> put_in_buckets(const std::vector<Access>& accesses, std::size_t count,
                                        const Key& key, std::vector<Access>& sorted) {
  std::vector<std::size_t> begins(count + 1, 0);
  for (const Access& access : accesses) ++begins[key(access) + 1];
  for (std::size_t i = 0; i < count; ++i) begins[i + 1] += begins[i];
  sorted.resize(accesses.size());
  std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
  for (const Access& access : accesses) sorted[next[key(access)]++] = access;
  return begins;
}

}  // namespace

BlockUses::BlockUses(const Graph& graph, const std::vector<Nanoseconds>& starts) {
  std::vector<Access> accesses;
  accesses.reserve(graph.accesses().size());
  for (const Access& access : graph.accesses()) {
    if (access.task != kNoTask && !graph.removed(access.task) &&
        access.allocation < graph.allocations().size())
      accesses.push_back(access);
  }
  block_begins_ = put_in_buckets(
      accesses, graph.allocations().size(),
      [](const Access& access) -> std::size_t { return access.allocation; }, by_block_);
  const auto moment = [&](const Access& access) {
    return std::tuple(starts[index(access.task)], access.task, access.writes);
  };
  for (std::size_t i = 0; i + 1 < block_begins_.size(); ++i) {
    const auto begin = by_block_.begin();
    std::sort(begin + static_cast<std::ptrdiff_t>(block_begins_[i]),
              begin + static_cast<std::ptrdiff_t>(block_begins_[i + 1]),
              [&](const Access& a, const Access& b) { return moment(a) < moment(b); });
  }
  task_begins_ = put_in_buckets(
      accesses, graph.task_count(),
      [](const Access& access) -> std::size_t { return index(access.task); }, by_task_);
}

std::span<const Access> BlockUses::of_block(std::uint32_t allocation) const {
  if (allocation + std::size_t{1} >= block_begins_.size()) return {};
  return std::span(by_block_).subspan(block_begins_[allocation],
                                      block_begins_[allocation + 1] - block_begins_[allocation]);
}

std::span<const Access> BlockUses::of_task(TaskId task) const {
  if (index(task) + std::size_t{1} >= task_begins_.size()) return {};
  const std::size_t i = index(task);
  return std::span(by_task_).subspan(task_begins_[i], task_begins_[i + 1] - task_begins_[i]);
}

std::vector<Activation> find_activations(const Graph& graph, const BlockUses& uses,
                                         const std::vector<std::uint32_t>& blocks) {
  std::vector<Activation> found;
  for (const std::uint32_t block : blocks) {
    if (graph.allocations()[block].made_by == kNoTask) continue;
    Activation activation{.allocation = block};
    for (const Access& access : uses.of_block(block)) {
      const Phase phase = graph.task(access.task).phase;
      if (phase == Phase::backward || phase == Phase::update) {
        activation.first_backward = access.task;
        break;
      }
      activation.last_forward = access.task;
    }
    if (activation.last_forward != kNoTask && activation.first_backward != kNoTask)
      found.push_back(activation);
  }
  return found;
}

namespace {

bool has_device_tasks(const Graph& graph) {
  for (std::size_t i = 0; i < graph.task_count(); ++i) {
    if (runs_on_device(graph.task(static_cast<TaskId>(i)).kind)) return true;
  }
  return false;
}

}  // namespace

void no_activation(const Graph& graph, const std::vector<std::uint32_t>& blocks) {
  std::vector<char> chosen(graph.allocations().size(), 0);
  for (const std::uint32_t block : blocks) chosen[block] = 1;
  bool used = false, backward = false;
  for (const Access& access : graph.accesses()) {
    used = used || chosen[access.allocation] != 0;
    const Phase phase = graph.task(access.task).phase;
    backward = backward || phase == Phase::backward || phase == Phase::update;
  }
  const std::string allocations = counted(blocks.size(), "allocation") + " of \"where\"";
  if (!used && !has_device_tasks(graph)) {
    throw Error(
        fmt::format("a memory-only recording has no kernels that use the {}; record a trace with "
                    "torch.profiler.profile(profile_memory=True, record_shapes=True) or `foretrace "
                    "collect --memory`",
                    allocations));
  }
  if (!used) throw Error("this trace does not show which tasks use the " + allocations);
  if (!backward) throw Error("this trace shows no task of a backward pass that uses memory");
  throw Error(fmt::format("none of the {} is made, used forward and then used in the backward pass",
                          allocations));
}

TaskId allocating_task(const Graph& graph, const Launches& launches, const Allocation& block,
                       TaskId task) {
  const bool on_device = block.made_by != kNoTask && runs_on_device(graph.task(block.made_by).kind);
  if (on_device) return task;
  const TaskId launch = launches.launch_of(task);
  return launch == kNoTask ? task : launch;
}

TaskTime start_of(TaskId task) { return {.task = task}; }

TaskTime end_of(const Graph& graph, TaskId task) {
  return {.task = task, .after = graph.task(task).duration};
}

namespace {

using StartTimes = std::vector<Nanoseconds>;

/// Returns indices into `splits`, ordered by block, then by time.
std::vector<std::uint32_t> in_order(const std::vector<LifetimeCut>& splits,
                                    const StartTimes& starts) {
  std::vector<std::uint32_t> order(splits.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto key = [&](std::uint32_t i) {
    const LifetimeCut& split = splits[i];
    return std::tuple(split.allocation, starts[index(split.first_behind)], split.first_behind, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace

std::vector<std::uint32_t> split_lifetimes(Graph& graph, const std::vector<LifetimeCut>& splits,
                                           const std::vector<Nanoseconds>& starts) {
  std::vector<Allocation>& blocks = graph.allocations();
  const std::vector<std::uint32_t> order = in_order(splits, starts);
  std::vector<std::uint32_t> first_of(blocks.size() + 1, 0);  // Index into `order`, for each block.
  for (const LifetimeCut& split : splits) ++first_of[split.allocation + 1];
  for (std::size_t i = 1; i < first_of.size(); ++i) first_of[i] += first_of[i - 1];
  std::vector<std::uint32_t> behind(splits.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    const LifetimeCut& split = splits[order[at]];
    const bool again = at > 0 && splits[order[at - 1]].allocation == split.allocation;
    const std::uint32_t front = again ? behind[order[at - 1]] : split.allocation;
    Allocation rest = blocks[front];
    rest.made_by = split.made.task;
    rest.made_after = split.made.after;
    blocks[front].freed_by = split.freed.task;
    blocks[front].freed_after = split.freed.after;
    behind[order[at]] = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back(rest);
  }
  for (Access& access : graph.accesses()) {
    if (access.allocation + std::size_t{1} >= first_of.size() || access.task == kNoTask) continue;
    if (index(access.task) >= starts.size()) continue;
    const auto begin = order.begin() + first_of[access.allocation];
    const auto end = order.begin() + first_of[access.allocation + 1];
    const auto moment = std::tuple(starts[index(access.task)], access.task);
    const auto past = std::partition_point(begin, end, [&](std::uint32_t i) {
      const TaskId first = splits[i].first_behind;
      return std::tuple(starts[index(first)], first) <= moment;
    });
    if (past != begin) access.allocation = behind[*std::prev(past)];
  }
  return behind;
}

InsertedWork insert_work(Graph& graph, const Launches& launches, const ExtraWork& work) {
  const auto insert = [&](TaskId beside, const Task& task) {
    return work.behind ? graph.insert_behind(beside, task) : graph.insert_before(beside, task);
  };
  InsertedWork inserted{.task = insert(work.beside, work.task)};
  const TaskId beside = launches.launch_of(work.beside);
  if (beside == kNoTask || !runs_on_device(work.task.kind)) return inserted;
  const Task& like = graph.task(beside);
  const std::string name = fmt::format("launch {}", graph.names()[work.task.name]);
  const Task call{.duration = work.launch_duration,
                  .name = graph.names().intern(name),
                  .module = work.task.module,
                  .step = like.step,
                  .layer = work.task.layer,
                  .kind = TaskKind::launch,
                  .phase = like.phase};
  inserted.launch = insert(beside, call);
  graph.add({.before = inserted.launch,
             .after = inserted.task,
             .provenance = Provenance::assumed,
             .why = Rule::launch});
  return inserted;
}

}  // namespace foretrace

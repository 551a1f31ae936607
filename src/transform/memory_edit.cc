#include "transform/memory_edit.h"

#include <algorithm>
#include <tuple>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Sorts accesses into buckets by `key`, each in order of `less`.
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
  if (!used) throw Error("this trace does not tell which tasks use the " + allocations);
  if (!backward) throw Error("no task of a backward pass that uses memory is known in this trace");
  throw Error("none of the " + allocations +
              " is made, used forward and then used in the backward pass");
}

TaskId allocator_side(const Graph& graph, const Launches& launches, const Allocation& block,
                      TaskId task) {
  const bool on_device = block.made_by != kNoTask && runs_on_device(graph.task(block.made_by).kind);
  if (on_device) return task;
  const TaskId launch = launches.launch_of(task);
  return launch == kNoTask ? task : launch;
}

Moment start_of(TaskId task) { return {.task = task}; }

Moment end_of(const Graph& graph, TaskId task) {
  return {.task = task, .after = graph.task(task).duration};
}

std::vector<std::uint32_t> split_lifetimes(Graph& graph, const std::vector<Split>& splits,
                                           const std::vector<Nanoseconds>& starts) {
  constexpr std::uint32_t kWhole = 0xffffffff;
  std::vector<std::uint32_t> split_of(graph.allocations().size(), kWhole);
  std::vector<std::uint32_t> second;
  second.reserve(splits.size());
  for (std::uint32_t i = 0; i < splits.size(); ++i) {
    const Split& split = splits[i];
    split_of[split.allocation] = i;
    second.push_back(static_cast<std::uint32_t>(graph.allocations().size()));
    Allocation behind = graph.allocations()[split.allocation];
    behind.made_by = split.made.task;
    behind.made_after = split.made.after;
    graph.allocations().push_back(behind);
    Allocation& front = graph.allocations()[split.allocation];
    front.freed_by = split.freed.task;
    front.freed_after = split.freed.after;
  }
  for (Access& access : graph.accesses()) {
    if (access.allocation >= split_of.size() || access.task == kNoTask) continue;
    const std::uint32_t i = split_of[access.allocation];
    if (i == kWhole || index(access.task) >= starts.size()) continue;
    const TaskId first = splits[i].first_behind;
    if (std::tuple(starts[index(access.task)], access.task) >=
        std::tuple(starts[index(first)], first))
      access.allocation = second[i];
  }
  return second;
}

InsertedWork insert_work(Graph& graph, const Launches& launches, const ExtraWork& work) {
  const auto insert = [&](TaskId beside, const Task& task) {
    return work.behind ? graph.insert_behind(beside, task) : graph.insert_before(beside, task);
  };
  InsertedWork inserted{.task = insert(work.beside, work.task)};
  const TaskId beside = launches.launch_of(work.beside);
  if (beside == kNoTask || !runs_on_device(work.task.kind)) return inserted;
  const Task& like = graph.task(beside);
  const std::string name = "launch " + std::string(graph.names()[work.task.name]);
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
             .why = graph.names().intern("launch")});
  return inserted;
}

}  // namespace foretrace

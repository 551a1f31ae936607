#include "transform/edit/edit.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace foretrace {
namespace {

/// As in_order_of_waits(). Calls `follows(task, next)` for the one behind a task on its lane and
/// `depends(wait)` for each dependency on it, once all in front of the task was told.
template <class Follows, class Depends>
std::vector<TaskId> walk_by_waits(const Graph& graph, const Follows& follows,
                                  const Depends& depends) {
  const std::size_t count = graph.task_count();
  std::vector<std::uint32_t> waits(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto task = static_cast<TaskId>(i);
    if (!graph.removed(task) && graph.previous(task) != kNoTask) ++waits[i];
  }
  graph.each_dependency([&](const Dependency& wait) { ++waits[index(wait.after)]; });
  std::vector<TaskId> order;
  order.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (waits[i] == 0) order.push_back(static_cast<TaskId>(i));
  }
  const auto release = [&](TaskId task) {
    if (--waits[index(task)] == 0) order.push_back(task);
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    const TaskId task = order[i];
    const TaskId next = graph.removed(task) ? kNoTask : graph.next(task);
    if (next != kNoTask) follows(task, next), release(next);
    graph.each_dependent(task, [&](const Dependency& wait) {
      depends(wait);
      release(wait.after);
    });
  }
  return order;
}

}  // namespace

Launches::Launches(const Graph& graph)
    : launch_of_(graph.task_count(), kNoTask), count_(graph.task_count(), 0) {
  graph.each_dependency([&](const Dependency& dependency) {
    if (graph.task(dependency.before).kind != TaskKind::launch) return;
    if (!runs_on_device(graph.task(dependency.after).kind)) return;
    if (graph.removed(dependency.before) || graph.removed(dependency.after)) return;
    TaskId& launch = launch_of_[index(dependency.after)];
    if (launch != kNoTask) return;
    launch = dependency.before;
    ++count_[index(dependency.before)];
  });
}

TaskId Launches::launch_of(TaskId task) const {
  return index(task) < launch_of_.size() ? launch_of_[index(task)] : kNoTask;
}

std::size_t Launches::count(TaskId launch) const {
  return index(launch) < count_.size() ? count_[index(launch)] : 0;
}

std::size_t remove_launches_of(Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks) {
  std::map<TaskId, std::size_t> idle;
  for (const TaskId task : tasks) {
    const TaskId launch = launches.launch_of(task);
    if (launch != kNoTask) ++idle[launch];
  }
  std::vector<TaskId> calls;
  for (const auto& [launch, count] : idle) {
    if (count >= launches.count(launch) && !graph.removed(launch)) calls.push_back(launch);
  }
  remove_calls(graph, calls);
  return calls.size();
}

void remove_calls(Graph& graph, const std::vector<TaskId>& calls) {
  std::vector<char> dropped(graph.task_count(), 0);
  for (const TaskId call : calls) dropped[index(call)] = 1;
  graph.remove_dependencies([&](const Dependency& dependency) {
    return dropped[index(dependency.after)] != 0 &&
           runs_on_device(graph.task(dependency.before).kind);
  });
  for (const TaskId call : calls) graph.remove(call);
}

std::vector<TaskId> in_order_of_waits(const Graph& graph) {
  return walk_by_waits(
      graph, [](TaskId, TaskId) {}, [](const Dependency&) {});
}

std::vector<Nanoseconds> earliest_starts(const Graph& graph) {
  std::vector<Nanoseconds> starts(graph.task_count(), 0ns);
  const auto delay = [&](TaskId task, Nanoseconds earliest) {
    starts[index(task)] = std::max(starts[index(task)], earliest);
  };
  const auto finish_of = [&](TaskId task) {
    const Nanoseconds start = starts[index(task)];
    return graph.removed(task) ? start : start + graph.task(task).duration;
  };
  const std::vector<TaskId> order = walk_by_waits(
      graph,
      [&](TaskId task, TaskId next) {
        delay(next, released_at(graph.task(next), starts[index(task)], finish_of(task)));
      },
      [&](const Dependency& wait) {
        delay(wait.after, released_at(wait, starts[index(wait.before)], finish_of(wait.before)));
      });
  if (order.size() == starts.size()) return starts;
  // Tasks in a circle come last.
  std::vector<Nanoseconds> known(starts.size(), Nanoseconds::max());
  for (const TaskId task : order) known[index(task)] = starts[index(task)];
  return known;
}

void sort_by_start(std::vector<TaskId>& tasks, const std::vector<Nanoseconds>& starts) {
  std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
    return std::tuple(starts[index(a)], a) < std::tuple(starts[index(b)], b);
  });
}

LaneId lane_named(Graph& graph, std::string_view name, LaneId like) {
  const Lane wanted = graph.lane(like);
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const Lane& lane = graph.lane(static_cast<LaneId>(i));
    if (lane.name == name && lane.rank == wanted.rank && lane.device == wanted.device) {
      return static_cast<LaneId>(i);
    }
  }
  return graph.add_lane({.name = std::string(name),
                         .kind = wanted.kind,
                         .device = wanted.device,
                         .rank = wanted.rank});
}

std::vector<TaskId> first_of_each_step(const Graph& graph, const std::vector<TaskId>& tasks) {
  std::set<std::int32_t> seen;
  std::vector<TaskId> first;
  for (const TaskId task : tasks) {
    if (seen.insert(graph.task(task).step).second) first.push_back(task);
  }
  return first;
}

std::vector<Group> grouped(const Graph& graph, const std::vector<TaskId>& tasks,
                           std::string_view by) {
  std::vector<Group> groups;
  if (by == "each" || by == "run") {
    for (const TaskId task : tasks) {
      const bool follows =
          by == "run" && !groups.empty() && graph.previous(task) == groups.back().back();
      if (!follows) groups.emplace_back();
      groups.back().push_back(task);
    }
    return groups;
  }
  std::map<std::tuple<LaneId, std::int32_t, Phase, std::int32_t>, std::size_t> known;
  for (const TaskId id : tasks) {
    const Task& task = graph.task(id);
    const bool by_layer = by == "layer";
    const auto [at, added] =
        known.try_emplace({graph.lane_of(id), by == "all" ? -1 : task.step,
                           by_layer ? task.phase : Phase::none, by_layer ? task.layer : -1},
                          groups.size());
    if (added) groups.emplace_back();
    groups[at->second].push_back(id);
  }
  return groups;
}

bool has_waits(const Graph& graph, TaskId task) {
  bool found = false;
  graph.each_wait(task, [&](const Dependency&) { found = true; });
  return found;
}

void drop_dependencies_of(Graph& graph, const std::vector<TaskId>& tasks) {
  std::vector<char> dropped(graph.task_count(), 0);
  for (const TaskId task : tasks) dropped[index(task)] = 1;
  graph.remove_dependencies([&](const Dependency& dependency) {
    return dropped[index(dependency.before)] != 0 || dropped[index(dependency.after)] != 0;
  });
}

Nanoseconds total_duration(const Graph& graph, const std::vector<TaskId>& tasks) {
  Nanoseconds total(0);
  for (const TaskId task : tasks) {  // No further than the clock counts: a factor may be huge.
    total += std::min(graph.task(task).duration, Nanoseconds::max() - total);
  }
  return total;
}

Effect change_durations(Graph& graph, const std::vector<TaskId>& tasks,
                        const std::function<Nanoseconds(Nanoseconds)>& wanted) {
  const Nanoseconds before = total_duration(graph, tasks);
  Effect effect;
  for (const TaskId id : tasks) {
    Nanoseconds& duration = graph.task(id).duration;
    const Nanoseconds after = wanted(duration);
    if (after != duration) ++effect.changed;
    duration = after;
  }
  effect.summary = tasks_by_kind(graph, tasks) + " from " + to_text(before) + " to " +
                   to_text(total_duration(graph, tasks)) + " in all";
  return effect;
}

std::vector<RetimedTask> as_retimed(const std::vector<TaskId>& tasks) {
  std::vector<RetimedTask> retimed;
  retimed.reserve(tasks.size());
  for (const TaskId task : tasks) retimed.push_back({.task = task});
  return retimed;
}

Bytes times(Bytes amount, std::int64_t count) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (amount.count <= 0 || count <= 0) return {};
  return amount.count > kMost / count ? Bytes{kMost} : Bytes{amount.count * count};
}

std::string tasks_by_kind(const Graph& graph, const std::vector<TaskId>& tasks) {
  std::map<TaskKind, std::size_t> kinds;
  for (const TaskId task : tasks) ++kinds[graph.task(task).kind];
  if (kinds.size() == 1)
    return counted(tasks.size(), std::string(to_string(kinds.begin()->first)) + " task");
  std::string list;
  for (const auto& [kind, count] : kinds)
    list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(to_string(kind));
  return counted(tasks.size(), "task") + (list.empty() ? "" : " (" + list + ")");
}

std::string counted(std::size_t count, std::string_view thing) {
  return std::to_string(count) + " " + std::string(thing) + (count == 1 ? "" : "s");
}

}  // namespace foretrace

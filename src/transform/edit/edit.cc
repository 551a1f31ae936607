#include "transform/edit/edit.h"

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "base/wording.h"

namespace foretrace {

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
  for (const TaskId task : tasks) {  // The sum saturates, because a factor may be huge.
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
  effect.summary = fmt::format("{} from {} to {} in all", tasks_by_kind(graph, tasks),
                               to_text(before), to_text(total_duration(graph, tasks)));
  return effect;
}

std::vector<RetimedTask> as_retimed(const std::vector<TaskId>& tasks) {
  std::vector<RetimedTask> retimed;
  retimed.reserve(tasks.size());
  for (const TaskId task : tasks) retimed.push_back({.task = task});
  return retimed;
}

void note_count(Effect& effect, Severity severity, std::string_view text, std::size_t count) {
  if (count > 0) effect.notes.add(severity, text, {}, static_cast<std::int64_t>(count));
}

Bytes times(Bytes amount, std::int64_t count) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  if (amount.count <= 0 || count <= 0) return {};
  return amount.count > kMax / count ? Bytes{kMax} : Bytes{amount.count * count};
}

std::string tasks_by_kind(const Graph& graph, const std::vector<TaskId>& tasks) {
  std::map<TaskKind, std::size_t> kinds;
  for (const TaskId task : tasks) ++kinds[graph.task(task).kind];
  if (kinds.size() == 1)
    return counted(tasks.size(), fmt::format("{} task", to_string(kinds.begin()->first)));
  std::string list;
  for (const auto& [kind, count] : kinds)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", grouped(count), to_string(kind));
  return counted(tasks.size(), "task") + (list.empty() ? "" : fmt::format(" ({})", list));
}

std::vector<std::size_t> greatest_awaited(const Graph& graph, std::vector<std::size_t> numbers) {
  for (const TaskId task : in_order_of_waits(graph)) {
    const auto waits_for = [&](TaskId before) {
      numbers[index(task)] = std::max(numbers[index(task)], numbers[index(before)]);
    };
    const bool in_line = graph.lane(graph.lane_of(task)).discipline == Discipline::fifo;
    if (in_line && graph.previous(task) != kNoTask) waits_for(graph.previous(task));
    graph.each_wait(task, [&](const Dependency& wait) { waits_for(wait.before); });
  }
  return numbers;
}

}  // namespace foretrace

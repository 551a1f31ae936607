#include "analysis/place/work_group.h"

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <set>

#include "base/wording.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "job/step_cost.h"
#include "trace/wait_call.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxKernelNames = 3;

bool on_host(const Graph& graph, TaskId task) { return !runs_on_device(graph.task(task).kind); }

/// Whether a host task waits for a device.
bool is_host_wait(const Graph& graph, const Dependency& wait) {
  return !on_host(graph, wait.before) && on_host(graph, wait.after);
}

/// Adds the wanted tasks as a whole to a group.
WorkGroup with_tasks(const Graph& graph, WorkGroup group,
                     const std::function<bool(TaskId)>& wanted) {
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task{i};
    if (graph.removed(task) || !wanted(task)) continue;
    const bool shared = graph.lane(graph.lane_of(task)).discipline == Discipline::shared;
    if (graph.task(task).duration <= 0ns && !shared) continue;
    group.parts.emplace_back(task, graph.task(task).duration);
  }
  group.has_work = group.has_work || !group.parts.empty();
  return group;
}

WorkGroup of_kinds(const Graph& graph, WorkGroup group, bool (*wanted)(TaskKind)) {
  return with_tasks(graph, std::move(group),
                    [&](TaskId task) { return wanted(graph.task(task).kind); });
}

WorkGroup without_host_waits(const Graph& graph, WorkGroup group) {
  group.host_waits = true;
  std::set<TaskId> waiting;
  graph.each_dependency([&](const Dependency& wait) {
    if (is_host_wait(graph, wait)) waiting.insert(wait.after);
  });
  group.has_work = !waiting.empty();
  return with_tasks(graph, std::move(group), [&](TaskId task) {
    return graph.task(task).kind == TaskKind::sync && waiting.contains(task);
  });
}

/// Work of dispatching to the device: pieces shorter than kLongestDispatch on threads that launch.
WorkGroup dispatch(const Graph& graph) {
  std::vector<char> launches(graph.lane_count(), 0);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (!graph.removed(id) && graph.task(id).kind == TaskKind::launch)
      launches[index(graph.lane_of(id))] = 1;
  }
  return with_tasks(graph,
                    {.name = "launches",
                     .title = "launching",
                     .assumes = "launch calls, and host work in pieces below 1 ms around them, "
                                "take no time; work starts at once",
                     .launch_delays = true,
                     .host_gaps = true,
                     .longest_host_gap = kLongestDispatch,
                     .device_gaps = true},
                    [&](TaskId id) {
                      const Task& task = graph.task(id);
                      return is_host_work(task.kind) && launches[index(graph.lane_of(id))] != 0 &&
                             (task.kind == TaskKind::launch || task.duration < kLongestDispatch);
                    });
}

WorkGroup driver_allocations(const Graph& graph) {
  WorkGroup group = with_tasks(
      graph,
      {.name = "allocations",
       .title = "driver allocations",
       .assumes = "the driver is never asked for memory and never given any back",
       .call_waits = true},
      [&](TaskId id) { return on_host(graph, id) && is_driver_allocation(graph.name(id)); });
  return group;
}

/// The work that is transfer: all of a collective whose ranks wait for each other in the graph. Of
/// the others, the fastest one of one name and size shows it, and the rest is waiting.
WorkGroup transfers(const Graph& graph, WorkGroup group) {
  using Alike = std::pair<NameId, std::int64_t>;
  std::map<Alike, Nanoseconds> least;
  const auto alike = [&](TaskId task) {
    return Alike(graph.task(task).name, graph.task(task).bytes.count);
  };
  group = of_kinds(graph, std::move(group), communicates);
  for (const auto& [task, duration] : group.parts) {
    const auto [found, is_new] = least.try_emplace(alike(task), duration);
    if (!is_new) found->second = std::min(found->second, duration);
  }
  std::set<TaskId> joined;
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why == Rule::other_ranks) joined.insert(wait.after);
  });
  for (auto& [task, part] : group.parts) {
    if (graph.task(task).kind == TaskKind::collective && !joined.contains(task))
      part = least.at(alike(task));
  }
  return group;
}

/// Shortens a kernel's name to a text that distinguishes it: without arguments, and with the
/// enclosing name if the last part is short.
///
///     at::native::reduce_kernel<512, 1>(...)  ->  reduce_kernel
///     cutlass::Kernel<...>(...)               ->  cutlass::Kernel
std::string_view base_name(std::string_view name) {
  constexpr std::size_t kSaysLittle = 10, kLongestShown = 40;
  constexpr std::string_view kNameless[] = {"(anonymous namespace)::", "<unnamed>::"};
  if (name.starts_with("void ")) name.remove_prefix(5);
  for (const std::string_view nameless : kNameless) {
    const std::size_t at = name.find(nameless);
    if (at != name.npos && at <= name.find_first_of("<(")) name.remove_prefix(at + nameless.size());
  }
  name = name.substr(0, name.find_first_of("<("));
  std::size_t from = name.rfind("::");
  if (from != name.npos && name.size() - from - 2 < kSaysLittle && from > 0)
    from = name.rfind("::", from - 1);
  if (from != name.npos) name.remove_prefix(from + 2);
  return name.substr(0, kLongestShown);
}

WorkGroup kernels_like(const Graph& graph, std::string_view pattern) {
  NameCondition matches(pattern, graph.names());
  return with_tasks(graph,
                    {.name = fmt::format("kernels.{}", pattern),
                     .title = fmt::format("kernels \"{}\"", pattern),
                     .assumes = {}},
                    [&](TaskId id) {
                      const Task& task = graph.task(id);
                      return task.kind == TaskKind::kernel &&
                             (matches(task.name) || matches(task.module));
                    });
}

/// The base names of the kernels that take most of the time.
std::vector<std::string_view> longest_kernels(const Graph& graph) {
  std::map<NameId, Nanoseconds> of_names;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind == TaskKind::kernel && !graph.removed(TaskId{i}))
      of_names[task.name] += task.duration;
  }
  std::map<std::string_view, Nanoseconds> sums;
  for (const auto& [name, time] : of_names) sums[base_name(graph.names()[name])] += time;
  std::vector<std::pair<std::string_view, Nanoseconds>> sorted(sums.begin(), sums.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string_view> names;
  for (const auto& [name, time] : sorted) {
    if (names.size() == kMaxKernelNames) break;
    if (!name.empty() && time > 0ns) names.push_back(name);
  }
  // A single name is covered by "kernels" already.
  return sorted.size() == 1 ? std::vector<std::string_view>() : names;
}

WorkGroup all_kernels(const Graph& graph) {
  return of_kinds(graph, {.name = "kernels", .title = "all kernels", .assumes = {}},
                  [](TaskKind kind) { return kind == TaskKind::kernel; });
}

std::vector<WorkGroup> groups_beside_kernels(const Graph& graph) {
  std::vector<WorkGroup> all;
  all.push_back(of_kinds(graph,
                         {.name = "host.work",
                          .title = "work of the host, launching included",
                          .assumes = {},
                          .launch_delays = true,
                          .host_gaps = true},
                         is_host_work));
  all.push_back(of_kinds(
      graph,
      {.name = "launch.overhead", .title = "launching", .assumes = {}, .launch_delays = true},
      [](TaskKind kind) { return kind == TaskKind::launch; }));
  all.push_back(of_kinds(graph, {.name = "input.time", .title = "loading", .assumes = {}},
                         [](TaskKind kind) { return kind == TaskKind::input; }));
  all.push_back(of_kinds(
      graph, {.name = "copy.bandwidth", .title = "copies to and from the host", .assumes = {}},
      crosses_host_link));
  all.push_back(transfers(
      graph, {.name = "link.bandwidth", .title = "transfers between devices", .assumes = {}}));
  all.push_back(without_host_waits(
      graph, {.name = "syncs", .title = "waits of the host for the device", .assumes = {}}));
  return all;
}

void remove_waits(Graph& graph, const WorkGroup& group) {
  std::set<TaskId> calls;
  for (const auto& [task, part] : group.parts) calls.insert(task);
  graph.remove_dependencies([&](const Dependency& wait) {
    if (group.late_ranks && wait.why == Rule::other_ranks) return true;
    if (!is_host_wait(graph, wait)) return false;
    return (group.copy_waits && graph.task(wait.before).kind == TaskKind::copy_in) ||
           (group.call_waits && calls.contains(wait.after));
  });
}

}  // namespace

WorkGroup long_host_work(const JobGraph& job) {
  const Graph& graph = job.graph();
  const MeasuredSteps steps = measured_steps(job.advised());
  const auto is_long = [&](TaskId id) {
    const Task& task = graph.task(id);
    return task.kind == TaskKind::host && task.duration >= kLongestDispatch;
  };
  std::map<NameId, Nanoseconds> of_names;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    if (!graph.removed(id) && is_long(id) && steps.has(graph.task(id)) &&
        job.of_advised(id) != kNoTask)
      of_names[graph.task(id).name] += graph.task(id).duration;
  }
  if (of_names.empty()) return {};
  const auto most =
      std::max_element(of_names.begin(), of_names.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  const NameId name = most->first;
  return with_tasks(graph,
                    {.name = "long", .title = std::string(graph.names()[name]), .assumes = {}},
                    [&](TaskId id) { return is_long(id) && graph.task(id).name == name; });
}

std::vector<WorkGroup> ladder_groups(const Graph& graph) {
  std::vector<WorkGroup> all;
  all.push_back(dispatch(graph));
  all.push_back(of_kinds(graph,
                         {.name = "host",
                          .title = "host work",
                          .assumes = "nothing the host does takes time, except loading",
                          .launch_delays = true,
                          .host_gaps = true,
                          .device_gaps = true},
                         is_host_work));
  all.push_back(
      without_host_waits(graph, {.name = "syncs",
                                 .title = "host waiting",
                                 .assumes = "the host never waits for the device, however far it "
                                            "is ahead; calls that wait take no time"}));
  all.push_back(of_kinds(
      graph, {.name = "input", .title = "input", .assumes = "data is there whenever it is needed"},
      [](TaskKind kind) { return kind == TaskKind::input; }));
  all.push_back(of_kinds(graph,
                         {.name = "copies",
                          .title = "copies",
                          .assumes = "copies and fills take no time, and the host does not wait "
                                     "for those to the device",
                          .copy_waits = true},
                         is_copy));
  all.push_back(of_kinds(graph,
                         {.name = "communication",
                          .title = "communication",
                          .assumes = "collectives take no time, and no rank is late",
                          .late_ranks = true},
                         communicates));
  if (WorkGroup group = driver_allocations(graph); group.has_work) all.push_back(std::move(group));
  return all;
}

std::vector<WorkGroup> all_groups(const Graph& graph) {
  std::vector<WorkGroup> all = ladder_groups(graph);
  all.push_back(all_kernels(graph));
  return all;
}

std::vector<WorkGroup> named_groups(const Graph& graph) {
  std::vector<WorkGroup> all;
  all.push_back(all_kernels(graph));
  for (const std::string_view name : longest_kernels(graph))
    all.push_back(kernels_like(graph, name));
  for (WorkGroup& group : groups_beside_kernels(graph)) all.push_back(std::move(group));
  return all;
}

WorkGroup group_named(const Graph& graph, std::string_view name) {
  if (name == "kernels") return all_kernels(graph);
  if (name == "kernels.") throw Error("must say which kernels, such as kernels.gemm");
  if (name.starts_with("kernels.")) {
    WorkGroup group = kernels_like(graph, name.substr(8));
    if (group.has_work) return group;
    throw Error(fmt::format("no kernel has \"{}\" in its name or module", name.substr(8)));
  }
  std::vector<WorkGroup> all = groups_beside_kernels(graph);
  std::vector<std::string> names = {"kernels", "kernels.NAME"};
  for (WorkGroup& group : all) {
    if (group.name == name) return std::move(group);
    names.push_back(group.name);
  }
  throw Error(
      fmt::format("there is no \"{}\" to make faster; there are {}, and settings with their values "
                  "such as loader.workers=1..32{}",
                  name, joined(names), did_you_mean(name, names)));
}

Nanoseconds work_of(const JobGraph& job, const WorkGroup& group) {
  const MeasuredSteps steps = measured_steps(job.advised());
  Nanoseconds sum{0};
  for (const auto& [task, part] : group.parts) {
    if (job.of_advised(task) != kNoTask && steps.has(job.graph().task(task))) sum += part;
  }
  return sum / steps.count;
}

Retiming retiming_of(const Graph& graph, const WorkGroup& group, double factor) {
  Retiming retiming;
  for (const auto& [id, part] : group.parts)
    retiming.durations.emplace_back(
        id, std::max(0ns, graph.task(id).duration - (part - scaled(part, factor))));
  if (group.host_gaps || group.device_gaps) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(TaskId{i});
      const bool wanted =
          runs_on_device(task.kind)
              ? group.device_gaps && task.gap < kLongestDispatch
              : group.host_gaps && is_host_work(task.kind) && task.gap < group.longest_host_gap;
      if (task.gap > 0ns && wanted) retiming.gaps.emplace_back(TaskId{i}, scaled(task.gap, factor));
    }
  }
  if (!group.launch_delays) return retiming;
  std::size_t number = 0;
  graph.each_dependency([&](const Dependency& wait) {
    if (wait.why == Rule::launch && wait.lag > 0ns)
      retiming.lags.emplace_back(number, scaled(wait.lag, factor));
    ++number;
  });
  return retiming;
}

void scale_work(Graph& graph, const WorkGroup& group, double factor) {
  retime(graph, retiming_of(graph, group, factor));
  for (const auto& [id, part] : group.parts) {
    Task& task = graph.task(id);
    if (graph.lane(graph.lane_of(id)).discipline == Discipline::shared)
      task.bytes = scaled(task.bytes, factor);
  }
  if (factor == 0 && (group.copy_waits || group.call_waits || group.late_ranks))
    remove_waits(graph, group);
  if (group.host_waits && factor < 1)
    graph.remove_dependencies([&](const Dependency& wait) { return is_host_wait(graph, wait); });
}

}  // namespace foretrace

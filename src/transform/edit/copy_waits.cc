#include "transform/edit/copy_waits.h"

namespace foretrace {
namespace {

constexpr int kFarthest = 16;  // Tasks searched back from a wait to its call.

/// Whether `task` is a wait of the host with nothing but host work between it and a call in
/// `calls`.
bool waits_behind_call(const Graph& graph, TaskId task, const std::vector<char>& calls) {
  const Task& wait = graph.task(task);
  if (!runs_on_host(wait.kind) || wait.kind == TaskKind::launch) return false;
  if (graph.name(task).find("DeviceSynchronize") != std::string_view::npos) return false;
  for (int steps = 0; steps < kFarthest && task != kNoTask; ++steps) {
    if (calls[index(task)] != 0) return true;
    const TaskKind kind = graph.task(task).kind;
    if (kind != TaskKind::host && kind != TaskKind::sync) return false;
    task = graph.previous(task);
  }
  return false;
}

/// Whether `task` is a synchronization in which the host waits before it stages the data of a call
/// in `calls`.
bool syncs_before_call(const Graph& graph, TaskId task, const std::vector<char>& calls) {
  if (graph.task(task).kind != TaskKind::sync) return false;
  TaskId next = graph.next(task);
  if (next != kNoTask && graph.task(next).kind == TaskKind::host) next = graph.next(next);
  return next != kNoTask && calls[index(next)] != 0;
}

}  // namespace

std::size_t drop_waits_for_copies(Graph& graph, const Launches& launches,
                                  const std::vector<TaskId>& copies) {
  std::vector<char> copied(graph.task_count(), 0);
  std::vector<char> call(graph.task_count(), 0);
  for (const TaskId copy : copies) {
    copied[index(copy)] = 1;
    const TaskId launch = launches.launch_of(copy);
    if (launch != kNoTask) call[index(launch)] = 1;
  }
  return graph.remove_dependencies([&](const Dependency& wait) {
    if (graph.removed(wait.after)) return false;
    if (copied[index(wait.before)] != 0 && waits_behind_call(graph, wait.after, call)) return true;
    return wait.why == Rule::blocking_copy && syncs_before_call(graph, wait.after, call);
  });
}

}  // namespace foretrace

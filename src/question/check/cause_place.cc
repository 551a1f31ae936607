// Describes the place of work that has no place of its own in the program.

#include <algorithm>
#include <fmt/core.h>

#include "question/check/job/changes.h"
#include "question/check/job/words.h"

namespace foretrace {
namespace {

std::string example_place(const ObservedJob& job, TaskId task, CheckCause& cause) {
  if (index(task) >= job.recorded_tasks) return {};
  WorkChange place;
  place.op = job.sites.op_path(task);
  place.module = job.graph.names()[job.graph.task(task).module];
  if (const std::optional<CallSite> site = job.sites.site(task)) {
    place.file = cause.file = site->file, place.function = site->function;
    cause.line = site->line;
  }
  return place_words(place, cause.line);
}

/// Whether all of `tasks` are at the same place as `one`.
bool share_a_place(const ObservedJob& job, const std::vector<TaskId>& tasks, TaskId reference) {
  return std::all_of(tasks.begin(), tasks.end(), [&](TaskId task) {
    return index(task) < job.recorded_tasks &&
           job.sites.op_path(task) == job.sites.op_path(reference) &&
           job.graph.task(task).module == job.graph.task(reference).module &&
           job.sites.site(task) == job.sites.site(reference);
  });
}

std::string neighbour_name(const ObservedJob& job, TaskId task) {
  if (task == kNoTask || job.graph.task(task).kind == TaskKind::marker) return {};
  const std::string_view op =
      index(task) < job.recorded_tasks ? job.sites.op(task) : std::string_view();
  const bool on_device = runs_on_device(job.graph.task(task).kind);
  return plain_name(op.empty() ? job.graph.name(task) : op, op.empty() && on_device);
}

}  // namespace

std::string position_of(const ObservedJob& job, const std::vector<TaskId>& tasks,
                        CheckCause& cause) {
  TaskId longest = kNoTask;
  const Graph& graph = job.graph;
  for (const TaskId task : tasks) {
    if (longest == kNoTask || graph.task(task).duration > graph.task(longest).duration)
      longest = task;
  }
  if (longest == kNoTask) return {};
  if (const std::string place = example_place(job, longest, cause); !place.empty())
    return share_a_place(job, tasks, longest) ? place : "several places, such as " + place;
  const std::string behind = neighbour_name(job, graph.previous(longest));
  const std::string front = neighbour_name(job, graph.next(longest));
  if (!behind.empty() && !front.empty())
    return fmt::format("the place between {} and {}", behind, front);
  if (!behind.empty()) return "the place after " + behind;
  return front.empty() ? front : "the place before " + front;
}

}  // namespace foretrace

// The cost of a change end to end: the job is replayed without it. Work that is hidden behind other
// work costs nothing, and a wait may cost far more than the call that waits.

#include <algorithm>
#include <map>

#include "foretrace/simulate.h"
#include "question/check/job/changes.h"

namespace foretrace {
namespace {

/// Marks the waits to remove, by task. In each step the waits at the new lines come first, then the
/// latest ones.
std::vector<char> freed_waits(const ObservedJob& job, const Grouping& grouping,
                              const std::vector<RemovedWork>& taken) {
  std::vector<char> freed(job.graph.task_count(), 0);
  for (const RemovedWork& part : taken) {
    if (part.freed_syncs <= 0) continue;
    std::map<std::int32_t, std::vector<std::pair<bool, TaskId>>> steps;
    for (std::uint32_t i = 0; i < job.graph.task_count(); ++i) {
      if (grouping.group_of[i] != part.group || job.graph.task(TaskId{i}).kind != TaskKind::sync)
        continue;
      const std::optional<CallSite> site =
          i < job.recorded_tasks ? job.sites.site(TaskId{i}) : std::nullopt;
      const bool at_line =
          site && std::find(part.lines.begin(), part.lines.end(), site->line) != part.lines.end();
      steps[job.graph.task(TaskId{i}).step].emplace_back(at_line, TaskId{i});
    }
    for (auto& [step, waits] : steps) {
      std::stable_sort(waits.begin(), waits.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      const auto count =
          std::min<std::size_t>(waits.size(), static_cast<std::size_t>(part.freed_syncs));
      for (std::size_t i = waits.size() - count; i < waits.size(); ++i)
        freed[index(waits[i].second)] = 1;
    }
  }
  return freed;
}

}  // namespace

Nanoseconds effect_of(const ObservedJob& job, const Grouping& grouping,
                      const std::vector<RemovedWork>& taken) {
  Graph without = job.graph.clone();
  std::map<std::uint32_t, double> left;
  for (const RemovedWork& part : taken) left[part.group] = part.left;
  for (std::uint32_t i = 0; i < without.task_count(); ++i) {
    if (const auto found = left.find(grouping.group_of[i]); found != left.end()) {
      Task& task = without.task(TaskId{i});
      task.duration = scaled(task.duration, found->second);
    }
  }
  const std::vector<char> freed = freed_waits(job, grouping, taken);
  without.remove_dependencies([&](const Dependency& wait) {
    return freed[index(wait.after)] != 0 && runs_on_device(without.task(wait.before).kind);
  });
  const Timeline timeline = simulate(without, {.reasons = false, .memory = false});
  return step_times(job.graph, job.replayed).step_time - step_times(without, timeline).step_time;
}

}  // namespace foretrace

// Causes that have no one place in the program: a kernel that became slower wherever it runs, and
// what a single step took longer for.

#include <algorithm>
#include <map>

#include "foretrace/step_marks.h"
#include "scenario/check/changes.h"
#include "scenario/check/words.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostSlowerKernels = 5;

const CheckedFigure* worse_figure(const CausesQuestion& question, std::string_view name) {
  for (const CheckedFigure& figure : question.figures) {
    if (figure.name == name && figure.standing >= Standing::warned) return &figure;
  }
  return nullptr;
}

std::vector<TaskId> tasks_of_kernel(const JobKernels& kernels, std::uint32_t number) {
  std::vector<TaskId> tasks;
  for (std::uint32_t i = 0; i < kernels.kernel_of.size(); ++i) {
    if (kernels.kernel_of[i] == number) tasks.push_back(TaskId{i});
  }
  return tasks;
}

CheckCause kernel_cause(const CausesQuestion& question, const SlowerKernel& slower) {
  const KernelTimes& before = question.before.kernels[slower.before];
  const KernelTimes& now = question.kernels.kernels[slower.now];
  CheckCause cause;
  cause.what = now.name + " slower: " + to_text(before.each) + " -> " + to_text(now.each) +
               (now.count > 1 ? " x " + std::to_string(now.count) : "");
  cause.kind = "kernel", cause.figure = "slower_kernels";
  cause.local = slower.added;
  cause.count_before = before.count, cause.count_after = now.count;
  cause.where = position_of(question.job, tasks_of_kernel(question.kernels, slower.now), cause);
  const Grouping alone{.detail = 0, .groups = {}, .group_of = question.kernels.kernel_of};
  cause.effect = std::min(
      cause.local,
      effect_of(question.job, alone,
                {{.group = slower.now, .left = 1 / slower.ratio, .freed_syncs = 0, .lines = {}}}));
  return cause;
}

/// Of each group, and of what belongs to none: the work of each step.
class WorkOfSteps {
 public:
  explicit WorkOfSteps(const CausesQuestion& question) {
    const Graph& graph = question.job.graph;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const std::uint32_t group = question.grouping.group_of[i];
      const Task& task = graph.task(TaskId{i});
      if (group == kNone || runs_on_device(task.kind)) continue;
      steps_[group][task.step] += task.duration;
    }
  }

  struct Excess {
    std::uint32_t group = kNone;
    Nanoseconds usual{0}, there{0};
    Nanoseconds more() const { return there - usual; }
  };
  /// The group with the most work in a step beyond what is usual for it.
  Excess greatest(std::int32_t step, std::size_t steps) const {
    Excess found;
    for (const auto& [group, works] : steps_) {
      const auto at = works.find(step);
      if (at == works.end()) continue;
      std::vector<std::int64_t> all(steps - works.size(), 0);
      for (const auto& [number, work] : works) all.push_back(work.count());
      const Excess one{group, Nanoseconds(lower_median(std::move(all))), at->second};
      if (one.more() > found.more()) found = one;
    }
    return found;
  }

 private:
  std::map<std::uint32_t, std::map<std::int32_t, Nanoseconds>> steps_;
};

std::string host_name(const JobGroup& group) {
  if (!group.name.empty()) return group.name;
  return group.kind == "input" ? "loading" : "host work";
}

}  // namespace

void add_slower_kernels(const CausesQuestion& question, std::vector<FoundCause>& found) {
  const CheckedFigure* figure = worse_figure(question, "slower_kernels");
  if (figure == nullptr) return;
  std::size_t said = 0;
  for (const SlowerKernel& slower :
       slower_kernels(question.before.kernels, question.kernels.kernels)) {
    if (said++ == kMostSlowerKernels) return;
    found.push_back({kernel_cause(question, slower), figure->standing});
  }
}

void add_slowest_step(const CausesQuestion& question, std::vector<FoundCause>& found) {
  const CheckedFigure* figure = worse_figure(question, "slowest_step");
  if (figure == nullptr) figure = worse_figure(question, "mean_step");
  if (figure == nullptr && found.empty()) figure = worse_figure(question, "step_time");
  const StepTimes times = step_times(question.job.graph, question.job.timeline);
  const std::vector<std::int32_t> steps = counted_steps(question.job.graph);
  if (figure == nullptr || steps.size() < 2 || times.each.size() < times.first + steps.size())
    return;
  std::size_t slowest = 0;
  const auto length = [&](std::size_t i) { return times.each[times.first + i]; };
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (length(i) > length(slowest)) slowest = i;
  }
  const Nanoseconds more = length(slowest) - times.step_time;
  const bool all_are_longer =
      figure->after.value_or(0) - figure->before.value_or(0) > 2 * more.count();
  if (all_are_longer) return;
  CheckCause cause;
  cause.kind = "host", cause.figure = figure->name, cause.local = more;
  cause.what = "one step of " + std::to_string(steps.size()) + " takes " +
               to_text(length(slowest)) + " where the others take " + to_text(times.step_time);
  // The host works ahead: what holds a step up may be in that before it.
  const WorkOfSteps works(question);
  WorkOfSteps::Excess excess = works.greatest(steps[slowest], steps.size());
  std::int32_t at = steps[slowest];
  for (const std::int32_t step : {steps[slowest] - 1, steps[slowest] + 1}) {
    if (const WorkOfSteps::Excess other = works.greatest(step, steps.size());
        other.more() > excess.more())
      excess = other, at = step;
  }
  if (excess.group != kNone && excess.more() * 3 >= more) {
    const JobGroup& group = question.grouping.groups[excess.group];
    cause.what +=
        ": " + host_name(group) + " " + to_text(excess.usual) + " -> " + to_text(excess.there);
    std::vector<TaskId> tasks;
    for (std::uint32_t i = 0; i < question.job.graph.task_count(); ++i) {
      if (question.grouping.group_of[i] == excess.group &&
          question.job.graph.task(TaskId{i}).step == at)
        tasks.push_back(TaskId{i});
    }
    cause.where = position_of(question.job, tasks, cause);
  } else {
    cause.what += ", for no work of its own that was recorded";
  }
  found.push_back({std::move(cause), figure->standing});
}

}  // namespace foretrace

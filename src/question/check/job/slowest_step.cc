// Finds the cause of a single slow step, which the median of all steps does not show.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/statistics.h"
#include "question/check/job/changes.h"
#include "question/check/job/figures.h"
#include "timeline/step_marks.h"

namespace foretrace {
namespace {

/// The host work of each group in each step.
class HostStepWork {
 public:
  explicit HostStepWork(const CausesQuestion& question) {
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
    Nanoseconds usual{0}, actual{0};
    Nanoseconds more() const { return actual - usual; }
  };
  /// The group with the greatest excess over its usual work in a step.
  Excess greatest(std::int32_t step, std::size_t steps) const {
    Excess found;
    for (const auto& [group, works] : steps_) {
      const auto at = works.find(step);
      if (at == works.end()) continue;
      std::vector<std::int64_t> all(steps - works.size(), 0);
      for (const auto& [number, work] : works) all.push_back(work.count());
      const Excess candidate{group, Nanoseconds(lower_median(std::move(all))), at->second};
      if (candidate.more() > found.more()) found = candidate;
    }
    return found;
  }

 private:
  std::map<std::uint32_t, std::map<std::int32_t, Nanoseconds>> steps_;
};

std::string host_name(const JobGroup& group) {
  if (!group.name.empty()) return group.name;
  return group.kind == TaskKind::input ? "loading" : "host work";
}

/// Finds the slowest step and the work that took longer in it.
class SlowestStep {
 public:
  explicit SlowestStep(const CausesQuestion& question)
      : question_(question),
        lengths_(usual_lengths(step_times(question.job.graph, question.job.timeline))),
        steps_(counted_steps(question.job.graph)) {
    if (steps_.size() < 2 || lengths_.size() < steps_.size()) return;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      if (lengths_[i].more() > lengths_[slowest_].more()) slowest_ = i;
    }
    more_ = lengths_[slowest_].more();
  }

  /// How much longer it is than the median of the steps at its place in the period.
  Nanoseconds more() const { return more_; }

  CheckCause cause() const {
    CheckCause cause;
    cause.kind = "host", cause.local = more_;
    cause.what = fmt::format("one step of {} takes {} where the others take {}", steps_.size(),
                             to_text(lengths_[slowest_].length), to_text(lengths_[slowest_].usual));
    // The host works ahead: the work that delays a step may be in the previous one.
    const HostStepWork works(question_);
    std::int32_t at = steps_[slowest_];
    HostStepWork::Excess excess = works.greatest(at, steps_.size());
    for (const std::int32_t step : {at - 1, at + 1}) {
      const HostStepWork::Excess other = works.greatest(step, steps_.size());
      if (other.more() > excess.more()) excess = other, at = step;
    }
    if (excess.group == kNone || excess.more() * 3 < more_) {
      cause.what += ", without recorded work that explains it";
      return cause;
    }
    cause.what += fmt::format(": {} {} -> {}", host_name(question_.grouping.groups[excess.group]),
                              to_text(excess.usual), to_text(excess.actual));
    Grouping alone{.detail = 0, .groups = {}, .group_of = question_.grouping.group_of};
    std::vector<TaskId> tasks;
    for (std::uint32_t i = 0; i < alone.group_of.size(); ++i) {
      const bool is_there =
          alone.group_of[i] == excess.group && question_.job.graph.task(TaskId{i}).step == at;
      alone.group_of[i] = is_there ? 0 : kNone;
      if (is_there) tasks.push_back(TaskId{i});
    }
    cause.where = position_of(question_.job, tasks, cause);
    const double left =
        static_cast<double>(excess.usual.count()) / static_cast<double>(excess.actual.count());
    cause.effect =
        std::min(more_, effect_of(question_.job, alone,
                                  {{.group = 0, .left = left, .freed_syncs = 0, .lines = {}}}));
    return cause;
  }

 private:
  const CausesQuestion& question_;
  std::vector<UsualLength> lengths_;
  std::vector<std::int32_t> steps_;
  std::size_t slowest_ = 0;
  Nanoseconds more_{0};
};

std::int64_t worse_by(const CheckedFigure& figure) {
  return figure.after.value_or(0) - figure.before.value_or(0);
}

bool is_explained(const CheckedFigure& figure, const std::vector<CauseCandidate>& found) {
  return std::any_of(found.begin(), found.end(), [&](const CauseCandidate& candidate) {
    return candidate.cause.effect.value_or(0ns).count() * 3 >= worse_by(figure);
  });
}

/// Length of the fastest single step. If steps alternate, the step time is a mean over a period,
/// and the slow step may lie in any period.
std::int64_t fastest_step(const JobSummary& job) {
  const auto steps = job.figures.find(kMeanStep);
  if (steps == job.figures.end() || steps->second.empty()) return 0;
  return *std::min_element(steps->second.begin(), steps->second.end());
}

/// Whether all steps became longer by a good part of the change; then the slowest step is only one
/// of them.
bool all_steps_are_longer(const CausesQuestion& question, const CheckedFigure& figure) {
  const std::int64_t more = fastest_step(question.after) - fastest_step(question.before);
  return more * 3 >= worse_by(figure);
}

}  // namespace

void add_slowest_step(const CausesQuestion& question, std::vector<CauseCandidate>& found) {
  const CheckedFigure* figure = worse_figure(question, kStepTime);
  if (figure != nullptr && is_explained(*figure, found)) figure = nullptr;
  for (const char* name : {kSlowestStep, kMeanStep}) {
    if (figure == nullptr) figure = worse_figure(question, name);
  }
  if (figure == nullptr || all_steps_are_longer(question, *figure))
    figure = worse_figure(question, kSlowestExcess);  // It compares steps of one recording.
  if (figure == nullptr) return;
  const SlowestStep slowest(question);
  if (slowest.more() <= 0ns) return;
  if (figure->unit == FigureUnit::time && slowest.more().count() * 3 < worse_by(*figure)) return;
  CheckCause cause = slowest.cause();
  cause.figure = figure->name;
  found.push_back({std::move(cause), figure->standing});
}

}  // namespace foretrace

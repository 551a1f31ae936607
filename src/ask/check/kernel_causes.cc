// Kernels that became slower wherever they run.

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "ask/check/job/changes.h"
#include "ask/check/job/figures.h"

namespace foretrace {
namespace {

constexpr std::size_t kMostSlowerKernels = 5;

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
  cause.what =
      fmt::format("{} slower: {} -> {}", now.name, to_text(before.each), to_text(now.each));
  if (now.count > 1) cause.what += fmt::format(" x {}", now.count);
  cause.kind = "kernel", cause.figure = kSlowerKernels;
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

/// Whether causes at places already cover most tasks of a kernel.
bool is_known(const CausesQuestion& question, const std::set<std::uint32_t>& known,
              std::uint32_t kernel) {
  const std::vector<TaskId> tasks = tasks_of_kernel(question.kernels, kernel);
  const auto covered = std::count_if(tasks.begin(), tasks.end(), [&](TaskId task) {
    return known.contains(question.grouping.group_of[index(task)]);
  });
  return covered * 2 > std::ssize(tasks);
}

}  // namespace

void add_slower_kernels(const CausesQuestion& question, std::vector<CauseCandidate>& found) {
  const CheckedFigure* figure = worse_figure(question, kSlowerKernels);
  if (figure == nullptr) return;
  std::set<std::uint32_t> known;
  for (const CauseCandidate& cause : found) known.insert(cause.groups.begin(), cause.groups.end());
  std::size_t listed = 0;
  for (const SlowerKernel& slower :
       slower_kernels(question.before.kernels, question.kernels.kernels)) {
    if (is_known(question, known, slower.now)) continue;
    if (listed++ == kMostSlowerKernels) return;
    found.push_back({kernel_cause(question, slower), figure->standing});
  }
}

}  // namespace foretrace

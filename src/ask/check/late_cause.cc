#include "ask/check/late_cause.h"

#include <algorithm>
#include <fmt/core.h>

#include "ask/job/rank_facts.h"
#include "ask/predict/straggler.h"
#include "base/numbers/scaling.h"

namespace foretrace {
namespace {

/// How much longer the collectives of a step take than in the baseline.
Nanoseconds growth_of_collectives(const CheckReport& report) {
  const auto found =
      std::find_if(report.figures.begin(), report.figures.end(),
                   [](const CheckedFigure& figure) { return figure.name == "collective_time"; });
  if (found == report.figures.end() || !found->before || !found->after) return 0ns;
  return Nanoseconds(*found->after - *found->before);
}

/// Whether the cause is that the same number of collectives takes longer.
bool is_waiting(const CheckCause& cause) {
  return cause.kind == to_string(TaskKind::collective) && cause.count_before == cause.count_after;
}

}  // namespace

void name_late_rank(const Job& job, std::int32_t checked_rank, CheckReport& report) {
  if (!job.is_joined()) return;
  const std::optional<LateRank> late = late_rank(job);
  if (!late || late->number == checked_rank) return;
  const Nanoseconds longer = std::min(late->others_wait, growth_of_collectives(report));
  if (longer < scaled(report.steps.step_time, kMuchWaiting)) return;
  std::erase_if(report.causes, is_waiting);
  CheckCause cause;
  cause.what = fmt::format("the other ranks wait for rank {}: {}", late->number, late->text);
  cause.kind = to_string(TaskKind::collective);
  cause.effect = longer;
  cause.figure = "step_time";
  report.causes.insert(report.causes.begin(), std::move(cause));
}

}  // namespace foretrace

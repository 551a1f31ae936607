#include <algorithm>

#include "foretrace/error.h"
#include "plan/layouts/priced.h"
#include "plan/strategy.h"

namespace foretrace {
namespace {

/// Throws the last Error if no count of GPUs has a plan.
void find_fastest(const Strategy& strategy, const PlanSpace& space,
                  const StepCalibration& calibration, StrategyOutcome& found) {
  std::string refused;
  for (const std::int64_t gpus : space.gpus) {
    try {
      const StrategyProblem problem = strategy_problem(space, calibration, gpus);
      StrategyPlan plan = strategy.plan(problem);
      if (!found.plan.stages.empty() && plan.us >= found.plan.us) continue;
      found.plan = std::move(plan), found.layers = problem.layers(found.plan.micro_batch);
    } catch (const Error& error) {
      refused = error.what();
    }
  }
  if (found.plan.stages.empty()) throw Error(refused);
}

}  // namespace

StrategyOutcome plan_by(const Strategy& strategy, const PlanSpace& space,
                        const StepCalibration& calibration) {
  StrategyOutcome found;
  find_fastest(strategy, space, calibration, found);
  PlanOutcome& outcome = found.outcome;
  outcome.candidates = outcome.replayed = 1;
  outcome.plain = plain_layouts(space, calibration);
  StepCalibration copy = calibration.clone();
  if (const auto layout = layout_of(found.plan, space.step.layout)) {
    found.is_layout = true;
    outcome.best = {priced_layout(space, *layout, copy)};
  } else {
    const auto first = std::ranges::find_if(outcome.plain, &PlannedLayout::fits);
    if (first != outcome.plain.end()) outcome.best = {*first};
  }
  for (PlannedLayout& layout : outcome.best) layout = with_loss(layout, layout);
  outcome.front = outcome.best;
  for (PlannedLayout& layout : outcome.plain)
    layout = with_loss(layout, outcome.best.empty() ? layout : outcome.best.front());
  for (const LaunchProgram* program : space.programs) {
    if (outcome.best.empty()) break;
    const PlannedLayout& best = outcome.best.front();
    const bool runs = best.fits && program->runs(best.layout);
    outcome.launched.push_back(runs ? std::optional(best) : std::nullopt);
  }
  return found;
}

}  // namespace foretrace

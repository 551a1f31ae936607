#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "ask/validate/cross_step.h"
#include "ask/validate/metamorphic.h"
#include "ask/validate/side_removal.h"
#include "base/statistics.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

/// Share of a step by which the step time may differ after export, because times are rounded.
constexpr double kSameStepTime = 1e-4;
constexpr int kLeastAlikeSteps = 3;

double relative_error(Nanoseconds value, Nanoseconds truth) {
  if (truth == 0ns) return value == 0ns ? 0 : 1;
  return std::abs(static_cast<double>((value - truth).count())) /
         static_cast<double>(truth.count());
}

void add_errors(const CrossStep& cross, Validation& validation) {
  validation.alike_steps = cross.alike_steps;
  validation.same_as_first_error = cross.same_as_first;
  if (cross.errors.empty()) return;
  validation.cross_step_error = median(cross.errors);
  validation.worst_cross_step_error = *std::max_element(cross.errors.begin(), cross.errors.end());
}

Timeline describe(const Inference& inference, Validation& validation) {
  Timeline replayed = simulate(inference.graph, {.memory = false});
  validation.measured = step_times(inference.graph, inference.recorded).step_time;
  if (validation.measured <= 0ns)
    throw TraceError("nothing to simulate: no step of the trace takes any time");
  validation.replay_error =
      relative_error(step_times(inference.graph, replayed).step_time, validation.measured);
  validation.tasks = inference.graph.task_count();
  validation.unexplained = inference.graph.unexplained();
  validation.notes = inference.notes;
  return replayed;
}

}  // namespace

Validation validate(const Inference& inference, bool has_times) {
  Validation validation;
  const Timeline replayed = describe(inference, validation);
  const CrossStep cross = cross_step(inference, inference);
  if (cross.alike_steps >= kLeastAlikeSteps) {
    add_errors(cross, validation);
  } else {
    validation.alike_steps = cross.alike_steps;
    validation.notes.add(Severity::info,
                         "fewer than three alike steps: nothing to compare across steps");
  }
  validation.scale_holds = doubling_holds(inference.graph, replayed);
  validation.neutral_holds = neutral_holds(inference.graph, replayed);
  validation.shrink_holds = shrinking_holds(inference.graph, replayed);
  validation.without = remove_sides(inference);
  validation.export_holds = !has_times;
  if (!has_times) return validation;
  const Nanoseconds again = exported_step_times(inference.graph, replayed).step_time;
  const Nanoseconds before = step_times(inference.graph, replayed).step_time;
  validation.export_holds = relative_error(again, before) <= kSameStepTime;
  if (again != before) {
    validation.notes.add(Severity::info, "the step time differs after export and import",
                         fmt::format("{} became {}", to_text(before), to_text(again)));
  }
  return validation;
}

Validation validate_against(const Inference& structure, const Inference& work) {
  Validation validation;
  describe(structure, validation);
  const CrossStep cross = cross_step(structure, work);
  if (cross.errors.empty()) throw Error("no step of one recording is like a step of the other");
  add_errors(cross, validation);
  return validation;
}

}  // namespace foretrace

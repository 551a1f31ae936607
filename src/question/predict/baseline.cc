#include "question/predict/baseline.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/doubt/trust.h"
#include "analysis/memory/memory_peaks.h"
#include "base/numbers/scaling.h"
#include "job/apply.h"
#include "job/chosen_rank.h"
#include "question/predict/ranks.h"
#include "question/predict/replayed_rank.h"

namespace foretrace {
namespace {

/// Whether the interval depends on what the device does in a step.
bool has_doubt_of_its_own(const AppliedStep& step) {
  return step.times_error.share > 0 || step.transfers.slower > 1;
}

}  // namespace

Baseline baseline_of(const Inference& inference, bool reasons) {
  Timeline replayed = simulate(inference.graph, {.reasons = reasons});
  Prediction prediction = described_baseline(inference, replayed);
  examine_baseline(inference, prediction);
  return {.replayed = std::move(replayed), .prediction = std::move(prediction)};
}

Prediction predict_edited(const Baseline& baseline, const Inference& inference,
                          const Scenario& scenario, Edited& edited, const EditedOptions& options) {
  Prediction prediction = baseline.prediction;
  note_question(scenario, prediction);
  describe_edit(scenario, edited, options.memory, prediction);
  note_edit(edited, prediction);
  if (std::ranges::any_of(prediction.steps, has_doubt_of_its_own))
    prediction.predicted_breakdown = breakdown(edited.graph, edited.timeline);
  const StepVariation* const variation = baseline.variation ? &*baseline.variation : nullptr;
  set_interval(inference, edited.graph, variation, baseline.user_outcomes, prediction);
  widen_for_added_ranks(scenario, prediction);
  if (options.trust)
    judge(inference, edited.graph, baseline.user_outcomes, options.alone, prediction);
  return prediction;
}

Prediction predict_on(const Baseline& baseline, const Inference& inference,
                      const Scenario& scenario, Donors* donors) {
  if (edits(scenario)) {
    Edited edited = edited_by(inference.graph, scenario, {}, donors);
    return predict_edited(baseline, inference, scenario, edited,
                          {.trust = baseline.grades_each_answer});
  }
  Prediction prediction = baseline.prediction;
  note_question(scenario, prediction);
  prediction =
      as_recorded(inference, baseline.replayed, std::move(prediction), scenario, {}).prediction;
  prediction.predicted_open = prediction.baseline_open;
  const StepVariation* const variation = baseline.variation ? &*baseline.variation : nullptr;
  set_interval(inference, inference.graph, variation, baseline.user_outcomes, prediction);
  if (baseline.grades_each_answer)
    judge(inference, inference.graph, baseline.user_outcomes, true, prediction);
  return prediction;
}

Prediction predict_slowest(const std::vector<Baseline>& baselines, const JobRanks& job,
                           const Scenario& scenario, Donors* donors) {
  check_ranks(scenario, job);
  std::optional<EditedJob> edited;
  if (job.world.size() > 1 && edits(scenario)) edited = edited_by(job, scenario, {}, donors);
  Prediction worst;
  std::vector<MemoryPeak> peaks;
  SlowestRank slowest;
  FullestRank fullest;
  for (std::size_t i = 0; i < job.world.size(); ++i) {
    const std::uint32_t recorded = job.world[i].recorded;
    const Baseline& baseline = baselines[recorded];
    const Inference& inference = job.ranks[recorded].inference;
    if (edited ? edited->replay.first_alike[i] != i : !job.world[i].is_recorded) continue;
    Prediction next = edited
                          ? predict_edited(baseline, inference, scenario, edited->ranks[i],
                                           {.trust = baseline.grades_each_answer, .alone = false})
                          : predict_on(baseline, inference, scenario, donors);
    if (fullest.consider(i, need_of(next.predicted_memory))) peaks = next.predicted_memory;
    if (slowest.consider(i, next.predicted.step_time)) worst = std::move(next);
  }
  worst.predicted_memory = std::move(peaks);
  return worst;
}

void compare_with(const RecordedRun& recorded, Prediction& prediction) {
  static_cast<RecordedRun&>(prediction) = recorded;
  prediction.speedup = ratio(prediction.baseline.step_time, prediction.predicted.step_time);
}

}  // namespace foretrace

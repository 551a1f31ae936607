#include "question/sweep/answers.h"

#include <algorithm>

#include "analysis/doubt/trust.h"
#include "base/json_text.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
#include "job/apply.h"
#include "question/predict/baseline.h"
#include "scenario/asserts.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

std::string_view verdict_name(Verdict verdict) {
  if (verdict == Verdict::undecided) return "undecided";
  return verdict == Verdict::holds ? "holds" : "fails";
}

/// Figures of the applied steps, as assertions see them: of steps of one name, the last counts.
std::vector<SweepFigure> last_figures(std::span<const AppliedStep> steps) {
  std::vector<SweepFigure> figures;
  for (const AppliedStep& step : steps) {
    const std::string prefix = std::string(kind_of(step.use)) + ".";
    for (const Figure& figure : step.figures) {
      const auto* number = std::get_if<double>(&figure.value);
      SweepFigure added{prefix + json_key(figure),
                        number ? json_line(Json(*number))
                               : std::to_string(static_cast<std::int64_t>(magnitude(figure)))};
      const auto same = std::find_if(figures.begin(), figures.end(), [&](const SweepFigure& old) {
        return old.name == added.name;
      });
      if (same == figures.end()) {
        figures.push_back(std::move(added));
      } else {
        *same = std::move(added);
      }
    }
  }
  return figures;
}

Scenario with_asserts_only(const Scenario& scenario) {
  Scenario copy;
  copy.asserts = scenario.asserts;
  return copy;
}

}  // namespace

SweepPoint SweepAnswers::point_without_answer(const PendingQuestion& pending) const {
  SweepPoint point;
  point.number = pending.number;
  point.values =
      questions_.plan.combinations()[questions_.plan.combination_of(pending.number)].names;
  for (std::string& name : point.values) name = json_string(name);
  for (const SweepValue& value : pending.values) point.values.push_back(value.text);
  point.values.resize(questions_.header.settings.size(), "null");
  return point;
}

void SweepAnswers::refuse(const Error& error, PendingQuestion& pending) const {
  pending.answer = point_without_answer(pending);
  pending.answer->refused = error.what();
  pending.holds = false;
}

void SweepAnswers::prepare(PendingQuestion& pending) const {
  try {
    if (pending.values.empty()) pending.values = questions_.plan.values(pending.number);
  } catch (const Error& error) {
    refuse(error, pending);
    return;
  }
  const std::size_t combination = questions_.plan.combination_of(pending.number);
  const SharedShape& shape = questions_.shapes[combination];
  if (!shape.any_retimes) return;
  pending.structure = std::to_string(combination);
  for (std::size_t i = 0; i < pending.values.size(); ++i) {
    if (shape.retimes[i] == 0) pending.structure += '\n' + pending.values[i].text;
  }
}

void SweepAnswers::answer_alone(PendingQuestion& pending) const {
  try {
    const Json json = questions_.plan.scenario(pending.number, pending.values);
    const Scenario scenario = parse_scenario(json);
    donors_.read(scenario);
    const SweptJob& job = questions_.job_of(json);
    answer_from(scenario, job, predict_slowest(job.baselines, job.job, scenario, &donors_),
                pending);
  } catch (const Error& error) {
    refuse(error, pending);
  }
}

void SweepAnswers::answer_from(const Scenario& scenario, const SweptJob& job, Prediction prediction,
                               PendingQuestion& pending) const {
  const SweepOptions& options = questions_.options;
  compare_with(job.recorded(), prediction);
  if (!options.grades_each_answer) prediction.trust = trust_of(prediction, {});
  if (!options.intervals) prediction.lower = prediction.upper = prediction.predicted.step_time;
  SweepPoint point = point_without_answer(pending);
  point.step_time = prediction.predicted.step_time;
  point.speedup = prediction.speedup;
  point.trust = prediction.trust.grade();
  point.figures = last_figures(questions_.reported_of(prediction.steps));
  if (options.intervals) point.lower = prediction.lower, point.upper = prediction.upper;
  if (options.memory && !prediction.predicted_memory.empty()) {
    point.peak_allocated = greatest_allocated(prediction.predicted_memory);
    point.peak_reserved = greatest_reserved(prediction.predicted_memory);
    point.fits =
        std::none_of(prediction.predicted_memory.begin(), prediction.predicted_memory.end(),
                     [](const MemoryPeak& peak) { return peak.out_of_memory; });
  }
  point.verdicts = verdicts(scenario, prediction);
  pending.holds = std::ranges::all_of(
      scenario.asserts, [&](const std::string& text) { return holds_at_point(text, prediction); });
  pending.answer = std::move(point);
  if (options.grades_each_answer) pending.trust = std::move(prediction.trust);
}

std::vector<std::string> SweepAnswers::verdicts(const Scenario& scenario,
                                                const Prediction& prediction) const {
  const std::vector<std::string>& asserts = questions_.header.asserts;
  std::vector<std::string> all(asserts.size());
  for (const CheckedAssert& checked : evaluate_asserts(scenario, prediction)) {
    const auto found = std::find(asserts.begin(), asserts.end(), checked.text);
    all[static_cast<std::size_t>(found - asserts.begin())] = verdict_name(checked.verdict);
  }
  return all;
}

void SweepAnswers::build_structure(SharedStructure& shared, const PendingQuestion& pending) const {
  const std::size_t combination = questions_.plan.combination_of(pending.number);
  shared.shape = &questions_.shapes[combination];
  shared.scenario = questions_.plan.scenario(pending.number, pending.values);
  shared.job = &questions_.job_of(shared.scenario);
  try {
    shared.parsed = parse_scenario(shared.scenario);
    if (retiming_tail(shared.parsed) > shared.shape->tail) return;
    check_ranks(shared.parsed, shared.job->job);
    donors_.read(shared.parsed);
    shared.structure = std::make_unique<const SweepStructure>(
        shared.job->job, shared.parsed, shared.shape->tail, donors_, questions_.edited_options());
  } catch (const Error&) {
    return;  // Each question then reports the error by itself.
  }
}

bool SweepAnswers::add_tail(const SharedStructure& shared, const PendingQuestion& pending,
                            std::vector<std::unique_ptr<Transform>>& made,
                            RetimingQuestion& question) const {
  const std::vector<SweepAxis>& axes =
      questions_.plan.combinations()[questions_.plan.combination_of(pending.number)].axes;
  Json scenario = {{"transforms", shared.scenario.at("transforms")}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shared.shape->retimes[i] != 0) axes[i].apply(pending.values[i], scenario);
  }
  for (std::size_t i = shared.shape->tail; i < scenario["transforms"].size(); ++i) {
    const Json& step = scenario["transforms"][i];
    made.push_back(read_transform(step));
    question.transforms.push_back(made.back().get());
    question.settings.push_back(json_line(step));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shared.shape->retimes[i] == 0) continue;
    const SettingPath& setting = *axes[i].setting();
    const std::size_t stage = setting.step() - shared.shape->tail;
    if (!question.transforms[stage]->retimes()->only_retimes(setting.name())) return false;
  }
  return true;
}

void SweepAnswers::answer_together(const SharedStructure& shared,
                                   std::span<PendingQuestion* const> questions,
                                   SweepScratch& scratch) const {
  std::vector<std::unique_ptr<Transform>> made;
  std::vector<RetimingQuestion> retimings;
  bool all_retime = true;
  for (const PendingQuestion* question : questions)
    all_retime = add_tail(shared, *question, made, retimings.emplace_back()) && all_retime;
  if (!all_retime) {
    for (PendingQuestion* question : questions) answer_alone(*question);
    return;
  }
  const auto answers = shared.structure->answers(retimings, scratch);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (answers[i])
      take_shared_answer(shared, *answers[i], *questions[i]);
    else
      answer_alone(*questions[i]);
  }
}

void SweepAnswers::take_shared_answer(const SharedStructure& shared,
                                      const SweepStructure::ReplayedRank& found,
                                      PendingQuestion& pending) const {
  const RankStructure::ReplayedRank& answer = found.of_rank;
  Prediction prediction;
  prediction.predicted = answer.times;
  prediction.steps = answer.steps;
  if (questions_.options.grades_each_answer) {
    const Baseline& baseline = shared.job->baselines[found.rank];
    static_cast<RecordedRun&>(prediction) = baseline.prediction;
    prediction.notes = baseline.prediction.notes;
    prediction.predicted_open = answer.open;
    prediction.trust = trust_of(prediction, baseline.user_outcomes);
  }
  try {
    answer_from(with_asserts_only(shared.parsed), *shared.job, std::move(prediction), pending);
  } catch (const Error& error) {
    refuse(error, pending);
  }
  ++together_count_;
}

void SweepAnswers::answer(const SweepTask& task, std::vector<PendingQuestion>& block,
                          SweepScratch& scratch) const {
  if (!task.structure) {
    return answer_alone(block[task.indices[0]]);
  }
  SharedStructure& shared = *task.structure;
  std::call_once(shared.built, [&] { build_structure(shared, block[task.indices[0]]); });
  for (std::size_t begin = 0; begin < task.indices.size(); begin += SweepScratch::kSets) {
    const std::size_t end = std::min(begin + SweepScratch::kSets, task.indices.size());
    std::vector<PendingQuestion*> questions;
    for (std::size_t i = begin; i < end; ++i) questions.push_back(&block[task.indices[i]]);
    if (shared.structure) {
      answer_together(shared, questions, scratch);
    } else {
      for (PendingQuestion* question : questions) answer_alone(*question);
    }
  }
}

}  // namespace foretrace

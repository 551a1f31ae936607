#include "ask/many/answers.h"

#include <algorithm>

#include "ask/job/apply.h"
#include "ask/predict/baseline.h"
#include "ask/predict/trust.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
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
      SweepFigure one{prefix + json_key(figure),
                      number ? Json(*number).dump()
                             : std::to_string(static_cast<std::int64_t>(magnitude(figure)))};
      const auto same = std::find_if(figures.begin(), figures.end(),
                                     [&](const SweepFigure& old) { return old.name == one.name; });
      if (same == figures.end()) {
        figures.push_back(std::move(one));
      } else {
        *same = std::move(one);
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

SweepPoint SweepAnswers::blank(const Asked& asked) const {
  SweepPoint point;
  point.number = asked.number;
  point.values = questions_.plan.combinations()[questions_.plan.combination_of(asked.number)].names;
  for (std::string& name : point.values)
    name = Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const SweepValue& value : asked.values) point.values.push_back(value.text);
  point.values.resize(questions_.header.settings.size(), "null");
  return point;
}

void SweepAnswers::refuse(const Error& error, Asked& asked) const {
  asked.answer = blank(asked);
  asked.answer->refused = error.what();
  asked.holds = false;
}

void SweepAnswers::prepare(Asked& asked) const {
  try {
    if (asked.values.empty()) asked.values = questions_.plan.values(asked.number);
  } catch (const Error& error) {
    refuse(error, asked);
    return;
  }
  const std::size_t combination = questions_.plan.combination_of(asked.number);
  const SharedShape& shape = questions_.shapes[combination];
  if (!shape.any) return;
  asked.structure = std::to_string(combination);
  for (std::size_t i = 0; i < asked.values.size(); ++i) {
    if (shape.retimes[i] == 0) asked.structure += '\n' + asked.values[i].text;
  }
}

void SweepAnswers::answer_alone(Asked& asked) const {
  try {
    const Json json = questions_.plan.scenario(asked.number, asked.values);
    const Scenario scenario = parse_scenario(json);
    donors_.read(scenario);
    const SweptJob& job = questions_.job_of(json);
    answer_by(scenario, job, predict_slowest(job.baselines, job.job, scenario, &donors_), asked);
  } catch (const Error& error) {
    refuse(error, asked);
  }
}

void SweepAnswers::answer_by(const Scenario& scenario, const SweptJob& job, Prediction prediction,
                             Asked& asked) const {
  const SweepOptions& options = questions_.options;
  compare_with(job.recorded(), prediction);
  if (!options.grades_each_answer) prediction.trust = trust_of(prediction, {});
  if (!options.intervals) prediction.lower = prediction.upper = prediction.predicted.step_time;
  SweepPoint point = blank(asked);
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
  asked.holds = std::ranges::all_of(
      scenario.asserts, [&](const std::string& text) { return holds_at_point(text, prediction); });
  asked.answer = std::move(point);
  if (options.grades_each_answer) asked.trust = std::move(prediction.trust);
}

std::vector<std::string> SweepAnswers::verdicts(const Scenario& scenario,
                                                const Prediction& prediction) const {
  const std::vector<std::string>& asserts = questions_.header.asserts;
  std::vector<std::string> all(asserts.size());
  for (const CheckedAssert& one : evaluate_asserts(scenario, prediction)) {
    const auto place = std::find(asserts.begin(), asserts.end(), one.text);
    all[static_cast<std::size_t>(place - asserts.begin())] = verdict_name(one.verdict);
  }
  return all;
}

void SweepAnswers::make(SharedStructure& shared, const Asked& asked) const {
  const std::size_t combination = questions_.plan.combination_of(asked.number);
  shared.shape = &questions_.shapes[combination];
  shared.scenario = questions_.plan.scenario(asked.number, asked.values);
  shared.job = &questions_.job_of(shared.scenario);
  try {
    shared.parsed = parse_scenario(shared.scenario);
    if (retiming_tail(shared.parsed) > shared.shape->tail) return;
    check_ranks(shared.parsed, shared.job->job);
    donors_.read(shared.parsed);
    shared.structure = std::make_unique<const SweepStructure>(
        shared.job->job, shared.parsed, shared.shape->tail, donors_, questions_.wanted());
  } catch (const Error&) {
    return;  // Each question then reports the error by itself.
  }
}

bool SweepAnswers::add_tail(const SharedStructure& shared, const Asked& asked,
                            std::vector<std::unique_ptr<Transform>>& made,
                            SweepQuestion& question) const {
  const std::vector<SweepAxis>& axes =
      questions_.plan.combinations()[questions_.plan.combination_of(asked.number)].axes;
  Json scenario = {{"transforms", shared.scenario.at("transforms")}};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shared.shape->retimes[i] != 0) axes[i].apply(asked.values[i], scenario);
  }
  for (std::size_t i = shared.shape->tail; i < scenario["transforms"].size(); ++i) {
    const Json& step = scenario["transforms"][i];
    made.push_back(read_transform(step));
    question.transforms.push_back(made.back().get());
    question.settings.push_back(step.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (shared.shape->retimes[i] == 0) continue;
    const SettingPath& setting = *axes[i].setting();
    const std::size_t stage = setting.step() - shared.shape->tail;
    if (!question.transforms[stage]->retimes()->only_retimes(setting.name())) return false;
  }
  return true;
}

void SweepAnswers::together(const SharedStructure& shared, std::span<Asked* const> questions,
                            SweepScratch& scratch) const {
  std::vector<std::unique_ptr<Transform>> made;
  std::vector<SweepQuestion> asked;
  bool all_retime = true;
  for (const Asked* one : questions)
    all_retime = add_tail(shared, *one, made, asked.emplace_back()) && all_retime;
  if (!all_retime) {
    for (Asked* one : questions) answer_alone(*one);
    return;
  }
  const auto answers = shared.structure->answers(asked, scratch);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    if (answers[i])
      take(shared, *answers[i], *questions[i]);
    else
      answer_alone(*questions[i]);
  }
}

void SweepAnswers::take(const SharedStructure& shared, const SweepStructure::Answer& found,
                        Asked& asked) const {
  const RankStructure::Answer& answer = found.of_rank;
  Prediction prediction;
  prediction.predicted.step_time = answer.step_time;
  prediction.steps = answer.steps;
  if (questions_.options.grades_each_answer) {
    const Baseline& baseline = shared.job->baselines[found.rank];
    static_cast<RecordedRun&>(prediction) = baseline.prediction;
    prediction.notes = baseline.prediction.notes;
    prediction.predicted_open = answer.open;
    prediction.trust = trust_of(prediction, baseline.user_outcomes);
  }
  try {
    answer_by(with_asserts_only(shared.parsed), *shared.job, std::move(prediction), asked);
  } catch (const Error& error) {
    refuse(error, asked);
  }
  ++together_count_;
}

void SweepAnswers::answer(const SweepTask& task, std::vector<Asked>& block,
                          SweepScratch& scratch) const {
  if (!task.structure) {
    return answer_alone(block[task.places[0]]);
  }
  SharedStructure& shared = *task.structure;
  std::call_once(shared.made, [&] { make(shared, block[task.places[0]]); });
  for (std::size_t begin = 0; begin < task.places.size(); begin += SweepScratch::kSets) {
    const std::size_t end = std::min(begin + SweepScratch::kSets, task.places.size());
    std::vector<Asked*> questions;
    for (std::size_t i = begin; i < end; ++i) questions.push_back(&block[task.places[i]]);
    if (shared.structure) {
      together(shared, questions, scratch);
    } else {
      for (Asked* one : questions) answer_alone(*one);
    }
  }
}

}  // namespace foretrace

// One setting, many values: the curve of time against memory, and the search along it.
//
// With an assertion and a range, the interval between the two neighbours where it begins or ceases
// to hold is halved until it is a thousandth of the range, or until the two are neighbouring whole
// numbers.

#include "question/sweep/vary.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "question/predict/rates.h"
#include "question/sweep/run.h"
#include "scenario/asserts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr int kMaxHalvings = 10;

/// Index of the first point that differs from the one before it in satisfying the condition;
/// `count` if there is none.
std::size_t first_change(std::size_t count, const auto& satisfies) {
  std::size_t i = 1;
  while (i < count && satisfies(i - 1) == satisfies(i)) ++i;
  return i;
}

/// Chooses all listed values, and if it searches, then values between the two where the assertion
/// begins or ceases to hold.
class Bisection {
 public:
  Bisection(const SweepCombination& combination, bool searches)
      : axis_(combination.axes.front()),
        scenario_(combination.scenario),
        searches_(searches && axis_.values().is_range) {}

  std::vector<PendingQuestion> next(std::size_t most) {
    std::vector<PendingQuestion> questions;
    for (; listed_ < axis_.count() && questions.size() < most; ++listed_)
      questions.push_back({.number = listed_, .values = {axis_.at(listed_)}});
    if (!questions.empty() || !searches_ || halvings_++ == kMaxHalvings) return questions;
    boundary_ = first_change(tried_.size(), [&](std::size_t i) { return tried_[i].answer.holds; });
    if (boundary_ >= tried_.size()) return {};
    middle_ = midpoint(axis_.values(), tried_[boundary_ - 1].text, tried_[boundary_].text);
    if (middle_.empty()) return {};
    questions.push_back(
        {.number = tried_.size(), .values = {axis_.value_of_text(middle_, scenario_)}});
    return questions;
  }

  void take(PendingQuestion&& pending) {
    const bool is_listed = pending.number < axis_.count();
    const std::size_t position = is_listed ? tried_.size() : boundary_;
    const std::string& text =
        is_listed ? axis_.values().listed[static_cast<std::size_t>(pending.number)] : middle_;
    tried_.insert(tried_.begin() + static_cast<std::ptrdiff_t>(position),
                  {text, std::move(pending)});
  }

  /// Moves the points to the curve, in order of the values. The trust of the curve is that of the
  /// first of the least reliable points, apart from memory, which each point has columns for.
  void finish(Curve& curve) {
    for (Tried& tried : tried_) {
      SweepPoint& point = curve.points.emplace_back(std::move(*tried.answer.answer));
      point.number = curve.points.size() - 1;
      Trust trust = std::move(tried.answer.trust);
      std::erase_if(trust.reasons, [](const auto& reason) { return reason.name == "memory"; });
      const bool is_first = curve.trust.reasons.empty();
      if (is_first || (!trust.reasons.empty() && trust.grade() > curve.trust.grade()))
        curve.trust = std::move(trust);
    }
    curve.header.points = curve.points.size();
  }

 private:
  struct Tried {
    std::string text;  ///< The value as written.
    PendingQuestion answer;
  };

  const SweepAxis& axis_;
  const Json& scenario_;
  bool searches_;
  std::vector<Tried> tried_;  ///< In order of the values.
  std::size_t listed_ = 0, boundary_ = 0;
  std::string middle_;
  int halvings_ = 0;
};

/// The plan of a sweep with one axis, the setting that varies.
SweepPlan plan_of(const Scenario& scenario, const Vary& question) {
  Json json = write_scenario(scenario);
  json.erase("assert");
  within("--vary", [&] { SettingPath(question.setting, json); });
  SweepAxis axis = within("--vary " + question.setting, [&] {
    return SweepAxis(question.setting, question.values, false, json, "");
  });
  if (!question.until.empty()) {
    json["assert"] = Json::array();
    json["assert"].push_back(within("--until", [&] { return write_assert(question.until); }));
  }
  return {std::move(json), std::move(axis)};
}

SweepOptions options_of(const Vary& question, const std::string& ledger_path,
                        const ImportOptions& reading) {
  // Only the requested ends of an interval need to be computed.
  return {.intervals = question.until.starts_with("lower") || question.until.starts_with("upper"),
          .reading = reading,
          .ledger_path = ledger_path,
          .grades_each_answer = true};
}

void throw_if_all_refused(const Curve& curve) {
  const bool all_refused = std::ranges::none_of(
      curve.points, [](const SweepPoint& point) { return point.refused.empty(); });
  if (all_refused) throw Error(curve.points.front().refused);
}

/// Marks the points that trade time against memory. Settings of the allocator have no such front,
/// because they change neither time nor allocated memory.
void mark_front(bool has_front, Curve& curve) {
  curve.header.front = true;
  for (SweepPoint& point : curve.points) point.on_front = false;
  if (!has_front) return;
  for (const std::size_t i : summarize(curve).front) curve.points[i].on_front = true;
}

/// Number of samples in a step, per recorded sample.
double samples_of(const SweepPlan& plan, const SweepValue& value) {
  double factor = 1;
  for (const auto& transform : parse_scenario(plan.scenario(0, {value})).transforms)
    factor *= transform->job_change().samples;
  return factor;
}

/// Adds the number of samples to the answer, rounded to a whole number, or a note on how to see it.
void count_samples(const SweepPlan& plan, bool is_most, Curve& curve) {
  const SweepCombination& combination = plan.combinations().front();
  const SweepAxis& axis = combination.axes.front();
  if (samples_of(plan, axis.at(0)) == samples_of(plan, axis.at(axis.count() - 1))) return;
  const double recorded = combination.scenario.value("samples_per_step", 0.0);
  if (recorded > 0) {
    // 4.125 times 8 samples are 33, however the product is rounded.
    constexpr double kSlack = 1e-6;
    const std::string value = plain_value(curve.points[*curve.answer].values.front());
    const double exact =
        samples_of(plan, axis.value_of_text(value, combination.scenario)) * recorded;
    const double rounded = is_most ? std::floor(exact + kSlack) : std::ceil(exact - kSlack);
    curve.answer_text +=
        fmt::format(", {} {} a step", to_text(rounded), rounded == 1 ? "sample" : "samples");
  } else if (axis.setting()->name() == "factor") {
    curve.notes.add(Severity::info,
                    "give --samples-per-step, or from and to instead of factor, to see how many "
                    "samples that is");
  }
}

/// Says what the whole training takes and costs at each point, as figures before those of the step,
/// and which point is the cheapest of those that fit. A device without a price gets a note.
void add_runs(const JobRanks& job, const SweepPlan& plan, const TrainingRuns& runs, Curve& curve) {
  const SweepAxis& axis = plan.combinations().front().axes.front();
  const SweepPoint* cheapest = nullptr;
  double least = 0;
  for (SweepPoint& point : curve.points) {
    if (!point.refused.empty()) continue;
    const std::string name = plain_value(point.values.front());
    try {
      const Scenario scenario = parse_scenario(
          plan.scenario(0, {axis.value_of_text(name, plan.combinations().front().scenario)}));
      const TrainingRun run = runs.of(repeated_step(job, scenario, point.step_time));
      std::vector<SweepFigure> figures = {
          {"training.time_ns", std::to_string(std::llround(run.seconds.point * 1e9))}};
      if (run.price)
        figures.push_back({"training.price_" + run.currency, Json(run.price->point).dump()});
      if (run.energy) figures.push_back({"training.energy_Wh", Json(run.energy->point).dump()});
      point.figures.insert(point.figures.begin(), figures.begin(), figures.end());
      if (!run.price || !point.fits.value_or(true)) continue;
      if (cheapest == nullptr || run.price->point < least)
        cheapest = &point, least = run.price->point;
    } catch (const Error& error) {
      curve.notes.add(Severity::warning, error.what(), name);
    }
  }
  if (cheapest != nullptr)
    curve.notes.add(Severity::info,
                    "the cheapest that fits is " + plain_value(cheapest->values.front()));
}

void find_answer(const SweepPlan& plan, Curve& curve) {
  // An unreliable time decides nothing.
  if (is_step_time_assert(curve.until()) && curve.trust.grade() == Grade::poor) {
    curve.answer_text = "is undecided, as trust is poor";
    return;
  }
  const std::vector<SweepPoint>& points = curve.points;
  const std::size_t boundary =
      first_change(points.size(), [&](std::size_t i) { return curve.satisfies(points[i]); });
  const bool first_holds = curve.satisfies(points.front());
  const auto text_of = [&](std::size_t i) { return plain_value(points[i].values.front()); };
  if (boundary >= points.size()) {
    curve.answer_text = first_holds ? "holds for every value tried" : "holds for no value tried";
    if (first_holds) curve.answer = points.size() - 1;
    return;
  }
  curve.answer = first_holds ? boundary - 1 : boundary;
  curve.answer_text = first_holds ? fmt::format("holds up to {}", text_of(*curve.answer))
                                  : fmt::format("holds from {} on", text_of(*curve.answer));
  if (plan.combinations().front().axes.front().values().is_range)
    count_samples(plan, first_holds, curve);
  for (std::size_t i = boundary + 1; i < points.size(); ++i) {
    if (curve.satisfies(points[i]) == curve.satisfies(points[boundary])) continue;
    curve.notes.add(
        Severity::warning,
        "the assertion begins or ceases to hold more than once along the values; the answer is the "
        "first change",
        text_of(i));
    return;
  }
}

}  // namespace

Curve vary(const JobRanks& job, const Scenario& scenario, const Vary& question,
           const std::string& ledger_path, const ImportOptions& reading,
           const TrainingQuestion& training) {
  SweepQuestions questions(plan_of(scenario, question), to_text(scenario),
                           options_of(question, ledger_path, reading));
  const SweepPlan& plan = questions.plan;
  std::optional<TrainingRuns> runs;
  if (training.is_asked()) runs.emplace(training);
  const SettingPath& setting = *plan.combinations().front().axes.front().setting();
  questions.reported = setting.is_of_memory() ? 0 : scenario.transforms.size() - setting.step();
  questions.ask_about(job);
  Curve curve;
  curve.header = questions.header;
  if (!question.until.empty()) curve.header.asserts = {question.until};  // As written by the user.
  curve.uses = scenario.uses;
  Bisection bisection(plan.combinations().front(), !question.until.empty());
  run_questions(
      questions, SweepAnswers(questions), [&](std::size_t most) { return bisection.next(most); },
      {.take = [&](PendingQuestion&& pending) { bisection.take(std::move(pending)); }}, false);
  bisection.finish(curve);
  throw_if_all_refused(curve);
  mark_front(!setting.is_of_memory(), curve);
  if (runs) add_runs(job, plan, *runs, curve);
  if (!curve.until().empty()) find_answer(plan, curve);
  return curve;
}

Curve vary(const Job& job, const Scenario& scenario, const Vary& question,
           const PredictOptions& options) {
  Curve curve = vary(job.ranks(), scenario, question, options.ledger_path, job.options().reading,
                     options.training);
  curve.header.inputs = job.inputs();
  return curve;
}

}  // namespace foretrace

// One setting, many values: the curve of time against memory, and the search along it.
//
// Every point is a prediction of its own from the same inferred graph. With an assertion and a
// range, the interval between the two neighbours where it begins or ceases to hold is narrowed down
// until a thousandth of the range, or two neighbouring whole numbers, are left.

#include "ask/many/vary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ask/interval/ledger.h"
#include "ask/job/apply.h"
#include "ask/job/job.h"
#include "ask/predict/baseline.h"
#include "base/threads.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"
#include "scenario/asserts.h"
#include "scenario/setting.h"
#include "scenario/values.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr int kMostHalvings = 10;

class Varied {
 public:
  Varied(const Job& job, const Scenario& scenario, const Vary& question,
         const PredictOptions& options)
      : job_(job),
        json_(write_scenario(scenario)),
        setting_(within("--vary", [&] { return SettingPath(question.setting, json_); })),
        until_(question.until),
        donors_(options.reading) {
    within("--vary " + question.setting, [&] {
      const Json now = setting_.value(json_);
      values_ = read_values(question.values, !now.is_number_float() && !now.is_string());
      for (const std::string& value : values_.listed) setting_.with_text(json_, value);
    });
    if (!until_.empty()) within("--until", [&] { check_assert(until_); });
    const std::vector<KnownOutcome> own = own_outcomes(options.ledger_path);
    for (const Rank& rank : job_.ranks) {
      baselines_.push_back(baseline_of(rank.inference));
      baselines_.back().own = own;
      // Only the requested ends of an interval need to be computed.
      if (until_.starts_with("lower") || until_.starts_with("upper"))
        baselines_.back().variation = variation_of(rank.inference);
    }
    for (const Baseline& baseline : baselines_) note_baseline(baseline.prediction);
  }

  Curve run() {
    add(values_.listed);
    if (!until_.empty() && values_.is_range) narrow();
    refuse_nothing();
    // Neither the limit nor the other settings of the allocator change time or allocated memory.
    if (!setting_.is_of_memory()) mark_front();
    if (!until_.empty()) find_answer();
    judge();
    return std::move(curve_);
  }

 private:
  using Points = std::vector<CurvePoint>;

  /// Computes points on all cores, and adds them to the existing ones.
  void add(const std::vector<std::string>& values) {
    const std::size_t first = curve_.points.size();
    curve_.points.resize(first + values.size());
    std::vector<Scenario> scenarios;
    for (const std::string& value : values) {
      scenarios.push_back(parse_scenario(setting_.with_text(json_, value)));
      donors_.read(scenarios.back());
    }
    on_all_cores(values.size(),
                 [&](std::size_t i) { curve_.points[first + i] = point(values[i], scenarios[i]); });
  }

  /// Never throws: the reason why a value has no answer is part of the answer.
  CurvePoint point(const std::string& value, const Scenario& scenario) {
    CurvePoint point;
    point.value = value;
    try {
      const Prediction prediction = predict_slowest(baselines_, job_, scenario, &donors_);
      point.step_time = prediction.predicted.step_time;
      point.trust = prediction.trust;
      point.peak_allocated = greatest_allocated(prediction.predicted_memory);
      point.peak_reserved = greatest_reserved(prediction.predicted_memory);
      for (const MemoryPeak& peak : prediction.predicted_memory)
        point.fits = point.fits && !peak.out_of_memory;
      point.satisfies = until_.empty() || holds_at_point(until_, prediction);
      const std::size_t machine = scenario.machine.empty() ? 0 : 1;
      if (!setting_.is_of_memory() && setting_.step() + machine < prediction.steps.size())
        point.figures = prediction.steps[setting_.step() + machine].figures;
    } catch (const Error& error) {
      point.refused = error.what();
      point.satisfies = false;
    }
    return point;
  }

  void note_baseline(const Prediction& prediction) {
    curve_.baseline_step_time = std::max(curve_.baseline_step_time, prediction.baseline.step_time);
    curve_.has_steps = curve_.has_steps && prediction.has_steps;
    const auto grow = [](std::optional<Bytes>& level, std::optional<Bytes> other) {
      if (other) level = std::max(level.value_or(*other), *other);
    };
    grow(curve_.baseline_allocated, greatest_allocated(prediction.baseline_memory));
    grow(curve_.baseline_reserved, greatest_reserved(prediction.baseline_memory));
  }

  /// The first two neighbours of which only one satisfies.
  std::size_t change() const {
    const Points& points = curve_.points;
    std::size_t i = 1;
    while (i < points.size() && points[i - 1].satisfies == points[i].satisfies) ++i;
    return i;
  }

  void narrow() {
    for (int halvings = 0; halvings < kMostHalvings; ++halvings) {
      const std::size_t behind = change();
      if (behind >= curve_.points.size()) return;
      const std::string middle =
          between(values_, curve_.points[behind - 1].value, curve_.points[behind].value);
      if (middle.empty()) return;
      add({middle});
      const auto place = curve_.points.begin() + static_cast<std::ptrdiff_t>(behind);
      std::rotate(place, curve_.points.end() - 1, curve_.points.end());
    }
  }

  void refuse_nothing() const {
    for (const CurvePoint& point : curve_.points) {
      if (point.refused.empty()) return;
    }
    throw Error(curve_.points.front().refused);
  }

  /// Among points that fit. Without recorded memory there is no front.
  void mark_front() {
    const auto counts = [](const CurvePoint& point) {
      return point.refused.empty() && point.fits && point.peak_allocated;
    };
    for (CurvePoint& one : curve_.points) {
      if (!counts(one)) continue;
      one.on_front =
          std::none_of(curve_.points.begin(), curve_.points.end(), [&](const CurvePoint& other) {
            if (!counts(other)) return false;
            const bool no_worse =
                other.step_time <= one.step_time && *other.peak_allocated <= *one.peak_allocated;
            const bool better =
                other.step_time < one.step_time || *other.peak_allocated < *one.peak_allocated;
            return no_worse && better;
          });
    }
  }

  /// A time that is not to be relied on decides nothing.
  void judge() {
    for (const CurvePoint& point : curve_.points) {
      if (!point.refused.empty()) continue;
      const bool first = curve_.trust.reasons.empty();
      if (first || point.trust.grade() > curve_.trust.grade()) curve_.trust = point.trust;
    }
    if (until_.empty() || !is_assert_of_time(until_) || curve_.trust.grade() != Grade::poor) return;
    curve_.answer.reset();
    curve_.answer_text = "is undecided, as trust is poor";
  }

  void find_answer() {
    const Points& points = curve_.points;
    const std::size_t behind = change();
    const bool first_holds = points.front().satisfies;
    if (behind >= points.size()) {
      curve_.answer_text = first_holds ? "holds for every value tried" : "holds for no value tried";
      if (first_holds) curve_.answer = points.size() - 1;
      return;
    }
    curve_.answer = first_holds ? behind - 1 : behind;
    curve_.answer_text = first_holds ? "holds up to " + points[*curve_.answer].value
                                     : "holds from " + points[*curve_.answer].value + " on";
    if (values_.is_range) count_samples(points[*curve_.answer].value, first_holds);
    for (std::size_t i = behind + 1; i < points.size(); ++i) {
      if (points[i].satisfies == points[behind].satisfies) continue;
      curve_.notes.add(Severity::warning,
                       "whether it holds changes more than once along the values; the answer is "
                       "the first change",
                       points[i].value);
      return;
    }
  }

  /// In a step, for each recorded one, with this value.
  double samples(const std::string& value) const {
    double all = 1;
    for (const auto& transform : parse_scenario(setting_.with_text(json_, value)).transforms)
      all *= transform->job_change().samples;
    return all;
  }

  /// A batch has whole samples, whatever the factor.
  void count_samples(const std::string& value, bool is_most) {
    if (samples(values_.listed.front()) == samples(values_.listed.back())) return;
    const double recorded = json_.value("samples_per_step", 0.0);
    if (recorded > 0) {
      constexpr double kSlack = 1e-6;  // 4.125 of 8 are 33, however they are rounded.
      const double exact = samples(value) * recorded;
      const double whole = is_most ? std::floor(exact + kSlack) : std::ceil(exact - kSlack);
      curve_.answer_text += ", " + to_text(whole) + " samples a step";
    } else if (setting_.name() == "factor") {
      curve_.notes.add(Severity::info,
                       "give --samples-per-step, or from and to instead of factor, to see how many "
                       "samples that is");
    }
  }

  const Job& job_;
  Json json_;
  SettingPath setting_;
  std::string until_;
  Donors donors_;
  Values values_;
  std::vector<Baseline> baselines_;
  Curve curve_;
};

}  // namespace

Curve vary(const Job& job, const Scenario& scenario, const Vary& question,
           const PredictOptions& options) {
  Curve curve = Varied(job, scenario, question, options).run();
  curve.setting = question.setting;
  curve.uses = scenario.uses;
  curve.until = question.until;
  return curve;
}

Curve vary(const std::vector<Inference>& ranks, const Scenario& scenario, const Vary& question,
           const PredictOptions& options) {
  std::vector<Inference> copies;
  for (const Inference& rank : ranks) copies.push_back(clone(rank));
  return vary(job_of(std::move(copies)), scenario, question, options);
}

Curve vary(const std::string& trace_path, const Scenario& scenario, const Vary& question,
           const PredictOptions& options) {
  const Job job = read_job(trace_path, {.reading = options.reading, .joins_ranks = true});
  Curve curve = vary(job, scenario, question, options);
  curve.has_times = !job.has_snapshots();
  curve.inputs = job.inputs();
  return curve;
}

}  // namespace foretrace

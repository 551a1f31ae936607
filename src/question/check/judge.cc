#include "question/check/judge.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>
#include <string_view>
#include <utility>

#include "analysis/doubt/trust.h"
#include "question/check/job/figures.h"

namespace foretrace {
namespace {

/// Nobody blesses more.
constexpr std::size_t kMaxRecordings = 100;

const Limit* limit_of(const std::string& name, const std::map<std::string, Limit>& requested,
                      const std::map<std::string, Limit>& stored) {
  if (const auto found = requested.find(name); found != requested.end()) return &found->second;
  const auto found = stored.find(name);
  return found == stored.end() ? nullptr : &found->second;
}

/// The steps of each recording that the baseline represents.
std::vector<const std::vector<std::int64_t>*> recordings_of(const CheckBaseline& baseline,
                                                            const std::string& name) {
  std::vector<const std::vector<std::int64_t>*> all;
  for (const FigureSteps& run : baseline.summary.runs) {
    if (const auto found = run.find(name); found != run.end() && !found->second.empty())
      all.push_back(&found->second);
  }
  if (all.empty()) all.push_back(&baseline.summary.figures.at(name));
  return all;
}

/// How far one more recording is from the mean of `count` known ones, on either side, only once in
/// twenty times.
double reach_of(std::size_t count, double deviation) {
  return student_95(count - 1) * deviation * std::sqrt(1 + 1 / static_cast<double>(count));
}

/// The range that one more recording leaves on either side only once in twenty times.
std::pair<double, double> range_of(const std::vector<std::int64_t>& known) {
  const auto [mean, deviation] = sample_of(known);
  const double reach = reach_of(known.size(), deviation);
  return {mean - reach, mean + reach};
}

/// The recording with the median step time; nullptr if there is only one.
const FigureSteps* typical_run(const CheckBaseline& baseline) {
  const FigureEntry& entry = figure_entry("step_time");
  std::vector<std::pair<std::int64_t, const FigureSteps*>> runs;
  for (const FigureSteps& run : baseline.summary.runs) {
    if (const auto found = run.find(std::string(entry.name)); found != run.end())
      runs.emplace_back(figure_value(entry, found->second), &run);
  }
  if (runs.size() < 2) return nullptr;
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return runs[runs.size() / 2].second;
}

class Judge {
 public:
  Judge(const CheckBaseline& baseline, const JobSummary& now, const CheckOptions& options)
      : baseline_(baseline), now_(now), options_(options), typical_(typical_run(baseline)) {}

  std::vector<CheckedFigure> figures() const {
    std::vector<CheckedFigure> all;
    for (const FigureEntry& entry : figure_entries()) {
      const std::string name(entry.name);
      if (baseline_.summary.figures.contains(name) || now_.figures.contains(name))
        all.push_back(judged(entry, name));
    }
    excuse_waits(all);
    return all;
  }

 private:
  /// If a rank is alone with its collectives for longer, but its steps take no longer, then it is
  /// done earlier with the rest, and waits for ranks that are not: that is no change for the worse.
  static void excuse_waits(std::vector<CheckedFigure>& figures) {
    const auto standing_of = [&](std::string_view name) {
      const auto found = std::ranges::find(figures, name, &CheckedFigure::name);
      return found == figures.end() ? CheckOutcome::left_out : found->standing;
    };
    if (standing_of(kStepTime) != CheckOutcome::passed ||
        standing_of(kExposedCommunication) != CheckOutcome::warned)
      return;
    for (CheckedFigure& figure : figures) {
      if (figure.name != kExposedCommunication && figure.name != kCollectiveTime) continue;
      if (figure.standing != CheckOutcome::warned) continue;
      figure.standing = CheckOutcome::passed;
      figure.why = "steps take no longer, so this rank waits for others after shorter work";
    }
  }

  CheckedFigure judged(const FigureEntry& entry, const std::string& name) const {
    CheckedFigure figure;
    figure.name = name, figure.says = entry.says, figure.unit = entry.unit;
    figure.less_is_worse = entry.less_is_worse;
    const auto then = baseline_.summary.figures.find(name);
    const auto now = now_.figures.find(name);
    if (then != baseline_.summary.figures.end()) figure.before = figure_value(entry, then->second);
    if (now != now_.figures.end()) figure.after = figure_value(entry, now->second);
    const Limit* fail = limit_of(name, options_.fail, baseline_.fail);
    const Limit* warn = limit_of(name, options_.warn, baseline_.warn);
    if (fail != nullptr) figure.limit = fail->text;
    if (warn != nullptr) figure.warn_limit = warn->text;
    figure.standing = CheckOutcome::left_out;
    if (options_.structure_only && entry.is_timed())
      return figure.why = "times are not compared", figure;
    if (!figure.before || !figure.after) {
      figure.why = figure.before ? "not in the trace" : "not in the baseline";
      // A guarded metric must not disappear from the trace unnoticed.
      if (fail != nullptr && !fail->is_off)
        figure.standing = options_.undecided.value_or(CheckOutcome::undecided);
      return figure;
    }
    judge_against_all(entry, {.now = now->second, .fail = fail, .warn = warn}, figure);
    if (figure.standing == CheckOutcome::undecided && options_.undecided)
      figure.standing = *options_.undecided;
    return figure;
  }

  struct JudgedValues {
    const std::vector<std::int64_t>& now;
    const Limit* fail;
    const Limit* warn;
  };

  /// Judges against each recording of the baseline. The one with the least regression decides,
  /// unless the recordings themselves differ as much.
  void judge_against_all(const FigureEntry& entry, const JudgedValues& judged_values,
                         CheckedFigure& figure) const {
    std::vector<std::int64_t> known;
    std::optional<CheckedFigure> best;
    for (const std::vector<std::int64_t>* then : recordings_of(baseline_, figure.name)) {
      CheckedFigure against = figure;
      against.before = figure_value(entry, *then);
      known.push_back(*against.before);
      judge_against(entry, *then, judged_values, against);
      if (!best || against.standing < best->standing) best = std::move(against);
    }
    figure = std::move(*best);
    show_typical(entry, judged_values, figure);
    if (!entry.is_timed() || known.size() < 2 || figure.standing < CheckOutcome::warned) return;
    const auto [least, most] = range_of(known);
    const auto after = static_cast<double>(*figure.after);
    if (figure.less_is_worse ? after < least : after > most) return;
    figure.standing =
        figure.standing == CheckOutcome::failed ? CheckOutcome::undecided : CheckOutcome::passed;
    figure.why = fmt::format(
        "the {} recordings of the baseline differ so much that a further one may differ as much",
        known.size());
  }

  /// Shows the figure of the typical recording, so that all rows of a table are of one.
  void show_typical(const FigureEntry& entry, const JudgedValues& judged_values,
                    CheckedFigure& figure) const {
    if (typical_ == nullptr) return;
    const auto found = typical_->find(figure.name);
    if (found == typical_->end() || found->second.empty()) return;
    const std::int64_t shown = figure_value(entry, found->second);
    if (shown == *figure.before) return;
    const std::int64_t decided = std::exchange(*figure.before, shown);
    figure.lower += decided - shown, figure.upper += decided - shown;
    const std::int64_t change = *figure.after - shown;
    const StepChange seen{.change = change, .lower = change, .upper = change};
    const auto is_beyond = [&](const Limit* limit) {
      return limit != nullptr && !limit->is_off &&
             judge(seen, figure.less_is_worse, shown, *limit) == CheckOutcome::failed;
    };
    if (figure.standing == CheckOutcome::passed && figure.why.empty() &&
        (is_beyond(judged_values.fail) || is_beyond(judged_values.warn)))
      figure.why = fmt::format("another recording of the baseline has {}",
                               figure_text(figure.unit, decided));
  }

  static void judge_against(const FigureEntry& entry, const std::vector<std::int64_t>& then,
                            const JudgedValues& judged_values, CheckedFigure& figure) {
    const StepChange change = step_change(entry, then, judged_values.now);
    figure.lower = change.lower, figure.upper = change.upper;
    const auto judged = [&](const Limit* limit) {
      return limit == nullptr || limit->is_off
                 ? CheckOutcome::passed
                 : judge(change, figure.less_is_worse, *figure.before, *limit);
    };
    figure.standing = judged(judged_values.fail);
    if (figure.standing == CheckOutcome::undecided)
      figure.why = change.is_assumed ? "a single value, with an assumed variation of 5 %"
                                     : "steps vary too much to decide";
    if (figure.standing != CheckOutcome::passed) return;
    const CheckOutcome warning = judged(judged_values.warn);
    if (warning == CheckOutcome::failed) figure.standing = CheckOutcome::warned;
    if (warning != CheckOutcome::undecided) return;
    // A warning fails no check, so the likelier side of the limit is enough to warn.
    const StepChange likely{
        .change = change.change, .lower = change.change, .upper = change.change};
    const bool is_beyond = judge(likely, figure.less_is_worse, *figure.before,
                                 *judged_values.warn) == CheckOutcome::failed;
    const bool is_sure = figure.less_is_worse ? change.upper < 0 : change.lower > 0;
    if (is_beyond && is_sure) figure.standing = CheckOutcome::warned;
    if (is_beyond)
      figure.why = change.is_assumed ? "a single value, with an assumed variation of 5 %"
                                     : fmt::format("steps vary: between {} and {} more",
                                                   figure_text(figure.unit, change.lower),
                                                   figure_text(figure.unit, change.upper));
  }

  const CheckBaseline& baseline_;
  const JobSummary& now_;
  const CheckOptions& options_;
  const FigureSteps* typical_;  ///< Of the recordings of the baseline; nullptr if it has one.
};

/// Whether a cause is that of one step, which the step time, a median, does not show.
bool is_of_one_step(const CheckCause& cause) {
  constexpr std::string_view kOfOne[] = {kMeanStep, kSlowestStep, kSlowestExcess};
  return std::find(std::begin(kOfOne), std::end(kOfOne), cause.figure) != std::end(kOfOne);
}

/// The reason why the job cannot be judged; empty if it can.
std::string why_undecided(const Trust& trust) {
  if (const TrustReason* cut = trust.reason(kCutOffReason)) return cut->text;
  return trust.grade() == Grade::poor ? "trust is " + trust_warning(trust) : "";
}

}  // namespace

std::vector<CheckedFigure> judged_figures(const CheckBaseline& baseline, const JobSummary& now,
                                          const CheckOptions& options) {
  return Judge(baseline, now, options).figures();
}

std::optional<VisibleChange> visible_change(const CheckBaseline& baseline, const JobSummary& now) {
  const FigureEntry& entry = figure_entry("step_time");
  const std::string name(entry.name);
  if (!baseline.summary.figures.contains(name) || !now.figures.contains(name)) return {};
  std::vector<std::int64_t> known;
  for (const std::vector<std::int64_t>* run : recordings_of(baseline, name))
    known.push_back(figure_value(entry, *run));
  const FigureSteps* const run = typical_run(baseline);
  const auto& steps = (run == nullptr ? baseline.summary.figures : *run).at(name);
  const std::int64_t typical = figure_value(entry, steps);
  if (typical <= 0) return {};
  const auto step = static_cast<double>(typical);
  const double of_steps = static_cast<double>(step_change(entry, steps, steps).upper) / step;
  const double deviation = sample_of(known).deviation / step;
  const auto visible = [&](std::size_t recordings) {
    return recordings < 2 ? of_steps : std::max(of_steps, reach_of(recordings, deviation));
  };
  VisibleChange found{.share = visible(known.size()), .recordings = known.size(), .for_wanted = {}};
  for (std::size_t n = std::max<std::size_t>(known.size(), 2);
       !found.for_wanted && n <= kMaxRecordings; ++n) {
    if (visible(n) <= VisibleChange::kWanted) found.for_wanted = n;
  }
  return found;
}

void settle_effects(CheckReport& report) {
  const auto step =
      std::find_if(report.figures.begin(), report.figures.end(),
                   [](const CheckedFigure& figure) { return figure.name == kStepTime; });
  if (step == report.figures.end() || !step->before || !step->after) return;
  Nanoseconds left(*step->after - *step->before);
  const Nanoseconds noise =
      std::max(left - Nanoseconds(step->lower), Nanoseconds(step->upper) - left);
  bool is_told = step->standing >= CheckOutcome::warned && step->lower > 0;
  for (CheckCause& cause : report.causes) {
    if (!cause.effect || is_of_one_step(cause)) continue;
    if (step->lower <= 0) cause.effect.reset();
    left -= cause.effect.value_or(0ns);
    is_told = is_told || cause.effect.value_or(0ns) > 0ns;
  }
  if (is_told && std::chrono::abs(left) > noise) report.left = left;
}

Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited) {
  Trust trust = trust_in_recording(inference, notes,
                                   is_edited ? AnswerAbout::changes : AnswerAbout::recorded);
  if (is_edited) return trust;
  for (TrustReason& reason : trust.reasons) reason.grade = std::min(reason.grade, Grade::fair);
  return trust;
}

void leave_undecided(const CheckOptions& options, CheckReport& report) {
  const std::string why = why_undecided(report.trust);
  if (why.empty()) return;
  for (CheckedFigure& figure : report.figures) {
    if (figure.standing == CheckOutcome::left_out) continue;
    figure.standing = options.undecided.value_or(CheckOutcome::undecided);
    figure.why = why;
  }
}

}  // namespace foretrace

#include "question/predict/ranks.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "base/wording.h"
#include "job/apply.h"
#include "job/chosen_rank.h"

namespace foretrace {

TrustReason ranks_joined(const JobRanks& job) {
  const std::size_t count = job.ranks.size();
  if (!job.is_joined())
    return {.name = "ranks",
            .grade = Grade::fair,
            .text = fmt::format(
                "each of {} ranks was predicted alone: a change on one does not delay the others",
                count),
            .value = static_cast<double>(count),
            .limit = 1};
  std::size_t matched = 0, all = 0;
  for (const CollectiveTotals& rank : job.join.ranks)
    matched += rank.matched, all += rank.matched + rank.unmatched;
  constexpr double kMaxAlone = 0.1;
  const double alone =
      static_cast<double>(all - matched) / static_cast<double>(std::max<std::size_t>(all, 1));
  return {.name = "ranks",
          .grade = alone > kMaxAlone ? Grade::fair : Grade::good,
          .text = fmt::format("{} wait for each other in {} of their {}", counted(count, "rank"),
                              grouped(matched), counted(all, "collective")),
          .value = alone,
          .limit = kMaxAlone};
}

std::int32_t whole_size(const JobRanks& job) {
  return std::max(job.ranks.front().inference.rank.world_size,
                  static_cast<std::int32_t>(job.world.size()));
}

namespace {

/// Standard deviation of the counted steps, as a share of the step time; an assumed share if there
/// are fewer than three.
double deviation_of_steps(const StepTimes& times) {
  constexpr double kAssumed = 0.04;
  if (times.counted.size() < 3 || times.step_time <= 0ns) return kAssumed;
  double squares = 0;
  for (const Nanoseconds time : times.counted) {
    const double off = ratio(time - times.mean, times.step_time);
    squares += off * off;
  }
  return std::sqrt(squares / static_cast<double>(times.counted.size() - 1));
}

/// `which` begins the sentence: "56 ranks were not recorded".
void widen(std::int64_t recorded, std::int64_t size, const std::string& which,
           Prediction& prediction) {
  const double later = (expected_greatest(size) - expected_greatest(recorded)) *
                       deviation_of_steps(prediction.measured);
  const Nanoseconds point = prediction.predicted.step_time, by = scaled(point, later);
  const std::string text =
      fmt::format("{}: the slowest rank may be up to {} of a step slower than the recorded ones",
                  which, to_share(later));
  prediction.upper += by;
  prediction.interval_parts.push_back({"missing_ranks", point, point + by, text});
  prediction.interval_source += (prediction.interval_source.empty() ? "" : "; ") + text;
}

}  // namespace

void widen_for_missing_ranks(const JobRanks& job, Prediction& prediction) {
  const auto recorded = static_cast<std::int32_t>(job.ranks.size());
  const std::int32_t size = whole_size(job);
  if (recorded >= size || recorded == 1 || !job.is_joined()) return;
  widen(recorded, size,
        fmt::format("{} {} not recorded", counted(size - recorded, "rank"),
                    size - recorded == 1 ? "was" : "were"),
        prediction);
}

void widen_for_added_ranks(const Scenario& scenario, Prediction& prediction) {
  std::int64_t ranks = 1;
  for (const auto& transform : scenario.transforms) ranks *= transform->job_change().ranks;
  if (ranks <= 1 || !prediction.has_times) return;
  const std::string which = fmt::format("only one of {} workers was recorded", ranks);
  const Nanoseconds late = total_time(prediction.steps, "lateness_per_step");
  if (late == 0ns) return widen(1, ranks, which, prediction);
  // Four of five published runs on several GPUs lie between these multiples of the typical
  // lateness.
  constexpr double kMin = 0.15, kMax = 4.9;
  const Nanoseconds point = prediction.predicted.step_time;
  const Nanoseconds lower = std::max(0ns, point - scaled(late, 1 - kMin));
  const Nanoseconds upper = point + scaled(late, kMax - 1);
  prediction.lower = std::max(0ns, prediction.lower - (point - lower));
  prediction.upper += upper - point;
  const std::string text = fmt::format(
      "{}: the latest worker is assumed to be {} behind it; in four of five published runs that is "
      "{} to {}",
      which, to_text(late), to_text(scaled(late, kMin)), to_text(scaled(late, kMax)));
  prediction.interval_parts.push_back({"missing_ranks", lower, upper, text});
  prediction.interval_source += (prediction.interval_source.empty() ? "" : "; ") + text;
}

std::optional<TrustReason> ranks_missing(const JobRanks& job) {
  const auto recorded = static_cast<std::int32_t>(job.ranks.size());
  const std::int32_t size = whole_size(job);
  if (recorded >= size || recorded == 1) return {};
  return TrustReason{
      .name = "missing_ranks",
      .grade = Grade::fair,
      .text = fmt::format("{} of {} ranks were recorded, and stand for the others", recorded, size),
      .value = static_cast<double>(recorded),
      .limit = static_cast<double>(size)};
}

PredictedRank rank_described(const JobRanks& job, std::size_t rank, const Prediction& prediction) {
  const WorldRank& world = job.world[rank];
  PredictedRank found;
  static_cast<RankFacts&>(found) = rank_facts(job, rank);
  found.is_recorded = world.is_recorded;
  found.measured = prediction.measured.step_time;
  found.baseline = prediction.baseline.step_time;
  found.predicted = prediction.predicted.step_time;
  found.predicted_steps = prediction.predicted.each;
  found.baseline_breakdown = prediction.baseline_breakdown;
  found.predicted_breakdown = prediction.predicted_breakdown;
  return found;
}

namespace {

/// Whether a step did much more to one rank than to another, judged by its first figure.
bool outdoes(const AppliedStep& one, const AppliedStep& other) {
  if (one.figures.empty() || other.figures.empty()) return false;
  return magnitude(one.figures.front()) > 2 * magnitude(other.figures.front());
}

}  // namespace

void report_steps_of(std::int32_t rank, const std::vector<AppliedStep>& its_steps,
                     Prediction& prediction) {
  const auto has_effect = [](const AppliedStep& step) {
    return step.summary != kNamesAnotherRank && !step.changed_nothing;
  };
  for (std::size_t i = 0; i < std::min(prediction.steps.size(), its_steps.size()); ++i) {
    AppliedStep& step = prediction.steps[i];
    const bool is_first = step.summary == kNamesAnotherRank;
    if (its_steps[i].summary == kNamesAnotherRank) continue;
    if (has_effect(step) ? !outdoes(its_steps[i], step) : !is_first && !has_effect(its_steps[i]))
      continue;
    step = its_steps[i];
    step.summary.insert(0, fmt::format("rank {}: ", rank));
  }
}

void drop_notes_on_effects(Prediction& prediction) {
  const bool all_changed = std::ranges::none_of(prediction.steps, &AppliedStep::changed_nothing);
  Notes notes;
  for (const Note& note : prediction.notes.all()) {
    if (!all_changed || note.text != kChangedNothing)
      notes.add(note.severity, note.text, note.example, note.count);
  }
  prediction.notes = std::move(notes);
}

std::string rank_text(const Prediction& prediction, std::size_t all) {
  for (const PredictedRank& rank : prediction.ranks) {
    if (rank.number != prediction.rank) continue;
    if (rank.alike == 0) return fmt::format("rank {}", rank.number);
    return fmt::format("rank {} of {}, and {} like it", rank.number, all, rank.alike);
  }
  return {};
}

}  // namespace foretrace

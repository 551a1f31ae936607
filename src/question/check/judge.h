#pragma once

// Compares the figures of a job with those of its baseline, which may represent several recordings.
//
//     one recording     the change of the steps against its limit
//     several           beyond the limit against each of them, and beyond the likely value of a
//                       further recording of the unchanged job: mean + t s sqrt(1 + 1/n)
//
// A change beyond the limit, but within that value, is undecided.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/infer.h"
#include "foretrace/question/check.h"

namespace foretrace {

/// Judges all figures that either side has, in the order of figure_entries().
std::vector<CheckedFigure> judged_figures(const CheckBaseline& baseline, const JobSummary& now,
                                          const CheckOptions& options);

/// Judged by the steps of the typical recording of the baseline, as if one like it, but longer,
/// came. Empty if either side has no step time.
std::optional<VisibleChange> visible_change(const CheckBaseline& baseline, const JobSummary& now);

struct Sample {
  double mean = 0;
  double deviation = 0;  ///< Standard deviation; 0 for fewer than two values.
};
Sample sample_of(const std::vector<std::int64_t>& values);

/// The value that Student's t stays below with 95 % probability, by degrees of freedom; 0 counts as
/// 1.
double student_95(std::size_t freedom);

/// Makes the effects of causes add up to the change of the step time. Without a slowdown beyond
/// noise no cause has an effect; otherwise `left` is what they do not account for.
void settle_effects(CheckReport& report);

// Recognizes jobs that must not be judged: in a recording that breaks off, missing work cannot be
// distinguished from removed work, and a poor prediction proves nothing.

/// How far the job can be trusted. A recording is judged as it is: an error of its replay, or
/// unexplained time, only matters for a what-if (`is_edited`).
Trust trust_in_job(const Inference& inference, const Notes& notes, bool is_edited);

/// Makes all compared figures undecided, with the reason, if the report's trust does not allow a
/// judgement.
void leave_undecided(const CheckOptions& options, CheckReport& report);

}  // namespace foretrace

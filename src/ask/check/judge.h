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
#include <vector>

#include "foretrace/ask/check.h"

namespace foretrace {

/// All that either side has, in the order of figure_entries().
std::vector<CheckedFigure> judged_figures(const CheckBaseline& baseline, const JobSummary& now,
                                          const CheckOptions& options);

struct Sample {
  double mean = 0;
  double deviation = 0;  ///< The standard deviation; 0 of fewer than two values.
};
Sample sample_of(const std::vector<std::int64_t>& values);

/// Student's t with 95 % below it, by degrees of freedom; that of one for none.
double student_95(std::size_t freedom);

}  // namespace foretrace

#pragma once

// The sentences and tables of a comparison that several of its forms show.

#include <string>

#include "foretrace/answer/diff.h"
#include "report/words/table.h"

namespace foretrace {

/// "12 new cudaStreamSynchronize from train.py:88 main"
std::string cause_text(const DiffCause& cause);
/// The same, if additions and removals in the rest of the comparison are more informative than the
/// number of their dependencies.
std::string cause_text(const Diff& diff, const DiffCause& cause);

/// The begin of a verdict about two unrelated jobs; empty otherwise.
std::string unlike_text(const Diff& diff);

/// "+1.2 ms", "-3 us", "0 ns"
std::string signed_time(Nanoseconds time);

/// The names of the two sides.
struct SideNames {
  const char* before = "A";
  const char* after = "B";
};

/// From the step time before to that after; the smallest effects are taken together.
Table waterfall_table(const Diff& diff, const SideNames& names = {});
/// Counts of the two steps.
Table content_table(const Diff& diff, const SideNames& names = {});
Table path_table(const Diff& diff);
Table peak_table(const Diff& diff);
/// One line for each rank, if there are several.
Table ranks_table(const DiffReport& report);

/// "85.03 ms -> 48.92 ms (-42.5 %)"
std::string step_change(const Diff& diff);
/// A sentence on the steps that were compared.
std::string compared_text(const Diff& diff);

}  // namespace foretrace

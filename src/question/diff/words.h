#pragma once

// Sentences and tables of a comparison, shared by its formats.

#include <string>

#include "document/words/table.h"
#include "foretrace/answer/diff.h"

namespace foretrace {

/// Returns a text such as "12 new cudaStreamSynchronize from train.py:88 main".
std::string cause_text(const DiffCause& cause);
/// Like the function above. But for new and dropped waits, it instead names the copies,
/// synchronizations and collectives that came or went, if the comparison shows any.
std::string cause_text(const Diff& diff, const DiffCause& cause);

/// Returns the beginning of a verdict about two jobs that have little in common; empty if they are
/// alike.
std::string mismatch_text(const Diff& diff);

/// Returns a text such as "+1.2 ms", "-3 us" or "0 ns".
std::string signed_time(Nanoseconds time);

/// The names of the two sides.
struct SideNames {
  const char* before = "A";
  const char* after = "B";
};

/// Returns a table that leads from the step time before to the step time after, one effect per row.
/// The smallest effects share a row.
Table waterfall_table(const Diff& diff, const SideNames& names = {});
/// Returns a table of the kinds of steps of an engine that serves a model; empty for other jobs.
Table kinds_table(const Diff& diff);
/// Returns a table of what the two steps contain, such as their numbers of kernels.
Table content_table(const Diff& diff, const SideNames& names = {});
Table path_table(const Diff& diff);
Table peak_table(const Diff& diff);
/// Returns a table with a row for each rank; it is empty if there is only one.
Table ranks_table(const DiffReport& report);

/// Returns a text such as "85.03 ms -> 48.92 ms (-42.5 %)".
std::string step_change(const Diff& diff);
/// Returns a sentence about the steps that were compared.
std::string compared_text(const Diff& diff);

}  // namespace foretrace

#pragma once

// Differences between two recordings of one job (other code, another library, another machine), and
// their effect on the step time.
//
// Tasks are matched by their place in the job (step, module, ops around them, order), not by names,
// numbers and times alone. Both graphs are merged into one with the tasks and dependencies of both.
// Replayed as A it gives A, replayed as B it gives B; replayed with some groups of differences
// switched from A to B it shows their effect. Groups are switched one after another, in an order
// and in its reverse, and the effect of each is the mean of its two changes: the effects add up to
// the whole, and those from B to A are the same with the opposite sign.

#include <string>

#include "foretrace/answer/diff.h"
#include "foretrace/graph.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

struct DiffSide {
  const Graph& graph;
  const Timeline& timeline;
  const Trace* trace = nullptr;  ///< Supplies ops and source lines; may be null.
};

struct DiffOptions {
  /// Most groups of differences to distinguish; beyond that, the smaller ones of a kind are merged.
  /// 0: as many as can be replayed in about half a second.
  std::size_t most_causes = 0;
  /// Whether to add up the records of each name, which only tables show.
  bool with_names = false;
};

Diff diff(const DiffSide& before, const DiffSide& after, const DiffOptions& options = {});

/// Compares rank by rank. Throws Error if the two have no rank in common.
DiffReport diff(const std::string& before_path, const std::string& after_path,
                const ImportOptions& reading = {}, const DiffOptions& options = {});

}  // namespace foretrace

#pragma once

// `foretrace plan system`: a system that is described rather than recorded. Tasks stand on lanes,
// and their times are formulas of named numbers; the graph is built for given numbers and replayed.
//
//     {"settings": {"N": 60000, "M": 20},
//      "let":      ["waves = ceil(N / M)"],
//      "tasks":    [{"name": "start", "time": "12"},
//                   {"name": "map", "lanes": "M", "count": "N", "time": "0.004",
//                    "after": ["start"]},
//                   {"name": "reduce", "time": "30", "after": ["map"]}],
//      "repeat":   "20",
//      "figures":  ["cases_per_second = N / time"],
//      "rows":     [{"M": 20}, {"M": 40}],
//      "assert":   ["time < 3600"]}
//
// Times are seconds. Tasks of one name are dealt to its lanes in turn; each repetition waits for
// the one before. "search" has values of settings to try ("1..16", [1, 2]), "subject_to" has
// conditions that must hold, and "minimize" is the figure to minimize ("time"); "means" are
// geometric means over rows, and "assert_means" has assertions about them.

#include <map>
#include <string>

#include "foretrace/answer/system.h"

namespace foretrace {

/// `settings` override those of the file and its rows. Throws Error with the place in the file,
/// also if a formula has no finite value.
SystemReport run_system(const std::string& path, const std::map<std::string, double>& settings);

}  // namespace foretrace

#pragma once

// The timelines of a page, in as few bytes as possible. Columns are packed by packed_numbers.h. A
// "delta" is the difference to the previous entry.
//
//     names    every name once; all other places contain its index
//     lanes    [name, group] of the lanes of all runs
//     bins     number of bins; bin_ns is the length of each, the same for all runs
//     runs     for each run {title, length, steps, step, lanes, bins, path, columns, reasons ...}
//       steps    [name, from, to]
//       lanes    [index in lanes, tasks, tasks on the page, busy time], in drawing order
//       bins     a byte for each bin of each lane: class of most work << 5 | how busy, 0 to 31
//       path     lane, from (delta) and length of each piece of the critical path
//       columns  for the tasks on the page, lane by lane: start (delta), duration, name, module,
//                kind | phase << 4, step (delta), waited, reason, before (this task's number minus
//                that of the task it waited for; 0: that one is not on the page)
//       reasons  [name of the task waited for, its lane, why, provenance]

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "question/predict/drawn_run.h"

namespace foretrace {

struct TitledRun {
  std::string title;  ///< "now"
  const DrawnRun& run;
  const Drawing& drawing;
};

nlohmann::json timeline_json(const std::vector<TitledRun>& runs);

}  // namespace foretrace

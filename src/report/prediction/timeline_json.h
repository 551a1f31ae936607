#pragma once

// The timelines of a page, as small as they get. All numbers are columns of packed_numbers.h.
//
//     names    every name once; others are numbers into it
//     lanes    [name, group], of all runs
//     bins     how many, and bin_ns how long each: the same for all runs
//     runs     each {title, length, steps, step, lanes, bins, path, columns, reasons ...}
//       steps    [name, from, to]
//       lanes    [into lanes, tasks, of these on the page, busy], in the order they are drawn
//       bins     a byte for each bin of each lane: class of most work << 5 | how busy, 0 to 31
//       path     lane, from (since the last), length of each stretch of the critical path
//       columns  of the tasks on the page, lane by lane: start (since that in front), duration,
//                name, module, kind | phase << 4, step (since that in front), waited, reason,
//                before (1 + the number of the one it waited for, since this one; 0: not on the
//                page)
//       reasons  [name of the one waited for, its lane, why, provenance]

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "report/prediction/drawn_run.h"

namespace foretrace {

struct TitledRun {
  std::string title;  ///< "now"
  const DrawnRun& run;
  const Drawing& drawing;
};

nlohmann::json timeline_json(const std::vector<TitledRun>& runs);

}  // namespace foretrace

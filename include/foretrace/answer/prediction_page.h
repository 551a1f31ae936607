#pragma once

// The page of a prediction: one file for people who were not there when it was asked for. The
// verdict, where the time goes, every lane on one axis before and after, the critical path, memory,
// what the step time would react to next, and what all of it rests on.
//
// The timelines are drawn by the page itself from what fits into it: of each lane how busy it is,
// and the tasks of a representative step with the longest of all others. What was left out is told.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// What is drawn of a job: as recorded, or as predicted.
struct DrawnRun {
  const Graph& graph;
  const Timeline& timeline;     ///< With `reasons`.
  std::vector<Explained> path;  ///< The critical path, alike tasks taken together.
};

/// What becomes of the step time if one kind of work takes less time.
struct Reaction {
  std::string name;                     ///< "host.work"
  std::string what;                     ///< In words.
  Nanoseconds work{0};                  ///< Of that kind, in a step.
  Nanoseconds step_time{0};             ///< As predicted.
  Nanoseconds by_tenth{0}, by_half{0};  ///< With a tenth, and half, of the work gone.
};

struct PredictionPage {
  const Prediction& prediction;
  DrawnRun now;
  std::optional<DrawnRun> predicted;  ///< Nothing without a what-if.
  std::vector<Reaction> reactions;    ///< Of the job as predicted.
};

}  // namespace foretrace

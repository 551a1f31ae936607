#pragma once

// The page of a prediction: one file that can be understood without the command line. It has the
// verdict, where the time goes, every lane on one axis before and after, the critical path, memory,
// the kinds of work that the step time would react to next, and the evidence for all of it.
//
// The page draws the timelines itself, from as much as fits into it: how busy each lane is, and the
// tasks of a representative step with the longest of all others. It says what was left out.

#include <cstddef>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The drawn part of a job, as recorded or as predicted.
struct DrawnRun {
  const Graph& graph;
  const Timeline& timeline;     ///< With `reasons`.
  std::vector<Explained> path;  ///< The critical path, with similar tasks merged.
};

/// How the step time reacts if one kind of work takes less time.
struct Sensitivity {
  std::string name;                     ///< "host.work"
  std::string title;                    ///< In words.
  Nanoseconds work{0};                  ///< Work of that kind in a step.
  Nanoseconds step_time{0};             ///< As predicted.
  Nanoseconds by_tenth{0}, by_half{0};  ///< Step time with a tenth and with half of it gone.
};

struct PredictionPage {
  const Prediction& prediction;
  DrawnRun now;
  std::optional<DrawnRun> predicted;       ///< Empty without a what-if.
  std::vector<Sensitivity> sensitivities;  ///< Sensitivities of the predicted job.
};

/// Writes less than 6 MB, however many tasks there are.
void write_prediction_page(const PredictionPage& page, std::ostream& out);
/// The parts of that page, for a page that shows one answer after another: {"heading", "lead"
/// (HTML), "sections": [{"id", "heading", "html"}], "timelines", "memory" (JSON texts that
/// page/*.js read)}. Timelines have at most `most_tasks` tasks: those of one step come first, then
/// the longest.
nlohmann::json prediction_parts(const PredictionPage& page, std::size_t most_tasks);
/// The timelines of two recordings on one axis: {"sections", "timelines"}, as above.
nlohmann::json recordings_parts(const DrawnRun& a, const DrawnRun& b, std::size_t most_tasks);

}  // namespace foretrace

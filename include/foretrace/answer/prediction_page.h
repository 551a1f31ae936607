#pragma once

// The page of a prediction: one file that can be understood without the command line. It has the
// verdict, where the time goes, every lane on one axis before and after, the critical path, memory,
// the kinds of work that the step time would react to next, and the evidence for all of it.
//
// The page draws the timelines itself, from as much as fits into it: how busy each lane is, and the
// tasks of a representative step with the longest of all others. It says what was left out.

#include <cstddef>
#include <cstdint>
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

/// Something that a device does. Pictures prefer the first where times are equal.
enum class RankActivity : std::uint8_t { compute, copy, communication, waiting };
constexpr std::size_t kRankActivities = 4;

/// One step of a rank, on the clock of all ranks.
struct RankLane {
  struct Piece {
    double from = 0, to = 0;  ///< Shares of the step.
    RankActivity what = RankActivity::compute;
  };
  std::int32_t rank = 0;
  Nanoseconds step{0};
  std::vector<Piece> pieces;  ///< In order; nothing runs between them.
};

struct PredictionPage {
  const Prediction& prediction;
  DrawnRun now;
  std::optional<DrawnRun> predicted;       ///< Empty without a what-if.
  std::vector<Sensitivity> sensitivities;  ///< Sensitivities of the predicted job.
  std::vector<RankLane> ranks = {};        ///< As predicted; empty if ranks do not meet.
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

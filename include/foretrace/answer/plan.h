#pragma once

// The answer of `foretrace plan`: the fastest layouts of a job, other layouts worth considering,
// and why the rest lost.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/generation.h"
#include "foretrace/answer/training.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

struct PlanRow {
  std::string role{};    ///< "yours" or "plain data parallelism"; empty for the others.
  std::string layout{};  ///< For --layout of `generate`.
  std::int64_t gpus = 1;
  Nanoseconds time{0}, lower{0}, upper{0};  ///< 80 % of measured steps should lie between them.
  Nanoseconds bubble{0}, network{0}, kernels{0};  ///< Their sum is the time.
  Bytes reserved{};                               ///< Reserved memory on the fullest device.
  /// Model FLOP/s, by the peak of the precision that is used, and tokens; 0 for a recorded model.
  double utilization = 0, tokens_per_second = 0;
  std::optional<double> cost{};  ///< Cost of 1,000 steps.
  bool is_covered = false;       ///< Steps of this shape were measured.
  bool fits = true;
  /// The main reason why it is slower than the fastest: memory (it does not fit), bubble, network
  /// or kernels. Empty for the fastest.
  std::string loss{};
};

/// Consecutive stages that are alike.
struct PlanStages {
  std::string first{}, last{};  ///< First and last layer.
  std::size_t stages = 1;
  std::size_t layers = 1;  ///< Layers per stage.
  std::int64_t gpus = 1;   ///< GPUs per stage.
  Nanoseconds time{0};     ///< Time of a micro-batch in each stage.
};

/// The choice of a strategy other than the exhaustive search.
struct PlanStrategy {
  std::string name{};
  Nanoseconds time{0};  ///< Step time, by its own model.
  std::int64_t micro_batch = 1;
  std::string schedule{};
  bool recomputes = false;
  std::vector<PlanStages> stages{};
  bool is_ranked = false;  ///< Whether it is a layout, which is then ranked first.
};

struct PlanReport {
  std::string model, machine;
  std::string trace{};  ///< Path of the job's trace, if `model` is recorded rather than described.
  std::int64_t global_batch = 1;
  Bytes limit{};                         ///< Memory of a device that layouts may use.
  std::string currency;                  ///< Currency of the prices; empty without them.
  std::optional<PlanStrategy> strategy;  ///< Empty for the exhaustive search.
  /// Layouts that the model allows, and those that were replayed because no bound excluded them.
  std::size_t layouts = 0, replayed = 0;
  std::vector<PlanRow> ranked;  ///< Fastest first; then plain data parallelism, yours.
  std::vector<PlanRow> front;   ///< Pareto front of time, memory and price.
  std::vector<std::pair<std::string, std::size_t>> losses;  ///< Why the layouts not shown lost.
  std::string command{};  ///< Answers for the fastest layout alone; empty if none fits.
  /// The fastest layout that `program` has settings for; `flags` is empty if it has them for none,
  /// or if it takes them from a file alone.
  struct Launch {
    std::string program;
    std::optional<PlanRow> row;
    std::vector<std::string> flags;
    std::string file{};     ///< With --config: the file, changed so that it runs the layout.
    std::string no_file{};  ///< Why it cannot be changed; empty if it can.
  };
  std::vector<Launch> launches;
  std::optional<GenerationReport> measured;  ///< How well the user's measured runs are reproduced.
  std::optional<TrainingRun> training{};     ///< With the fastest layout.
  std::vector<std::string> assumptions;
  Notes notes;
};

/// Whether a measured run lies in its interval, or ran out of memory as predicted.
bool is_reproduced(const GeneratedRow& row);

class Document;
/// For people, in every form.
Document document_of(const PlanReport& report);
/// The object with schema "foretrace.plan/1".
nlohmann::json to_json(const PlanReport& report);
/// One row for each ranked layout, then one for each layout on the front.
void write_csv(const PlanReport& report, std::ostream& out);

}  // namespace foretrace

#pragma once

// The answer of `foretrace generate`: what a training step costs without a trace, and how far such
// answers are from measured steps.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretrace/answer/training.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// One row of a table of layers, for one device and micro-batch.
struct GeneratedLayer {
  std::string name{};
  std::int64_t count = 1;
  double parameters = 0;  ///< Parameters of one layer on one device.
  double operations = 0;  ///< Forward, on all devices of the layer together.
  Bytes kept{}, output{};
};

struct GeneratedStep {
  std::string model, machine, layout;
  double parameters = 0;
  std::int64_t devices = 1;
  std::vector<GeneratedLayer> layers{};
  Nanoseconds time{0}, lower{0}, upper{0};  ///< 80 % of measured steps should lie between them.
  /// compute, tensor communication, pipeline bubble, sends, gradients, optimizer, waiting for the
  /// slowest host, other; their sum is the time.
  std::vector<std::pair<std::string, Nanoseconds>> breakdown{};
  /// Parts on the fullest device, largest first.
  std::vector<std::pair<std::string, Bytes>> memory{};
  Bytes allocated{}, reserved{}, device_memory{};
  double out_of_memory = 0;  ///< Probability that a device needs more than it has.
  double tokens_per_second = 0, samples_per_second = 0;
  double utilization = 0;   ///< Model FLOP/s over the devices' peak in their precision (MFU).
  bool is_covered = false;  ///< Steps of this shape were measured.
};

struct GeneratedRow {
  std::size_t number = 0;  ///< Row in its file, from 1.
  std::string name{};
  Nanoseconds time{0}, lower{0}, upper{0};
  std::optional<Nanoseconds> measured{};  ///< Empty if the run was out of memory.
  Bytes allocated{}, measured_memory{};
  bool is_covered = false, was_fitted = false;
  double out_of_memory = 0;                ///< Probability.
  bool is_guessed = false;                 ///< Its layout is not fully known: it is not scored.
  bool runs_out = false, ran_out = false;  ///< Out of memory: predicted, and measured.

  /// (time - measured) / measured.
  std::optional<double> error() const;
};

/// Errors over the rows that nothing was fitted to.
struct GeneratedScore {
  std::size_t rows = 0;
  double mean = 0, median = 0, ninetieth = 0;  ///< Absolute relative errors.
  double in_interval = 0;                      ///< Share of measured times in their 80 % intervals.
  /// How well rows of one model and number of devices are ranked, averaged over such groups by
  /// their rows; empty without such groups.
  std::optional<double> rank_correlation, regret;
  std::optional<double> memory_median;
  /// Rows that ran out of memory, and those of them predicted to; rows that did not, and false
  /// alarms among them.
  std::size_t ran_out = 0, found = 0, alarms = 0, fitting = 0;
};

struct GenerationReport {
  std::optional<GeneratedStep> step{};
  std::optional<TrainingRun> training{};
  std::vector<GeneratedRow> rows{};
  std::optional<GeneratedScore> score{};
  /// Name, value and unit of each fitted constant; empty if none was fitted.
  std::vector<std::tuple<std::string, double, std::string>> constants{};
  std::string calibration;  ///< Path of the calibration file; empty without one.
  std::vector<std::string> assumptions{};
  Notes notes{};
};

/// Scores rows. `groups` names, for each row, the rows it competes with, and has the samples of a
/// step.
GeneratedScore score_of(const std::vector<GeneratedRow>& rows,
                        const std::vector<std::pair<std::string, double>>& groups);

class Document;
/// For people, in every form.
Document document_of(const GenerationReport& report);
/// The object with schema "foretrace.generation/1".
nlohmann::json to_json(const GenerationReport& report);
/// One row for each measured row, or for the step.
void write_csv(const GenerationReport& report, std::ostream& out);

}  // namespace foretrace

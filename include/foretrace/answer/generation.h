#pragma once

// The answer of `foretrace generate`: what a training step costs without a trace, and how far such
// answers are from measured steps.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// One row of a table of layers, of one device and micro-batch.
struct GeneratedLayer {
  std::string name{};
  std::int64_t count = 1;
  double parameters = 0;  ///< Parameters of one layer on one device.
  double operations = 0;  ///< Forward, of all devices of the layer together.
  Bytes kept{}, output{};
};

struct GeneratedStep {
  std::string model, machine, layout;
  double parameters = 0;
  std::int64_t devices = 1;
  std::vector<GeneratedLayer> layers{};
  Nanoseconds time{0}, lower{0}, upper{0};  ///< 80 % of measured steps should lie between them.
  /// compute, tensor communication, pipeline bubble, sends, gradients, optimizer, other; their sum
  /// is the time.
  std::vector<std::pair<std::string, Nanoseconds>> breakdown{};
  std::vector<std::pair<std::string, Bytes>>
      memory{};  ///< Parts on the fullest device, largest first.
  Bytes allocated{}, reserved{}, device_memory{};
  double tokens_per_second = 0, samples_per_second = 0;
  double utilization = 0;   ///< Model FLOP/s over the devices' peak (MFU).
  bool is_covered = false;  ///< Steps of this shape were measured.
};

struct GeneratedRow {
  std::size_t number = 0;  ///< In its file, from 1.
  std::string name{};
  Nanoseconds time{0}, lower{0}, upper{0};
  std::optional<Nanoseconds> measured{};  ///< Nothing where it ran out of memory.
  Bytes allocated{}, measured_memory{};
  bool is_covered = false, was_fitted = false;
  bool runs_out = false, ran_out = false;  ///< Out of memory: predicted, measured.

  /// (time - measured) / measured.
  std::optional<double> error() const;
};

/// Errors over the rows that nothing was fitted to.
struct GeneratedScore {
  std::size_t rows = 0;
  double mean = 0, median = 0, ninetieth = 0;  ///< Absolute relative errors.
  double in_interval = 0;                      ///< Share of measured times in their 80 % intervals.
  /// Among rows of one model on as many devices, weighted by rows; nothing without such groups.
  std::optional<double> rank_correlation, regret;
  std::optional<double> memory_median;
  std::size_t ran_out = 0, found = 0, alarms = 0, fitting = 0;  ///< Rows: alarms are false.
};

struct GenerationReport {
  std::optional<GeneratedStep> step{};
  std::vector<GeneratedRow> rows{};
  std::optional<GeneratedScore> score{};
  /// Name, value and unit of what was fitted, where it was.
  std::vector<std::tuple<std::string, double, std::string>> constants{};
  std::string calibration;  ///< The file it is from; empty without one.
  std::vector<std::string> assumptions{};
  Notes notes{};
};

/// Scores rows; `groups` says for each which compete and how many samples a step of it has.
GeneratedScore score_of(const std::vector<GeneratedRow>& rows,
                        const std::vector<std::pair<std::string, double>>& groups);

}  // namespace foretrace

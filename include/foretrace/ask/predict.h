#pragma once

// Runs the verbs in the order a question asks for: import, infer, replay the baseline, transform,
// simulate, report. The one place where transforms are applied, and where a result is checked for
// "changed nothing" and "matched nothing".

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/report.h"
#include "foretrace/scenario.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct PredictOptions {
  bool explain = false;
  bool strict = false;  ///< Notes of severity warning become a TraceError.
  ImportOptions reading = {};
  /// Write the predicted timeline there: a format of export.h by its ending, otherwise JSON.
  std::string perfetto_path = {};
  std::string html_path = {};    ///< Write the report page there.
  std::string ledger_path = {};  ///< The user's own ledger of errors, beside the built-in one.
};

/// Everything from file to answer. Several ranks of a folder: each is predicted, and the slowest is
/// the answer.
Prediction predict(const std::string& trace_path, const Scenario& scenario,
                   const PredictOptions& options = {});

/// The same for an inferred trace; the parts that need a file (inputs) are left empty.
Prediction predict(const Inference& inference, const Scenario& scenario,
                   const PredictOptions& options = {});

/// One setting, and the values to try.
struct Vary {
  std::string setting;  ///< "recompute.share", "transforms[1].workers", "memory.limit".
  std::string values;   ///< "1,2,4", "0..16" (whole numbers), "0..1/20" (21 values), "8GB..40GB/8".
  std::string
      until;  ///< An assertion; ranges are then searched for the last value that satisfies it.
};

/// The prediction for each value, in order; points are worked out on all cores. Throws Error if the
/// setting, a value or the assertion cannot be read, or if no value has an answer.
Curve vary(const std::string& trace_path, const Scenario& scenario, const Vary& question,
           const PredictOptions& options = {});
Curve vary(std::vector<Inference> ranks, const Scenario& scenario, const Vary& question,
           const PredictOptions& options = {});

/// How well causes were found (`foretrace validate`): structure of one step, work of another.
/// The recording up to the start of its last step, with one side, host or device, taking no time.
/// The time in which only that side worked must then be gone.
struct OneSide {
  Nanoseconds recorded{0};
  Nanoseconds alone{0};  ///< Part of `recorded` while the other side did nothing.
  Nanoseconds left{0};   ///< Replayed without the side.
  /// The part of `left` beyond the time in which the other side worked or neither did, as a share
  /// of `recorded`: the graph takes this time of one side for time of the other, or for a lag.
  double excess() const;
  /// Without that side, delays appear that it had hidden: up to 6 % were seen.
  static constexpr double kMostExcess = 0.1;
  bool holds() const { return excess() <= kMostExcess; }
};

struct Validation {
  Nanoseconds measured{0};  ///< Step time.
  double replay_error = 0;
  std::size_t tasks = 0;
  Unexplained unexplained;
  int alike_steps = 0;
  std::optional<double> cross_step_error;  ///< Median over ordered pairs of alike steps; nothing
                                           ///< with fewer than three.
  std::optional<double> worst_cross_step_error;
  std::optional<double>
      same_as_first_error;     ///< Error of the guess "every step takes as long as the first".
  bool scale_holds = false;    ///< All durations and lags doubled: the time is doubled exactly.
  bool neutral_holds = false;  ///< A transform by factor 1 changes nothing.
  bool shrink_holds = false;   ///< Shrinking tasks, one at a time, never made the end later.
  /// Whether export and re-import gave the same step time; true without times to export.
  bool export_holds = false;
  OneSide without_device, without_host;
  Notes notes;
};
/// has_times: false for a snapshot, the times of which are made up.
Validation validate(const Inference& inference, bool has_times = true);
/// Dependencies and lags from steps of one recording, work from steps of another of the same job
/// (two repeats): only the errors are set, and the fields that describe `structure`. Throws Error
/// if no steps are alike.
Validation validate_against(const Inference& structure, const Inference& work);
nlohmann::json to_json(const Validation& validation);

}  // namespace foretrace

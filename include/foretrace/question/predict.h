#pragma once

// Runs the verbs in the order a question asks for: replay the baseline, transform, simulate. The
// one place where transforms are applied, and where a result is checked for "changed nothing" and
// "matched nothing".

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/prediction.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/question/training.h"
#include "foretrace/scenario.h"
#include "foretrace/timeline.h"

namespace foretrace {

class Job;

struct PredictOptions {
  bool explain = false;
  bool strict = false;  ///< Notes of severity warning become a TraceError.
  /// Write the predicted timeline there: a format of export.h by its ending, otherwise JSON.
  std::string perfetto_path = {};
  /// Called with the content of a page while the graphs of the answer exist; may be empty.
  std::function<void(const PredictionPage&)> take_page = {};
  bool page_is_whole = false;    ///< The page has its sensitivities, which take many replays.
  std::string ledger_path = {};  ///< The user's own ledger of errors, beside the built-in one.
  bool exact = false;  ///< Replays each rank by itself, even those that are provably alike.
  TrainingQuestion training = {};  ///< The whole training of which the predicted step is one.
};

/// The answer is about the slowest rank. Throws Error or TraceError.
Prediction predict(const Job& job, const Scenario& scenario, const PredictOptions& options = {});

/// One setting, and the values to try.
struct Vary {
  std::string setting;  ///< "recompute.share", "transforms[1].workers", "memory.limit".
  std::string values;   ///< "1,2,4", "0..16" (whole numbers), "0..1/20" (21 values), "8GB..40GB/8".
  std::string until;    ///< Assertion; ranges are searched for the last value that satisfies it.
};

/// The prediction for each value, in order; points are worked out on all cores. Throws Error if the
/// setting, a value or the assertion cannot be read, or if no value has an answer.
Curve vary(const Job& job, const Scenario& scenario, const Vary& question,
           const PredictOptions& options = {});

/// How well causes were found. `has_times`: false for a snapshot, which has no step time.
Validation validate(const Inference& inference, bool has_times = true);
/// Dependencies and lags from steps of one recording, work from steps of another of the same job
/// (two repeats): only the errors are set, and the fields that describe `structure`. Throws Error
/// if no steps are alike.
Validation validate_against(const Inference& structure, const Inference& work);

}  // namespace foretrace

#pragma once

// Closes the loop: predict, make the change, measure, and hear how far the prediction was off and
// what it got wrong.

#include <string>

#include "foretrace/answer/verification.h"
#include "foretrace/import.h"

namespace foretrace {

struct VerifyOptions {
  /// What the prediction started from; empty: the path that it names, from the working directory or
  /// else from the folder of the prediction.
  std::string trace = {};
  std::string ledger_path = {};  ///< The outcome is added there.
  ImportOptions reading = {};
};

/// `prediction_path` is what `predict --format json` wrote. Throws Error if it is not, TraceError
/// if the measured trace cannot be used. A missing or changed input of the prediction is a warning:
/// the step times are then compared, but not what they consist of.
Verification verify(const std::string& prediction_path, const std::string& measured_path,
                    const VerifyOptions& options = {});

}  // namespace foretrace

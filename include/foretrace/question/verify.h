#pragma once

// Closes the loop: predict, make the change, measure, and see how far the prediction was off and
// where.

#include <string>

#include "foretrace/answer/verification.h"
#include "foretrace/import.h"

namespace foretrace {

struct VerifyOptions {
  /// The trace that the prediction was made from; empty: the path named in it, relative to the
  /// working directory or else to the folder of the prediction.
  std::string trace = {};
  std::string ledger_path = {};  ///< The outcome is added there.
  ImportOptions reading = {};
};

/// `prediction_path` is the output of `predict --format json`. Throws Error if it is not,
/// TraceError if the measured trace cannot be used. A missing or changed input of the prediction is
/// a warning: then only the step times are compared, not their parts.
Verification verify(const std::string& prediction_path, const std::string& measured_path,
                    const VerifyOptions& options = {});

}  // namespace foretrace

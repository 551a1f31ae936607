#pragma once

// Prices fitted to the measured steps that a question names.

#include <set>

#include "ask/generate/measured_rows.h"
#include "foretrace/ask/generate.h"

namespace foretrace {

struct CalibratedSteps {
  StepCalibration calibration{};
  std::set<std::size_t> rows{};  ///< The numbers of those it was fitted to.
};

/// Uses `calibrate`, or the usual constants without one; says so in `assumptions`.
CalibratedSteps calibrated(const GenerateQuestion& question, std::vector<std::string>& assumptions);

}  // namespace foretrace

#pragma once

// Prices fitted to the measured steps that a question names.

#include <set>

#include "foretrace/question/generate.h"
#include "question/generate/measured_rows.h"

namespace foretrace {

struct CalibratedSteps {
  StepCalibration calibration{};
  std::set<std::size_t> rows{};  ///< Numbers of the rows that it was fitted to.
};

/// Fits to the table in `calibrate`. Without one, the constants are the usual ones, and
/// `assumptions` say so.
CalibratedSteps calibrate_steps(const GenerateQuestion& question,
                                std::vector<std::string>& assumptions);

}  // namespace foretrace

#pragma once

// Were causes found, or times copied? Take the dependencies and lags of one step and only the work
// of another, replay, and see whether the other step's time results. The start of a step is the
// first device work launched in it, so the work between two starts is that of the step after its
// first launch and that of the next step before its own:
//
//     work from   |      step B      | head of B+1
//     put into    |      step A      | head of A+1         expected: start of B -> start of B+1

#include <optional>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

struct CrossStep {
  int alike_steps = 0;
  std::vector<double> errors;  ///< One for each ordered pair of steps.
  std::optional<double> same_as_first;
};

/// Structure and work may be of the same recording, or of two of the same job.
CrossStep cross_step(const Inference& structure, const Inference& work);

}  // namespace foretrace

#pragma once

// Shows whether the causes of times were found, or the times merely copied: replays the
// dependencies and lags of one step with only the work of another, and compares the result with the
// other step's time. A step starts with the first device work launched in it, so the work between
// two starts is the work of the step after its first launch, and the work of the next step before
// its own:
//
//     work from   |      step B      | head of B+1
//     put into    |      step A      | head of A+1         expected: start of B -> start of B+1

#include <optional>
#include <vector>

#include "foretrace/infer.h"

namespace foretrace {

struct CrossStep {
  int alike_steps = 0;
  std::vector<double> errors;  ///< One for each ordered pair of alike steps.
  std::optional<double> same_as_first;
};

/// Structure and work may come from the same recording, or from two of the same job.
CrossStep cross_step(const Inference& structure, const Inference& work);

}  // namespace foretrace

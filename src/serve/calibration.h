#pragma once

// Corrects prices by measured deployments: the logarithm of measured / predicted, carried over from
// rows to deployments like them and to none that are far from all.
//
//     correction = sum(weight x residual) / (1 + sum(weight))
//
// A weight falls with each difference between two deployments: another model, machine, engine,
// precision or layout, another length or load. The more weight, the narrower the interval.

#include <string>
#include <vector>

#include "serve/measured.h"

namespace foretrace::serve {

/// Logarithms, for TTFT and for TPOT.
struct Correction {
  double first = 0, per_token = 0;
  double first_error = 0, per_token_error = 0;  ///< Half of the 80 % interval.
  double weight = 0;
};

class ServeCalibration {
 public:
  struct Row {
    MeasuredDeployment deployment;
    double first, per_token;  ///< ln(measured / predicted).
  };
  ServeCalibration() = default;
  explicit ServeCalibration(std::vector<Row> rows) : rows_(std::move(rows)) {}

  Correction of(const MeasuredDeployment& deployment) const;

 private:
  std::vector<Row> rows_;
};

/// Half of the 80 % interval of a price without measurements, as logarithms: from deployments on
/// devices that were left out (errors.def).
Correction prior_of(std::string_view scheduler);

}  // namespace foretrace::serve

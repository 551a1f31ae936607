#pragma once

// Corrects prices by measured deployments: the logarithm of measured / predicted, carried over from
// rows to deployments like them and to none that are far from all.
//
//     correction = sum(weight x residual) / (1 + sum(weight))
//
// A weight falls with each difference between two deployments: another model, machine, engine,
// precision or layout, another length or load. The more weight, the narrower the interval, unless
// residuals differ.

#include <string>
#include <vector>

#include "serve/model.h"

namespace foretrace::serve {

/// A row of a CSV: what was served, on what, and how fast it was.
struct MeasuredDeployment {
  std::string id{}, model, system, scheduler, version{}, weights, flags{};
  Placement placement{};
  std::int64_t input = 0, output = 0;
  std::int64_t concurrency = 0;  ///< All ranks of a copy together.
  double first_ms = 0, gap_ms = 0;
};

struct MeasuredDeployments {
  std::vector<MeasuredDeployment> rows;
  std::int64_t apart = 0;    ///< Rows with prompts apart, which are left out.
  std::int64_t unknown = 0;  ///< Rows without a known model, machine or layout, left out as well.
};

/// Columns: model, system, backend, version, mode, isl, osl, concurrency, weights, moe, tp, dp,
/// moe_ep, ttft_ms, tpot_ms, flags, id; others are ignored. Systems are names of machines, or
/// as in "h100_sxm". Throws Error with the line.
MeasuredDeployments read_measured(const std::string& path);

/// Logarithms, for the price of steps (`per_token`) and for TTFT beside that.
struct Correction {
  double first = 0, per_token = 0;
  double first_error = 0, per_token_error = 0;  ///< Half of the 80 % interval.
  double weight = 0;
  double nearest = 0;  ///< The largest weight of a row.
};

class ServeCalibration {
 public:
  struct Row {
    MeasuredDeployment deployment;
    double first, per_token;  ///< ln(measured / predicted); `first` with steps that fit TPOT.
  };
  ServeCalibration() = default;
  explicit ServeCalibration(std::vector<Row> rows) : rows_(std::move(rows)) {}

  bool is_empty() const { return rows_.empty(); }
  Correction of(const MeasuredDeployment& deployment) const;

 private:
  std::vector<Row> rows_;
};

/// Half of the 80 % interval of a price without measurements, as logarithms: from deployments on
/// devices that were left out (errors.def).
Correction prior_of(std::string_view scheduler);

}  // namespace foretrace::serve

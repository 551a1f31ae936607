#pragma once

// Prices that follow measured steps. Two parts:
//
//     constants   fitted by least squares of logarithms (Huber's loss beyond 0.1, Nelder and Mead's
//                 search), drawn to where they start as their spread says
//     residual    ln (measured / price), by a Gaussian process over the shape of a step: exactly
//                 kept at shapes that were measured, carried to shapes near them, 0 far from all
//
// The process also says how sure it is, which is where intervals come from: 80 % of what is left
// over should lie in them. A shape is covered where the process knows more than half of what it
// knows at a measured one.

#include <memory>
#include <string>
#include <vector>

#include "foretrace/price.h"

namespace foretrace {

struct MeasuredStep {
  std::string name;
  std::shared_ptr<const Workload> workload{};
  Layout layout{};
  Platform platform{};
  double us = 0;
  double release = 0;  ///< The age of the software, in months; 0 is unknown.
};

/// As a step lays a model out.
LayerSlice slice_of(const Layout& layout);
Recompute recompute_of(const Layout& layout);

/// Where a step lies among others: logarithms of sizes, in units over which prices change together.
std::vector<double> shape_of(const MeasuredStep& step);

/// Which of `shapes` to measure, so that as much as possible is known of all: each is the one that
/// leaves least uncertainty; a sixth lie beside others, which shows how much equal steps differ.
/// Times have no part in it.
std::vector<std::size_t> chosen_shapes(const std::vector<std::vector<double>>& shapes,
                                       std::size_t count);

struct CalibratedPrice {
  StepPrice price;  ///< From the constants alone.
  StepMemory memory{};
  double us = 0, lower_us = 0, upper_us = 0;
  bool is_covered = false;
};

class StepCalibration {
 public:
  /// Nothing was measured: the constants as they start, and an interval of what published steps
  /// were off.
  StepCalibration() = default;
  /// Throws Error where a step cannot be priced.
  explicit StepCalibration(const std::vector<MeasuredStep>& steps);

  CalibratedPrice price(const MeasuredStep& step, PipelineTime time = PipelineTime::replayed);
  StepMemory memory(const MeasuredStep& step) {
    return pricer_.memory(*step.workload, step.layout);
  }
  /// Prices the same; for another thread.
  StepCalibration clone() const;
  const Constants& fitted() const { return constants_; }
  std::size_t rows() const { return shapes_.size(); }

 private:
  void fit_constants(const std::vector<MeasuredStep>& steps);
  void fit_residuals(const std::vector<double>& residuals);

  StepPricer pricer_;
  Constants constants_;
  std::vector<std::vector<double>> shapes_, triangle_;
  std::vector<double> weights_;
  double signal_ = .15, noise_ = .03;  ///< Standard deviations of logarithms.
};

}  // namespace foretrace

#pragma once

// Calibrates prices with measured steps. There are two parts:
//
//     constants   fitted by least squares of logarithms (Huber's loss beyond 0.1, Nelder and Mead's
//                 search), with a pull towards their start as strong as their spread is small
//     residual    ln (measured / price), by a Gaussian process over the shape of a step: kept at
//                 measured shapes, carried over to shapes near them, 0 far from all
//
// The process also gives its uncertainty, from which the intervals come: they should contain 80 %
// of measured times. A shape is covered if the process has removed more than half of the variance
// there; elsewhere intervals are as wide as published sources are off when each is left out.

#include <memory>
#include <string>
#include <vector>

#include "price/price.h"

namespace foretrace {

struct MeasuredStep {
  std::string name;
  std::shared_ptr<const Workload> workload{};
  Layout layout{};
  Platform platform{};
  double us = 0;
  double release = 0;  ///< Age of the software in months; 0 is unknown.
};

/// Returns the part of each layer that a layout puts on one device.
LayerSlice slice_of(const Layout& layout);
Recompute recompute_of(const Layout& layout);

/// Bytes of a layer that are kept for the backward pass.
double kept_of(const LayerRow& row, const Layout& layout);

/// Returns the position of a step among others: logarithms of sizes, scaled to the distances over
/// which prices change together.
std::vector<double> shape_of(const MeasuredStep& step);

/// Chooses which of `shapes` to measure so that as much as possible is known of all of them. Each
/// choice leaves the least uncertainty; one sixth of the choices lie next to others, which shows
/// how much equal steps differ. Times are not used.
std::vector<std::size_t> chosen_shapes(const std::vector<std::vector<double>>& shapes,
                                       std::size_t count);

struct CalibratedPrice {
  StepPrice price;  ///< From the constants alone.
  StepMemory memory{};
  double us = 0, lower_us = 0, upper_us = 0;
  bool is_covered = false;
};

/// Model FLOP/s of a priced step, as a share of the peak for its precision.
double utilization_of(const CalibratedPrice& priced, const Layout& layout,
                      const Platform& platform);

class StepCalibration {
 public:
  /// A calibration without measurements: the constants at their start, and intervals as wide as the
  /// errors for published steps.
  StepCalibration() = default;
  /// Throws Error if a step cannot be priced.
  explicit StepCalibration(const std::vector<MeasuredStep>& steps);

  CalibratedPrice price(const MeasuredStep& step, PipelineTime time = PipelineTime::replayed);
  StepMemory memory(const MeasuredStep& step) {
    return pricer_.memory(*step.workload, step.layout);
  }
  Layout fitting(const MeasuredStep& step) {
    return pricer_.fitting(*step.workload, step.layout, step.platform);
  }
  /// Returns a copy with the same prices, for use in another thread.
  StepCalibration clone() const;
  const Constants& fitted() const { return constants_; }

 private:
  void fit_constants(const std::vector<MeasuredStep>& steps);
  void fit_residuals(const std::vector<double>& residuals);

  StepPricer pricer_;
  Constants constants_;
  std::vector<std::vector<double>> shapes_, triangle_;
  std::vector<double> weights_;
  /// Standard deviations of logarithms: of residuals between shapes, and of repeated steps.
  double signal_ = 0, noise_ = .03;
};

}  // namespace foretrace

#include "price/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/numbers/simplex.h"
#include "foretrace/error.h"
#include "price/process.h"

namespace foretrace {
namespace {

constexpr double kHuber = .1;
/// Standard deviation of a residual; it weighs a constant's distance from its start.
constexpr double kResidual = .1;
constexpr double kHalfWidth = 1.2816;  ///< Standard deviations to either side that contain 80 %.
/// A large matrix product cannot be faster than the device.
constexpr double kGreatestShare = 1;
/// Standard deviations of logarithms that residuals and repeated steps usually have, and the number
/// of residuals that this prior knowledge is worth.
constexpr double kUsualSignal = .15, kUsualNoise = .05, kPull = 2;
/// The least spread at shapes that are covered: few rows make residuals look too small, because the
/// constants were fitted to the same rows.
constexpr double kMinSignal = .14;
/// Standard deviations of logarithms by which sources miss the price without their rows, on the
/// side of faster and of slower steps: scripts/fit_intervals.py. Most real steps do something that
/// is not priced, so that they are rather slower.
constexpr double kFaster = .1, kSlower = .22;
constexpr SimplexSearch kSearch{.edge = .25, .steps = 1200};
/// Standard deviations of logarithms: of a host's time for a launch (constants.def), of attention
/// between kernels, and of layers with experts between programs and their releases.
constexpr double kLaunchSpread = .5, kAttentionSpread = .3, kExpertSpread = .25;
/// A shape counts as covered if its remaining variance falls below this part of the whole.
constexpr double kCovered = .5;

double huber(double error) {
  const double size = std::abs(error);
  return size < kHuber ? size * size : 2 * kHuber * size - kHuber * kHuber;
}

Constants constants_at(const std::vector<double>& logs) {
  Constants moved;
  for (std::size_t i = 0; i < logs.size(); ++i)
    moved.*constants()[i].value = constants()[i].start * std::exp(logs[i]);
  moved.gemm = std::min(moved.gemm, kGreatestShare);
  return moved;
}

/// Returns minus twice the log-likelihood of each residual given all others (leave-one-out), with a
/// weak pull towards the usual deviations.
double leave_one_out_loss(const std::vector<std::vector<double>>& shapes,
                          const std::vector<double>& residuals, double signal, double noise) {
  const auto factor = cholesky_factor(shapes, signal, noise);
  const auto weights = solved_backward(factor, solved_forward(factor, residuals));
  double sum = 0;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<double> unit(shapes.size(), 0);
    unit[i] = 1;
    double inverse = 0;
    for (const double value : solved_forward(factor, unit)) inverse += value * value;
    const double error = weights[i] / inverse;
    sum += error * error * inverse - std::log(inverse);
  }
  const auto pull = [](double value, double usual) {
    const double away = std::log(value / usual);
    return 2 * away * away;
  };
  return sum + kPull * (pull(signal, kUsualSignal) + pull(noise, kUsualNoise));
}

}  // namespace

StepCalibration::StepCalibration(const std::vector<MeasuredStep>& steps) {
  for (const MeasuredStep& step : steps) shapes_.push_back(shape_of(step));
  if (steps.empty()) return;
  fit_constants(steps);
  std::vector<double> residuals;
  for (const MeasuredStep& step : steps) {
    const StepPrice price = pricer_.price(*step.workload, step.layout, step.platform, constants_);
    residuals.push_back(std::log(step.us / price.step));
  }
  fit_residuals(residuals);
}

void StepCalibration::fit_constants(const std::vector<MeasuredStep>& steps) {
  const auto cost = [&](const std::vector<double>& logs) {
    const Constants tried = constants_at(logs);
    double sum = 0;
    for (const MeasuredStep& step : steps) {
      const double us = pricer_.price(*step.workload, step.layout, step.platform, tried).step;
      sum += huber(std::log(us / step.us)) / (kResidual * kResidual);
    }
    for (std::size_t i = 0; i < logs.size(); ++i) {
      const double away = logs[i] / constants()[i].spread;
      sum += away * away;
    }
    return sum;
  };
  const std::vector<double> start(constants().size(), 0);
  constants_ = constants_at(minimize(cost, minimize(cost, start, kSearch), kSearch));
}

void StepCalibration::fit_residuals(const std::vector<double>& residuals) {
  double least = 1e300;
  for (const double signal : {.04, .07, .1, .15, .22, .32}) {
    for (const double noise : {.01, .02, .03, .05, .08, .15, .3, .6}) {
      const double found = leave_one_out_loss(shapes_, residuals, signal, noise);
      if (found < least) least = found, signal_ = signal, noise_ = noise;
    }
  }
  triangle_ = cholesky_factor(shapes_, signal_, noise_);
  weights_ = solved_backward(triangle_, solved_forward(triangle_, residuals));
}

StepCalibration StepCalibration::clone() const {
  StepCalibration clone;
  clone.constants_ = constants_;
  clone.shapes_ = shapes_, clone.triangle_ = triangle_, clone.weights_ = weights_;
  clone.signal_ = signal_, clone.noise_ = noise_;
  return clone;
}

double utilization_of(const CalibratedPrice& priced, const Layout& layout,
                      const Platform& platform) {
  const double seconds = priced.us * 1e-6;
  return priced.price.operations / seconds / static_cast<double>(layout.devices()) /
         sheet_peak(platform.device, layout.precision);
}

CalibratedPrice StepCalibration::price(const MeasuredStep& step, PipelineTime time) {
  CalibratedPrice answer{
      .price = pricer_.price(*step.workload, step.layout, step.platform, constants_, time)};
  answer.memory = memory(step);
  const std::vector<double> shape = shape_of(step);
  double residual = 0;
  std::vector<double> covariances;
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    covariances.push_back(signal_ * signal_ * similarity(shape, shapes_[i]));
    residual += covariances[i] * weights_[i];
  }
  double unknown = 1;  // Share of the variance.
  for (const double part : solved_forward(triangle_, covariances))
    unknown -= part * part / (signal_ * signal_);
  unknown = std::max(0., unknown);
  answer.is_covered = unknown < kCovered;
  // How much hosts differ is hardly known where none was measured.
  const double late = answer.price.late / answer.price.step;
  double known = noise_ * noise_ + late * late;
  // Nor is how fast a host launches, and which kernels a program has.
  if (shapes_.empty()) {
    for (const double us :
         {kLaunchSpread * answer.price.host, kAttentionSpread * answer.price.attention,
          kExpertSpread * answer.price.experts})
      known += us * us / (answer.price.step * answer.price.step);
  }
  const auto factor = [&](double side) {
    const double least = std::max(signal_, answer.is_covered ? kMinSignal : side);
    return std::exp(kHalfWidth * std::sqrt(unknown * least * least + known));
  };
  answer.us = answer.price.step * std::exp(residual);
  answer.lower_us = answer.us / factor(kFaster);
  answer.upper_us = answer.us * factor(kSlower);
  return answer;
}

}  // namespace foretrace

#include "serve/calibration.h"

#include <cmath>

namespace foretrace::serve {
namespace {

/// Weights of rows that differ in one respect. Chosen.
constexpr double kOtherModel = .15, kOtherMachine = .4, kOtherEngine = .1, kOtherWeights = .3;
constexpr double kOtherVersion = .6;
/// Differences of logarithms after which a weight is e^-1/2: of lengths and load, of ranks.
constexpr double kLengths = 1.5, kRanks = 1;
/// Share of an error that measurements of the same deployment leave: two of them differ. Chosen so
/// that intervals hold four of five deployments with a fifth of the others given.
constexpr double kRepeats = .6;

double likeness(const MeasuredDeployment& a, const MeasuredDeployment& b) {
  double weight = 1;
  if (a.model != b.model) weight *= kOtherModel;
  if (a.system != b.system) weight *= kOtherMachine;
  if (a.scheduler != b.scheduler) weight *= kOtherEngine;
  if (a.weights != b.weights) weight *= kOtherWeights;
  if (!a.version.empty() && !b.version.empty() && a.version != b.version) weight *= kOtherVersion;
  double squares = 0;
  const auto add = [&](std::int64_t x, std::int64_t y, double scale) {
    const double d = std::log(static_cast<double>(x) / static_cast<double>(y)) / scale;
    squares += d * d;
  };
  add(a.input, b.input, kLengths), add(a.output, b.output, kLengths);
  add(a.concurrency, b.concurrency, kLengths);
  add(a.placement.tensor, b.placement.tensor, kRanks);
  add(a.placement.data, b.placement.data, kRanks);
  add(a.placement.expert, b.placement.expert, kRanks);
  return weight * std::exp(-squares / 2);
}

}  // namespace

Correction prior_of(std::string_view scheduler) {
#define SERVE_ERROR(name, first, per_token) \
  if (scheduler == #name) return {.first_error = first, .per_token_error = per_token};
#include "serve/errors.def"
#undef SERVE_ERROR
  return {};
}

Correction ServeCalibration::of(const MeasuredDeployment& deployment) const {
  Correction correction = prior_of(deployment.scheduler);
  double first = 0, per_token = 0;
  for (const Row& row : rows_) {
    const double weight = likeness(row.deployment, deployment);
    correction.weight += weight;
    first += weight * row.first, per_token += weight * row.per_token;
  }
  correction.first = first / (1 + correction.weight);
  correction.per_token = per_token / (1 + correction.weight);
  const double left = kRepeats + (1 - kRepeats) / std::sqrt(1 + correction.weight);
  correction.first_error *= left, correction.per_token_error *= left;
  return correction;
}

}  // namespace foretrace::serve

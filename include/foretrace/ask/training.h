#pragma once

// The sum of many steps: a part of questions whose answer is the time of one.

#include <optional>
#include <string>

#include "foretrace/answer/training.h"
#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// Settings of a whole training run.
struct TrainingQuestion final : Described {
  void describe(Fields& fields) override;
  /// Whether a number of steps is given. Throws Error if one is needed and none is given, or if
  /// both forms are.
  bool is_asked() const;
  /// Throws Error if prices are given for nothing else than a run, and none is asked for.
  void check_use() const;

  std::string tokens{}, steps{};       ///< "15T", "100k"; one of them.
  std::string prices{};                ///< JSON: {"prices": {"h100": "2.5 USD/h"}}.
  std::string power{};                 ///< JSON: {"power": {"h100": "700 W"}}.
  std::optional<double> mtbf_hours{};  ///< Mean time between failures of one GPU.
  Nanoseconds checkpoint_time{60'000'000'000};
  Nanoseconds restart_time{600'000'000'000};
};

/// The step that is repeated.
struct RepeatedStep {
  Nanoseconds time{0}, lower{0}, upper{0};
  std::int64_t gpus = 1;
  std::string device{};            ///< Its name, to find its price and its power by.
  std::optional<double> tokens{};  ///< Of a step; empty if unknown.
};

/// Returns nullopt if the question does not ask. Throws Error, naming the option, if it cannot be
/// answered.
std::optional<TrainingRun> run_of(const TrainingQuestion& question, const RepeatedStep& step);

/// Reads "15T", "300B", "1.5M", "100k" or a plain number, at most 10^18. Throws Error, naming the
/// option.
double large_count(const std::string& option, const std::string& text);

struct GpuPrice {
  double per_hour = 0;
  std::string currency;
};
/// The price of the longest name that the device's begins with: "h100" for h100-sxm5-80gb.
GpuPrice price_of(const std::string& path, const std::string& device);

/// Share of the time that trains, if a job fails every `between` seconds on average, a checkpoint
/// takes `checkpoint` seconds, and coming back after a failure `restart`. Checkpoints are `every`
/// seconds of training apart. Daly, "A higher order estimate of the optimum checkpoint interval for
/// restart dumps" (2006): its complete model and its optimum, recalled.
TrainingRun::Failures goodput_with(double between, double checkpoint, double restart);

}  // namespace foretrace

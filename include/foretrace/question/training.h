#pragma once

// The sum of many steps: a part of questions whose answer is the time of one.

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "foretrace/answer/training.h"
#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// Settings of a whole training run.
struct TrainingQuestion final : Described {
  void describe(Fields& fields) override;
  /// Whether a number of steps is given, or what a thousand of them take is asked for. Throws Error
  /// if a number is needed and none is given, or if both forms are.
  bool is_asked() const;

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

struct GpuPrice {
  double per_hour = 0;  ///< With its share of the network.
  std::string currency{};
  double network = 0;  ///< Of that share, for an hour.
};

/// A file that says something of GPUs, such as {"prices": {"h100": "2.5 USD/h"}}. It is read once.
/// "network" beside "prices" has each GPU's share of a network that is paid for apart.
/// The text of a device is that of the longest name with which the device's name begins: "h100" for
/// h100-sxm5-80gb.
class GpuFigures {
 public:
  /// `key` is "prices" or "power". An empty path is no file. Throws Error if the file cannot be
  /// read.
  GpuFigures(std::string path, const char* key);
  bool is_given() const { return !path_.empty(); }
  /// Both throw Error, with the path, if there is no such text. REQUIRES: is_given().
  GpuPrice price_of(const std::string& device) const;
  double watts_of(const std::string& device) const;

 private:
  template <class Read>
  auto of_device(const char* key, const std::string& device, const std::string& example,
                 const Read& read) const;

  std::string path_;
  const char* key_;
  std::shared_ptr<const nlohmann::json> file_;
};

/// Adds up runs of one question. The files of prices and power are read once.
class TrainingRuns {
 public:
  /// Throws Error if a file cannot be read. REQUIRES: the question outlives this.
  explicit TrainingRuns(const TrainingQuestion& question);
  /// Throws Error, naming the option, if it cannot be answered. REQUIRES: the question asks.
  TrainingRun of(const RepeatedStep& step) const;

 private:
  const TrainingQuestion& question_;
  GpuFigures prices_, power_;
};

/// Returns nullopt if the question does not ask. Throws Error as TrainingRuns does.
std::optional<TrainingRun> run_of(const TrainingQuestion& question, const RepeatedStep& step);

/// Reads "15T", "300B", "1.5M", "100k" or a plain number, at most 10^18. Throws Error, naming the
/// option.
double large_count(const std::string& option, const std::string& text);

/// The price of one device.
GpuPrice price_of(const std::string& path, const std::string& device);

/// Share of the time that trains, if a job fails every `between` seconds on average, a checkpoint
/// takes `checkpoint` seconds, and coming back after a failure `restart`. Checkpoints are `every`
/// seconds of training apart. Daly, "A higher order estimate of the optimum checkpoint interval for
/// restart dumps" (2006): its complete model and its optimum, recalled.
TrainingRun::Failures goodput_with(double between, double checkpoint, double restart);

}  // namespace foretrace

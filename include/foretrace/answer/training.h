#pragma once

// A whole training run of many steps: how long it takes, what it costs, and how much of its time
// failures take.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace foretrace {

/// A number of any unit with the ends of its 80 % interval.
struct RangedNumber {
  double point = 0, lower = 0, upper = 0;
};

struct TrainingRun {
  double steps = 0;
  std::optional<double> tokens{};  ///< Empty if only steps are known.
  std::int64_t gpus = 1;
  RangedNumber seconds{};                ///< With checkpoints and failures, if those are asked for.
  std::optional<RangedNumber> price{};   ///< In `currency`.
  std::optional<RangedNumber> energy{};  ///< In watt-hours.
  double price_of_hour = 0;              ///< Of a GPU, with its share of the network.
  double network_of_hour = 0;            ///< Of that share.
  double watts = 0;                      ///< Of a GPU.
  std::string currency{};

  struct Failures {
    double goodput = 1;           ///< Share of the time that trains.
    double between = 0;           ///< Mean seconds between failures of the job.
    double checkpoint_every = 0;  ///< Seconds of training between two checkpoints.
  };
  std::optional<Failures> failures{};
  std::vector<std::string> assumptions{};
};

/// "12.5 days"
std::string duration_text(double seconds);
/// "1.7 kWh"
std::string energy_text(double watt_hours);
/// "1.24M USD". REQUIRES: the run has a price.
std::string price_text(const TrainingRun& run, double price);

/// A word and what it says of the run, in the order of importance.
std::vector<std::pair<std::string, std::string>> sentences_of(const TrainingRun& run);
/// Null for nullopt.
nlohmann::json training_json(const std::optional<TrainingRun>& run);

}  // namespace foretrace

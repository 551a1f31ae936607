// A whole training run, in sentences and JSON.

#include <cmath>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "base/wording.h"
#include "foretrace/answer/training.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

constexpr double kDay = 86400;

/// With three digits and a letter: 4.19M.
std::string short_count(double count) {
  constexpr std::pair<double, const char*> kLetters[] = {
      {1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, letter] : kLetters) {
    const double scaled = count / size;
    if (scaled >= 1) return to_fixed(scaled, scaled < 10 ? 2 : scaled < 100 ? 1 : 0) + letter;
  }
  return to_fixed(count, count < 10 ? 2 : count < 100 ? 1 : 0);
}

template <class Text>
std::string ranged(const RangedNumber& number, const Text& text) {
  return fmt::format("{}, between {} and {} (80 %)", text(number.point), text(number.lower),
                     text(number.upper));
}

nlohmann::json ranged_json(const std::optional<RangedNumber>& number) {
  if (!number) return {};
  return {{"point", number->point}, {"lower", number->lower}, {"upper", number->upper}};
}

}  // namespace

std::string duration_text(double seconds) {
  if (seconds >= 2 * kDay) return to_fixed(seconds / kDay, seconds < 100 * kDay ? 1 : 0) + " days";
  return to_text(Nanoseconds(std::llround(seconds * 1e9)));
}

std::string energy_text(double watt_hours) {
  if (watt_hours >= 1e9) return to_fixed(watt_hours / 1e9, 2) + " GWh";
  if (watt_hours >= 1e6) return to_fixed(watt_hours / 1e6, 1) + " MWh";
  return watt_hours >= 1e3 ? to_fixed(watt_hours / 1e3, 1) + " kWh"
                           : to_fixed(watt_hours, 1) + " Wh";
}

std::string price_text(const TrainingRun& run, double price) {
  return fmt::format("{} {}", short_count(price), run.currency);
}

std::vector<std::pair<std::string, std::string>> sentences_of(const TrainingRun& run) {
  std::vector<std::pair<std::string, std::string>> said;
  said.emplace_back(
      "Training",
      fmt::format("{} on {}: {} steps{}", ranged(run.seconds, duration_text),
                  counted(run.gpus, "GPU"), short_count(run.steps),
                  run.tokens ? fmt::format(", {} tokens", short_count(*run.tokens)) : ""));
  if (run.price)
    said.emplace_back(
        "Price",
        ranged(*run.price, [&](double price) { return price_text(run, price); }) +
            fmt::format(", at {} {} for a GPU and hour", to_text(run.price_of_hour), run.currency) +
            (run.network_of_hour > 0
                 ? fmt::format(", {} of it for the network",
                               to_share(run.network_of_hour / run.price_of_hour, 0))
                 : ""));
  if (run.failures)
    said.emplace_back(
        "Failures",
        fmt::format("the job fails every {}; with a checkpoint every {}, {} of the time trains",
                    duration_text(run.failures->between),
                    duration_text(run.failures->checkpoint_every),
                    to_share(run.failures->goodput)));
  if (run.energy)
    said.emplace_back("Energy", ranged(*run.energy, energy_text) +
                                    fmt::format(", at {} W for a GPU", to_text(run.watts)));
  return said;
}

nlohmann::json training_json(const std::optional<TrainingRun>& run) {
  if (!run) return {};
  nlohmann::json failures;
  if (run->failures)
    failures = {{"goodput", run->failures->goodput},
                {"between_s", run->failures->between},
                {"checkpoint_every_s", run->failures->checkpoint_every}};
  return {{"steps", run->steps},
          {"tokens", run->tokens},
          {"gpus", run->gpus},
          {"time_s", ranged_json(run->seconds)},
          {"price", ranged_json(run->price)},
          {"network_share", run->price ? nlohmann::json(run->network_of_hour / run->price_of_hour)
                                       : nlohmann::json()},
          {"currency", unless_default(run->currency)},
          {"energy_wh", ranged_json(run->energy)},
          {"failures", failures},
          {"assumptions", run->assumptions}};
}

}  // namespace foretrace

#include "scenario/plan.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/json_text.h"
#include "base/random_generator.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "scenario/scenario_file.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMaxPoints = 10'000'000;
constexpr std::uint64_t kMaxCombinations = 10'000;
constexpr std::uint64_t kMaxListed = 100'000;
constexpr std::uint32_t kPrimes[] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29, 31,
                                     37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79};

constexpr std::string_view kMethods[] = {"grid", "zip", "random", "halton"};

/// Returns a random number for a seed, independent of earlier ones.
std::uint64_t mixed_bits(std::uint64_t seed) { return RandomGenerator(seed).next(); }

double random_unit(std::uint64_t seed, std::uint64_t sample, std::size_t dimension) {
  return RandomGenerator(mixed_bits(mixed_bits(seed) + sample) + dimension).uniform();
}

/// Returns an element of the Halton sequence: the digits of the sample's number in a prime base,
/// mirrored at the radix point (Halton, 1960), rotated by the seed (Cranley and Patterson, 1976).
double halton_unit(std::uint64_t seed, std::uint64_t sample, std::size_t dimension) {
  const std::uint32_t base = kPrimes[dimension];
  double value = seed == 0 ? 0 : RandomGenerator(mixed_bits(seed) + dimension).uniform();
  double weight = 1.0 / base;
  for (std::uint64_t rest = sample + 1; rest > 0; rest /= base, weight /= base)
    value += weight * static_cast<double>(rest % base);
  value = value >= 1 ? value - 1 : value;
  return std::min(value, 1 - 0x1p-53);
}

std::string listed_names(const Json& object) {
  std::string all;
  for (const auto& [name, values] : object.items()) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::uint64_t read_count(const Json& sweep, const char* key, std::uint64_t least,
                         std::uint64_t otherwise) {
  const auto found = sweep.find(key);
  if (found == sweep.end()) return otherwise;
  const bool fits = found->is_number_unsigned() ? found->get<std::uint64_t>() >= least
                                                : found->is_number_integer() && *found >= least;
  if (!fits)
    throw Error(fmt::format("{}: must be a whole number of at least {}, got {}", key, least,
                            json_line(*found)));
  return found->get<std::uint64_t>();
}

Json without_keys(Json object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) object.erase(key);
  return object;
}

/// Converts an alternative to a part of a scenario: "A100" on the axis of machines becomes
/// {"machine": "A100"}.
Json alternative_part(const std::string& axis, const Json& alternative) {
  if (alternative.is_string() && (axis == "machine" || axis == "trace"))
    return {{axis, alternative}};
  if (!alternative.is_object())
    throw Error(
        "must be an object such as {\"name\": \"amp\", \"transforms\": [{\"use\": \"amp\"}]}" +
        std::string(axis == "machine" || axis == "trace" ? ", or a string" : ""));
  constexpr std::string_view kParts[] = {"$comment", "assert", "machine",   "memory",
                                         "name",     "trace",  "transforms"};
  for (const auto& [key, value] : alternative.items()) {
    if (std::find(std::begin(kParts), std::end(kParts), key) != std::end(kParts)) continue;
    throw Error(
        fmt::format("there is no key \"{}\" in an alternative; the keys are assert, machine, "
                    "memory, name, trace, transforms{}",
                    key, did_you_mean(key, kParts)));
  }
  return without_keys(alternative, {"name", "$comment"});
}

std::string alternative_name(const Json& alternative, std::size_t number) {
  if (alternative.is_string()) return alternative.get<std::string>();
  const auto name = alternative.find("name");
  if (name == alternative.end()) return std::to_string(number);
  if (!name->is_string() || name->get_ref<const std::string&>().empty())
    throw Error("name: must be a string");
  return name->get<std::string>();
}

struct Alternative {
  std::string name;
  Json part;
};

std::vector<Alternative> read_alternatives(const std::string& axis, const Json& listed) {
  if (!listed.is_array() || listed.empty()) throw Error("must be a list of alternatives");
  std::vector<Alternative> all;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    within(fmt::format("[{}]", i), [&] {
      const Json part = alternative_part(axis, listed[i]);
      const Scenario scenario = parse_scenario(part);
      if (!scenario.machine.empty() && !is_path(scenario.machine))
        within("machine", [&] { find_device(scenario.machine); });
      Json written = without_keys(write_scenario(scenario), {"version"});
      if (!part.contains("transforms")) written.erase("transforms");
      if (part.contains("memory")) written["memory"] = part["memory"];
      all.push_back({alternative_name(listed[i], i), std::move(written)});
      for (std::size_t before = 0; before < i; ++before) {
        if (all[before].name == all[i].name)
          throw Error(
              fmt::format("name: must be unique among the alternatives, got \"{}\"", all[i].name));
      }
    });
  }
  return all;
}

}  // namespace

bool asks_many(const Json& scenario) {
  const auto is_given = [&](const char* key) {
    const auto found = scenario.find(key);
    return found != scenario.end() && !(found->is_object() && found->empty());
  };
  return is_given("sweep") || is_given("matrix");
}

SweepPlan::SweepPlan(const Json& scenario, const std::string& sweep_folder) {
  if (!scenario.is_object()) throw Error("must be an object with the settings of a scenario");
  if (const auto sweep = scenario.find("sweep"); sweep != scenario.end())
    within("sweep", [&] { read_settings(*sweep); });
  base_ = write_scenario(parse_scenario(without_keys(scenario, {"sweep", "matrix"})));
  within("matrix", [&] { combine(scenario.value("matrix", Json(Json::object()))); });
  for (const auto& [name, values] : swept_.items()) {
    if (std::find(settings_.begin(), settings_.end(), name) != settings_.end())
      throw Error(fmt::format("sweep: \"{}\" is an axis of the matrix already", name));
    settings_.push_back(name);
  }
  within("sweep", [&] { add_axes(sweep_folder); });
}

SweepPlan::SweepPlan(Json scenario, SweepAxis axis) : settings_{axis.name()}, size_(axis.count()) {
  combinations_.push_back(
      {.names = {}, .scenario = std::move(scenario), .axes = {}, .count = size_});
  combinations_.front().axes.push_back(std::move(axis));
}

void SweepPlan::read_settings(const Json& sweep) {
  if (!sweep.is_object())
    throw Error("must be an object such as {\"transforms[0].buffers\": [1, 2, 4]}");
  constexpr std::string_view kKeys[] = {"$comment", "method", "samples",
                                        "scale",    "seed",   "settings"};
  const bool is_long = sweep.contains("settings") || sweep.contains("method");
  if (!is_long) {
    swept_ = without_keys(sweep, {"$comment"});
    return;
  }
  for (const auto& [key, value] : sweep.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
    throw Error(
        fmt::format("there is no \"{}\" next to method, samples, scale, seed and settings; "
                    "settings to try go into \"settings\"{}",
                    key, did_you_mean(key, kKeys)));
  }
  swept_ = sweep.value("settings", Json());
  if (!swept_.is_object() || swept_.empty())
    throw Error("settings: must be an object such as {\"loader.workers\": \"0..16\"}");
  swept_.erase("$comment");
  read_method(sweep);
}

void SweepPlan::read_method(const Json& sweep) {
  const Json method = sweep.value("method", Json("grid"));
  const std::string name = method.is_string() ? method.get<std::string>() : "";
  const auto* const known = std::find(std::begin(kMethods), std::end(kMethods), name);
  if (known == std::end(kMethods)) {
    throw Error(fmt::format("method: must be one of grid, zip, random, halton, got {}{}",
                            json_line(method), name.empty() ? "" : did_you_mean(name, kMethods)));
  }
  method_ = static_cast<SweepMethod>(known - std::begin(kMethods));
  const bool draws = method_ == SweepMethod::random || method_ == SweepMethod::halton;
  for (const char* key : {"samples", "seed"}) {
    if (!draws && sweep.contains(key))
      throw Error(std::string(key) + ": must only be given for the methods random and halton");
  }
  if (draws && !sweep.contains("samples"))
    throw Error("samples: must be given for this method, such as 100");
  samples_ = read_count(sweep, "samples", 1, 0);
  seed_ = read_count(sweep, "seed", 0, 0);
  const Json scale = sweep.value("scale", Json("linear"));
  if (scale != "linear" && scale != "log")
    throw Error("scale: must be \"linear\" or \"log\", got " + json_line(scale));
  log_ = scale == "log";
  if (method_ == SweepMethod::halton && swept_.size() > std::size(kPrimes))
    throw Error(
        fmt::format("settings: must be at most {} for the method halton", std::size(kPrimes)));
}

void SweepPlan::combine(const Json& matrix) {
  if (!matrix.is_object())
    throw Error("must be an object such as {\"machine\": [\"V100\", \"A100\"]}");
  combinations_.push_back({.names = {}, .scenario = base_, .axes = {}});
  for (const auto& [axis, listed] : matrix.items()) {
    if (axis == "$comment") continue;
    settings_.push_back(axis);
    const std::vector<Alternative> alternatives =
        within(axis, [&, &name = axis, &all = listed] { return read_alternatives(name, all); });
    if (combinations_.size() * alternatives.size() > kMaxCombinations)
      throw Error(fmt::format("must have at most {} combinations", kMaxCombinations));
    std::vector<SweepCombination> wider;
    for (const SweepCombination& one : combinations_) {
      for (const Alternative& alternative : alternatives) {
        wider.push_back(
            {.names = one.names, .scenario = extended(one.scenario, alternative.part), .axes = {}});
        wider.back().names.push_back(alternative.name);
      }
    }
    combinations_ = std::move(wider);
  }
}

void SweepPlan::add_axes(const std::string& folder) {
  std::uint64_t listed = 0;
  for (SweepCombination& combination : combinations_) {
    std::string names;
    for (const std::string& name : combination.names) names += (names.empty() ? "" : ", ") + name;
    const auto add = [&] {
      for (const auto& [name, values] : swept_.items()) {
        if (name != "machine" && name != "trace") SettingPath(name, combination.scenario);
        within(name, [&, &setting = name, &all = values] {
          combination.axes.emplace_back(setting, all, log_, combination.scenario, folder);
          // Each combination reads the values again, because units and limits are those of its own
          // transforms.
          listed += combination.axes.back().count();
          if (listed > kMaxListed)
            throw Error(fmt::format("must be at most {} values over all combinations of the matrix",
                                    kMaxListed));
        });
      }
      combination.count = points_of(combination);
    };
    if (names.empty()) {
      add();
    } else {
      within(names, add);
    }
    combination.first = size_;
    size_ += combination.count;
    if (size_ > kMaxPoints) throw Error(fmt::format("must have at most {} questions", kMaxPoints));
  }
}

std::uint64_t SweepPlan::points_of(const SweepCombination& combination) const {
  std::uint64_t count = method_ == SweepMethod::grid || swept_.empty() ? 1 : samples_;
  if (method_ == SweepMethod::grid) {
    for (const SweepAxis& axis : combination.axes)
      count = std::min(count * axis.count(), kMaxPoints + 1);
  } else if (method_ == SweepMethod::zip) {
    count = combination.axes.front().count();
    for (const SweepAxis& axis : combination.axes) {
      if (axis.count() == count) continue;
      throw Error(fmt::format(
          "settings: with the method zip, all settings must have the same number of values, but {} "
          "has {} and {} has {}; the settings are {}",
          combination.axes.front().name(), count, axis.name(), axis.count(), listed_names(swept_)));
    }
  }
  return count;
}

std::size_t SweepPlan::combination_of(std::uint64_t number) const {
  const auto behind = std::upper_bound(
      combinations_.begin(), combinations_.end(), number,
      [](std::uint64_t n, const SweepCombination& combination) { return n < combination.first; });
  return static_cast<std::size_t>(behind - combinations_.begin() - 1);
}

std::vector<SweepValue> SweepPlan::values(std::uint64_t number) const {
  const SweepCombination& combination = combinations_[combination_of(number)];
  const std::vector<SweepAxis>& axes = combination.axes;
  std::uint64_t rest = number - combination.first;
  std::vector<SweepValue> found(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    switch (method_) {
      case SweepMethod::grid:
        found[i] = axes[i].at(static_cast<std::size_t>(rest % axes[i].count()));
        rest /= axes[i].count();
        break;
      case SweepMethod::zip:
        found[i] = axes[i].at(static_cast<std::size_t>(rest));
        break;
      case SweepMethod::random:
        found[i] = axes[i].sample(random_unit(seed_, rest, i), combination.scenario);
        break;
      case SweepMethod::halton:
        found[i] = axes[i].sample(halton_unit(seed_, rest, i), combination.scenario);
        break;
    }
  }
  return found;
}

Json SweepPlan::scenario(std::uint64_t number, const std::vector<SweepValue>& values) const {
  const SweepCombination& combination = combinations_[combination_of(number)];
  Json scenario = combination.scenario;
  for (std::size_t i = 0; i < values.size(); ++i) combination.axes[i].apply(values[i], scenario);
  return scenario;
}

}  // namespace foretrace

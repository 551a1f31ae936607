#include "foretrace/question/training.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/files/json_file.h"
#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kHour = 3600;
constexpr double kMaxCounted = 1e18;
constexpr double kPricedSteps = 1000;  ///< Whose price and energy are given if no number is.
/// A job that trains less of its time does not get on.
constexpr double kMinGoodput = .01;

double in_seconds_of(Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

/// A number and the unit behind it: "2.5 USD/h", "15T".
struct Quantity {
  double number = 0;
  std::string_view unit;
};

std::optional<Quantity> quantity_of(std::string_view text) {
  Quantity found;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, found.number);
  if (error != std::errc() || !(found.number > 0) || !std::isfinite(found.number)) return {};
  found.unit = {rest, static_cast<std::size_t>(end - rest)};
  while (found.unit.starts_with(' ')) found.unit.remove_prefix(1);
  return found;
}

/// The longest name in `all`, the object `key`, with which the device's begins. Throws Error.
std::string key_for(const nlohmann::json& all, const char* key, const std::string& device) {
  if (device.empty())
    throw Error(fmt::format(
        "{}: the device is unknown, as the trace does not name it; name it with --machine", key));
  std::vector<std::string> names;
  std::string longest;
  for (const auto& [name, value] : all.items()) {
    names.push_back(name);
    if (letters_and_digits(device).starts_with(letters_and_digits(name)) &&
        name.size() > longest.size())
      longest = name;
  }
  if (longest.empty())
    throw Error(fmt::format("{}: must have {} or a beginning of that name, got {}", key, device,
                            names.empty() ? "none" : joined(names)));
  return longest;
}

double read_watts(const std::string& text) {
  const std::optional<Quantity> found = quantity_of(text);
  if (found && found->unit == "W") return found->number;
  if (found && found->unit == "kW") return found->number * 1000;
  throw Error(fmt::format(
      "must be the power of a GPU while it trains, such as \"700 W\", got \"{}\"", text));
}

GpuPrice read_price(const std::string& text) {
  const std::optional<Quantity> found = quantity_of(text);
  if (!found || found->unit.size() < 3 || !found->unit.ends_with("/h"))
    throw Error(fmt::format(
        "must be the price of a GPU for an hour, such as \"2.5 USD/h\", got \"{}\"", text));
  return {found->number, std::string(found->unit.substr(0, found->unit.size() - 2)), 0};
}

RangedNumber times(const RangedNumber& number, double factor) {
  return {number.point * factor, number.lower * factor, number.upper * factor};
}

void add_failures(const TrainingQuestion& question, TrainingRun& run) {
  const double between = *question.mtbf_hours * kHour / static_cast<double>(run.gpus);
  run.failures = goodput_with(between, in_seconds_of(question.checkpoint_time),
                              in_seconds_of(question.restart_time));
  if (run.failures->goodput < kMinGoodput)
    throw Error(fmt::format(
        "--mtbf-hours: must be so long that a job on {} gets on between failures, every {} s here, "
        "got {}",
        counted(run.gpus, "GPU"), to_fixed(between, 1), to_text(*question.mtbf_hours)));
  run.seconds = times(run.seconds, 1 / run.failures->goodput);
  run.assumptions.push_back(fmt::format(
      "each GPU fails every {} h on average, independently and at any time, and any failure stops "
      "the job; a checkpoint takes {}, a restart {}, with checkpoints as far apart as is best "
      "(Daly 2006)",
      to_text(*question.mtbf_hours), to_text(question.checkpoint_time),
      to_text(question.restart_time)));
}

}  // namespace

double large_count(const std::string& option, const std::string& text) {
  constexpr std::pair<std::string_view, double> kLetters[] = {
      {"", 1}, {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}, {"T", 1e12}};
  if (const std::optional<Quantity> found = quantity_of(text)) {
    for (const auto& [letter, factor] : kLetters) {
      if (found->unit == letter && found->number * factor <= kMaxCounted)
        return found->number * factor;
    }
  }
  throw Error(
      fmt::format("{}: must be a count such as 100k, 1.5M, 300B or 15T, got \"{}\"", option, text));
}

void TrainingQuestion::describe(Fields& fields) {
  fields.as({.value = "COUNT"})
      .text("tokens", tokens, "Say what training on so many tokens takes: 15T, 300B");
  fields.as({.value = "COUNT"}).text("total_steps", steps, "Say what so many steps take: 100k");
  fields.path("prices", prices,
              "Prices of GPUs: JSON, {\"prices\": {\"h100\": \"2.5 USD/h\"}}; \"network\" beside "
              "it has shares of a network; of 1,000 steps unless their number is given");
  fields.path("power", power, "What GPUs draw: JSON, {\"power\": {\"h100\": \"700 W\"}}");
  fields.optional_number("mtbf_hours", mtbf_hours,
                         "With --tokens or --total-steps: mean time between failures of one GPU, "
                         "such as 50000 (Llama 3 405B: 419 in 54 days on 16,384)");
  fields.time("checkpoint_time", checkpoint_time,
              "With --mtbf-hours: how long a checkpoint stops training", Nanoseconds{1});
  fields.time("restart_time", restart_time,
              "With --mtbf-hours: from a failure until training goes on from the last checkpoint");
}

bool TrainingQuestion::is_asked() const {
  if (!tokens.empty() && !steps.empty())
    throw Error(
        "--tokens and --total-steps: must not be given together, as each says how long to "
        "train");
  if (mtbf_hours && !(*mtbf_hours > 0))
    throw Error("--mtbf-hours: must be above 0, got " + to_text(*mtbf_hours));
  const bool has_length = !tokens.empty() || !steps.empty();
  if (mtbf_hours && !has_length) throw Error("--mtbf-hours: needs --tokens or --total-steps");
  return has_length || !prices.empty() || !power.empty();
}

GpuFigures::GpuFigures(std::string path, const char* key) : path_(std::move(path)), key_(key) {
  if (!is_given()) return;
  if (!std::filesystem::exists(path_))
    throw Error(
        fmt::format("--{0}: must be a file with {{\"{0}\": {{\"h100\": ...}}}}, but there is "
                    "no file '{1}'",
                    key_, path_));
  file_ = std::make_shared<const nlohmann::json>(read_json_file(path_));
}

template <class Read>
auto GpuFigures::of_device(const char* key, const std::string& device, const std::string& example,
                           const Read& read) const {
  return within(path_, [&] {
    const auto all = file_->is_object() ? file_->find(key) : file_->end();
    if (all == file_->end() || !all->is_object())
      throw Error(fmt::format("must be {{\"{}\": {{\"{}\": \"{}\", ...}}}}", key, device, example));
    const std::string best_match = key_for(*all, key, device);
    return within(fmt::format("{}: {}", key, best_match), [&] {
      const nlohmann::json& text = (*all)[best_match];
      if (!text.is_string())
        throw Error(fmt::format("must be a string with a unit, such as \"{}\"", example));
      return read(text.get<std::string>());
    });
  });
}

GpuPrice GpuFigures::price_of(const std::string& device) const {
  GpuPrice price = of_device(key_, device, "2.5 USD/h", read_price);
  if (!file_->contains("network")) return price;
  const GpuPrice network = of_device("network", device, "0.25 USD/h", read_price);
  if (network.currency != price.currency)
    throw Error(fmt::format("{}: network: must be in {}, as prices are, got {}", path_,
                            price.currency, network.currency));
  price.per_hour += network.per_hour, price.network = network.per_hour;
  return price;
}

double GpuFigures::watts_of(const std::string& device) const {
  return of_device(key_, device, "700 W", read_watts);
}

TrainingRuns::TrainingRuns(const TrainingQuestion& question)
    : question_(question), prices_(question.prices, "prices"), power_(question.power, "power") {}

TrainingRun TrainingRuns::of(const RepeatedStep& step) const {
  TrainingRun run{.gpus = step.gpus};
  if (question_.tokens.empty()) {
    run.steps =
        question_.steps.empty() ? kPricedSteps : large_count("--total-steps", question_.steps);
    if (step.tokens) run.tokens = run.steps * *step.tokens;
  } else {
    if (!step.tokens)
      throw Error(
          "--tokens: must not be given where the tokens of a step are unknown; give "
          "--total-steps");
    run.tokens = large_count("--tokens", question_.tokens);
    run.steps = std::ceil(*run.tokens / *step.tokens);
  }
  run.seconds = times(
      {in_seconds_of(step.time), in_seconds_of(step.lower), in_seconds_of(step.upper)}, run.steps);
  run.assumptions.emplace_back("all steps of the run take as long as the predicted one");
  if (question_.mtbf_hours) add_failures(question_, run);
  const double gpu_hours = static_cast<double>(run.gpus) / kHour;
  if (prices_.is_given()) {
    const GpuPrice price = prices_.price_of(step.device);
    run.price_of_hour = price.per_hour, run.currency = price.currency;
    run.network_of_hour = price.network;
    run.price = times(run.seconds, gpu_hours * price.per_hour);
  }
  if (power_.is_given()) {
    run.watts = power_.watts_of(step.device);
    run.energy = times(run.seconds, gpu_hours * run.watts);
    run.assumptions.emplace_back(
        "GPUs draw this power all the time; hosts, network and cooling are not counted");
  }
  return run;
}

std::optional<TrainingRun> run_of(const TrainingQuestion& question, const RepeatedStep& step) {
  if (!question.is_asked()) return std::nullopt;
  return TrainingRuns(question).of(step);
}

GpuPrice price_of(const std::string& path, const std::string& device) {
  return GpuFigures(path, "prices").price_of(device);
}

TrainingRun::Failures goodput_with(double between, double checkpoint, double restart) {
  const double ratio = checkpoint / (2 * between);
  const double every =
      ratio < 1 ? std::sqrt(2 * checkpoint * between) * (1 + std::sqrt(ratio) / 3 + ratio / 9) -
                      checkpoint
                : between;
  const double wall =
      between * std::exp(restart / between) * std::expm1((every + checkpoint) / between) / every;
  return {.goodput = 1 / wall, .between = between, .checkpoint_every = every};
}

}  // namespace foretrace

#include "ask/advise/target.h"

#include <array>
#include <cmath>
#include <fmt/core.h>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::array<std::string_view, 2> kTargets = {"step_time", "throughput"};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

double rate_of(std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value <= 0)
    throw Error(fmt::format("must be a number of samples per second above 0, got \"{}\"", text));
  return *value;
}

/// The text after "<=" or ">=" (or without the "="), whichever is required.
std::string_view threshold_of(std::string_view name, std::string_view demand, char sign) {
  if (demand.empty() || demand.front() != sign) {
    throw Error(fmt::format("must be at {} something: \"{} {}\", got \"{}\"",
                            sign == '<' ? "most" : "least", name,
                            sign == '<' ? "<= 100ms" : ">= 4000", demand));
  }
  demand.remove_prefix(1);
  if (demand.starts_with('=')) demand.remove_prefix(1);
  return without_spaces(demand);
}

}  // namespace

AdviceTarget read_target(std::string_view text, double samples) {
  const std::string_view trimmed = without_spaces(text);
  const std::string_view name = trimmed.substr(0, trimmed.find_first_of(" <>="));
  const std::string_view demand = without_spaces(trimmed.substr(name.size()));
  AdviceTarget target{.text = std::string(trimmed)};
  if (name == "step_time") {
    target.step_time = within(name, [&] { return parse_time(threshold_of(name, demand, '<')); });
    if (!demand.starts_with("<=")) target.step_time -= 1ns;
  } else if (name == "throughput") {
    const double rate = within(name, [&] { return rate_of(threshold_of(name, demand, '>')); });
    if (!(samples > 0) || !std::isfinite(samples))
      throw Error("throughput: needs --samples, the number of samples in a recorded step");
    // A target beyond the range of the clock is always reached.
    target.step_time = scaled(1s, std::min(samples / rate, 1e9));
  } else {
    throw Error(
        fmt::format("must be \"step_time <= TIME\" or \"throughput >= NUMBER\", got \"{}\"{}",
                    trimmed, did_you_mean(name, kTargets)));
  }
  if (target.step_time <= 0ns)
    throw Error(fmt::format("{}: must allow steps longer than 0ns", name));
  return target;
}

}  // namespace foretrace

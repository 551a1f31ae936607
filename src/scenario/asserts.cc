#include "scenario/asserts.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/parse_number.h"
#include "base/wording.h"
#include "foretrace/answer/memory_peak.h"
#include "foretrace/error.h"
#include "scenario/use_text.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

/// `any` is for figures of transforms, whose unit is known only once the transform has computed
/// them.
enum class Unit { time, bytes, number, any };

struct Quantity {
  std::string_view name;
  Unit unit;
};

constexpr Quantity kQuantities[] = {
    {"step_time", Unit::time},       {"upper", Unit::time},          {"lower", Unit::time},
    {"speedup", Unit::number},       {"peak_memory", Unit::bytes},   {"peak_reserved", Unit::bytes},
    {"out_of_memory", Unit::number}, {"replay_error", Unit::number},
};

constexpr std::string_view kComparisons[] = {"<=", ">=", "<", ">"};

struct Assertion {
  std::string name;
  Unit unit{};
  std::string_view comparison;
  double threshold = 0;  ///< In nanoseconds or bytes: a double is exact enough for a comparison.
};

/// The known range of a quantity: `lower` to `upper`, most likely `point`.
struct Estimate {
  double point = 0, lower = 0, upper = 0;
};

double read_number(std::string_view text) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value - *value == 0))
    throw Error(fmt::format("must be a number such as 1.5 or 0.01, got \"{}\"", text));
  return *value;
}

/// Determines the unit of a value from its text.
std::pair<Unit, double> read_any(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("+-.0123456789 ");
  if (digits == text.npos) return {Unit::number, read_number(text)};
  const bool is_time = text.find_first_of("sh", digits) != text.npos || text.ends_with("min");
  if (is_time) return {Unit::time, static_cast<double>(parse_time(text).count())};
  if (text.ends_with('B')) return {Unit::bytes, static_cast<double>(parse_bytes(text).count)};
  return {Unit::number, read_number(text)};
}

double read_threshold(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::time:
      return static_cast<double>(parse_time(text).count());
    case Unit::bytes:
      return static_cast<double>(parse_bytes(text).count);
    case Unit::number:
    case Unit::any:
      return read_number(text);
  }
  return 0;
}

Unit unit_of(std::string_view name) {
  const auto quantity = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                     [&](const Quantity& known) { return known.name == name; });
  if (quantity != std::end(kQuantities)) return quantity->unit;
  std::vector<std::string_view> transform_names;
  for (const TransformEntry& entry : transforms()) transform_names.push_back(entry.name);
  if (const std::size_t dot = name.find('.'); dot != name.npos) {
    const std::string_view transform = name.substr(0, dot);
    if (std::find(transform_names.begin(), transform_names.end(), transform) !=
        transform_names.end())
      return Unit::any;
    throw Error(fmt::format("there is no transform \"{}\"{}", transform,
                            did_you_mean(transform, transform_names)));
  }
  throw Error(
      fmt::format("there is no \"{}\" to assert; must be one of {} or a figure of a transform such "
                  "as loader.disk_bytes{}",
                  name, joined(assert_names()),
                  name.starts_with("mem") ? " (did you mean \"peak_memory\"?)"
                                          : did_you_mean(name, assert_names())));
}

/// Parses texts such as "step_time <= 120ms" and "loader.miss_share >= 0.84".
Assertion read_text(std::string_view text) {
  const std::string_view whole = without_blanks(text);
  const std::string_view name = whole.substr(0, whole.find_first_of(" <>"));
  Assertion assertion;
  assertion.name = name;
  assertion.unit = unit_of(name);
  const std::string_view demand = without_blanks(whole.substr(name.size()));
  for (const std::string_view comparison : kComparisons) {
    if (demand.substr(0, comparison.size()) != comparison) continue;
    assertion.comparison = comparison;
    within(name, [&] {
      const std::string_view threshold = without_blanks(demand.substr(comparison.size()));
      if (assertion.unit == Unit::any) {
        std::tie(assertion.unit, assertion.threshold) = read_any(threshold);
      } else {
        assertion.threshold = read_threshold(assertion.unit, threshold);
      }
    });
    return assertion;
  }
  throw Error(
      fmt::format("{}: must be a comparison such as \"<= 120ms\", got \"{}\"", name, demand));
}

Unit unit_of(const Figure& figure) {
  if (std::holds_alternative<Nanoseconds>(figure.value)) return Unit::time;
  return std::holds_alternative<Bytes>(figure.value) ? Unit::bytes : Unit::number;
}

std::string_view unit_name(Unit unit) {
  if (unit == Unit::time) return "a time";
  return unit == Unit::bytes ? "bytes" : "a plain number";
}

/// Finds a figure such as "loader.miss_share" of the last step that is a loader.
Estimate figure_estimate(const Prediction& prediction, const Assertion& assertion) {
  const std::size_t dot = assertion.name.find('.');
  const std::string transform = assertion.name.substr(0, dot);
  const std::string wanted = assertion.name.substr(dot + 1);
  std::vector<std::string_view> known;
  bool applied = false;
  for (auto step = prediction.steps.rbegin(); step != prediction.steps.rend(); ++step) {
    if (kind_of(step->use) != transform) continue;
    applied = true;
    for (const Figure& figure : step->figures) {
      known.push_back(figure.name);
      if (figure.name != wanted) continue;
      if (unit_of(figure) != assertion.unit) {
        throw Error(fmt::format("{}: must be compared with {}, as it is {}", assertion.name,
                                unit_name(unit_of(figure)), to_text(figure)));
      }
      const double value = magnitude(figure);
      return {value, value, value};
    }
  }
  if (!applied)
    throw Error(fmt::format("{}: the scenario has no step \"{}\"", assertion.name, transform));
  throw Error(fmt::format(
      "there is no figure \"{}\" of {}{}{}", wanted, transform,
      known.empty() ? "; with these settings it has none" : "; there are " + joined(known),
      did_you_mean(wanted, known)));
}

/// Returns whether the assertion is about step time, to which trust grades apply.
bool is_about_step_time(const Assertion& assertion) {
  constexpr std::string_view kTimeQuantities[] = {"step_time", "upper", "lower", "speedup"};
  return std::find(std::begin(kTimeQuantities), std::end(kTimeQuantities), assertion.name) !=
         std::end(kTimeQuantities);
}

double memory_in(const Prediction& prediction, std::string_view name) {
  if (prediction.predicted_memory.empty()) {
    throw Error(std::string(name) +
                ": this trace does not record memory, so that it cannot be asserted");
  }
  const std::vector<MemoryPeak>& peaks = prediction.predicted_memory;
  if (name == "out_of_memory") {
    return static_cast<double>(
        std::count_if(peaks.begin(), peaks.end(),
                      [](const MemoryPeak& peak) { return peak.out_of_memory.has_value(); }));
  }
  const auto greatest = name == "peak_memory" ? greatest_allocated : greatest_reserved;
  return static_cast<double>(greatest(peaks, PeaksOf::devices_and_host).value_or(Bytes{}).count);
}

Estimate estimate_in(const Prediction& prediction, const Assertion& assertion) {
  const std::string_view name = assertion.name;
  const auto exactly = [](double value) { return Estimate{value, value, value}; };
  const auto time = [](Nanoseconds value) { return static_cast<double>(value.count()); };
  if (name == "step_time") {
    return {time(prediction.predicted.step_time), time(prediction.lower), time(prediction.upper)};
  }
  if (name == "lower") return exactly(time(prediction.lower));
  if (name == "upper") return exactly(time(prediction.upper));
  if (name == "replay_error") return exactly(prediction.replay_error);
  if (name == "speedup") {
    const double baseline = time(prediction.baseline.step_time);
    const auto speedup_at = [&](Nanoseconds value, double otherwise) {
      return value > Nanoseconds(0) ? baseline / time(value) : otherwise;
    };
    return {prediction.speedup, speedup_at(prediction.upper, prediction.speedup),
            speedup_at(prediction.lower, prediction.speedup)};
  }
  if (name.find('.') != name.npos) return figure_estimate(prediction, assertion);
  return exactly(memory_in(prediction, name));
}

bool satisfies(double value, std::string_view comparison, double threshold) {
  if (comparison == "<=") return value <= threshold;
  if (comparison == ">=") return value >= threshold;
  if (comparison == "<") return value < threshold;
  return value > threshold;
}

std::string quantity_text(Unit unit, double value) {
  switch (unit) {
    case Unit::time:
      return to_text(Nanoseconds(static_cast<std::int64_t>(value)));
    case Unit::bytes:
      return to_text(Bytes{static_cast<std::int64_t>(value)});
    case Unit::number:
    case Unit::any:
      return to_fixed(value, 3);
  }
  return {};
}

}  // namespace

const std::vector<std::string_view>& assert_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Quantity& quantity : kQuantities) all.push_back(quantity.name);
    return all;
  }();
  return names;
}

std::vector<std::string> read_assert(const nlohmann::json& json) {
  if (!json.is_object() || json.empty()) {
    throw Error("must be an object such as {\"step_time\": \"<= 120ms\"}");
  }
  std::vector<std::string> texts;
  for (const auto& [name, demand] : json.items()) {
    if (name == "$comment") continue;
    if (!demand.is_string()) {
      throw Error(name + ": must be a string such as \"<= 120ms\"");
    }
    texts.push_back(
        fmt::format("{} {}", name, without_blanks(demand.get_ref<const std::string&>())));
    read_text(texts.back());
  }
  return texts;
}

nlohmann::json write_assert(const std::string& text) {
  const Assertion assertion = read_text(text);
  const std::string_view demand =
      without_blanks(without_blanks(text).substr(assertion.name.size()));
  return {{assertion.name, std::string(demand)}};
}

std::vector<CheckedAssert> evaluate_asserts(const Scenario& scenario,
                                            const Prediction& prediction) {
  std::vector<CheckedAssert> checked;
  for (const std::string& text : scenario.asserts) {
    const Assertion assertion = within("assert", [&] { return read_text(text); });
    const Unit unit = assertion.unit;
    const Estimate estimate = within("assert", [&] { return estimate_in(prediction, assertion); });
    const auto holds = [&](double value) {
      return satisfies(value, assertion.comparison, assertion.threshold);
    };
    CheckedAssert result{.text = text, .found = quantity_text(unit, estimate.point)};
    result.verdict = holds(estimate.point) ? Verdict::holds : Verdict::fails;
    if (estimate.lower != estimate.upper) {
      result.found += fmt::format(" ({} to {})", quantity_text(unit, estimate.lower),
                                  quantity_text(unit, estimate.upper));
      if (holds(estimate.lower) != holds(estimate.upper)) result.verdict = Verdict::undecided;
    }
    if (is_about_step_time(assertion) && prediction.trust.grade() == Grade::poor) {
      result.verdict = Verdict::undecided;
      result.found += "; trust is " + trust_warning(prediction.trust);
    }
    checked.push_back(std::move(result));
  }
  return checked;
}

bool is_step_time_assert(const std::string& text) { return is_about_step_time(read_text(text)); }

bool holds_at_point(const std::string& text, const Prediction& prediction) {
  const Assertion assertion = read_text(text);
  return satisfies(estimate_in(prediction, assertion).point, assertion.comparison,
                   assertion.threshold);
}

std::vector<CheckedAssert> check_asserts(const Scenario& scenario, const Prediction& prediction) {
  std::vector<CheckedAssert> checked = evaluate_asserts(scenario, prediction);
  std::erase_if(checked, [](const CheckedAssert& a) { return a.verdict == Verdict::holds; });
  return checked;
}

}  // namespace foretrace

#include "scenario/asserts.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"

namespace foretrace {
namespace {

enum class Unit { time, bytes, number };

struct Quantity {
  std::string_view name;
  Unit unit;
};

constexpr Quantity kQuantities[] = {
    {"step_time", Unit::time}, {"upper", Unit::time},        {"lower", Unit::time},
    {"speedup", Unit::number}, {"peak_memory", Unit::bytes}, {"replay_error", Unit::number},
};

constexpr std::string_view kComparisons[] = {"<=", ">=", "<", ">"};

struct Assertion {
  Quantity quantity{};
  std::string_view comparison;
  double threshold =
      0;  ///< Nanoseconds or bytes: of a size that double holds exactly enough to compare.
};

/// What is known of a quantity: somewhere from lower to upper, most likely `point`.
struct Found {
  double point = 0, lower = 0, upper = 0;
};

double read_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value - value == 0)) {
    throw Error("must be a number such as 1.5 or 0.01, got \"" + std::string(text) + "\"");
  }
  return value;
}

double read_threshold(Unit unit, std::string_view text) {
  switch (unit) {
    case Unit::time:
      return static_cast<double>(parse_time(text).count());
    case Unit::bytes:
      return static_cast<double>(parse_bytes(text).count);
    case Unit::number:
      return read_number(text);
  }
  return 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// "step_time <= 120ms"
Assertion read_text(std::string_view text) {
  const std::string_view whole = trimmed(text);
  const std::string_view name = whole.substr(0, whole.find_first_of(" <>"));
  const auto quantity = std::find_if(std::begin(kQuantities), std::end(kQuantities),
                                     [&](const Quantity& known) { return known.name == name; });
  if (quantity == std::end(kQuantities)) {
    std::string known;
    for (const std::string_view option : assert_names()) {
      known += (known.empty() ? "" : ", ") + std::string(option);
    }
    throw Error("there is no \"" + std::string(name) + "\" to assert; there are " + known +
                did_you_mean(name, assert_names()));
  }
  const std::string_view demand = trimmed(whole.substr(name.size()));
  for (const std::string_view comparison : kComparisons) {
    if (demand.substr(0, comparison.size()) != comparison) continue;
    const double threshold = within(name, [&] {
      return read_threshold(quantity->unit, trimmed(demand.substr(comparison.size())));
    });
    return {*quantity, comparison, threshold};
  }
  throw Error(std::string(name) + ": must be a comparison such as \"<= 120ms\", got \"" +
              std::string(demand) + "\"");
}

Found found_in(const Prediction& prediction, std::string_view name) {
  const auto exactly = [](double value) { return Found{value, value, value}; };
  const auto time = [](Nanoseconds value) { return static_cast<double>(value.count()); };
  if (name == "step_time") {
    return {time(prediction.predicted.step_time), time(prediction.lower), time(prediction.upper)};
  }
  if (name == "lower") return exactly(time(prediction.lower));
  if (name == "upper") return exactly(time(prediction.upper));
  if (name == "replay_error") return exactly(prediction.replay_error);
  if (name == "speedup") {
    const double baseline = time(prediction.baseline.step_time);
    const auto over = [&](Nanoseconds value, double otherwise) {
      return value > Nanoseconds(0) ? baseline / time(value) : otherwise;
    };
    return {prediction.speedup, over(prediction.upper, prediction.speedup),
            over(prediction.lower, prediction.speedup)};
  }
  if (prediction.predicted_memory.empty()) {
    throw Error("peak_memory: this trace does not record memory");
  }
  Bytes peak{};
  for (const MemoryPeak& device : prediction.predicted_memory) {
    peak = std::max(peak, device.peak_allocated);
  }
  return exactly(static_cast<double>(peak.count));
}

bool satisfies(double value, std::string_view comparison, double threshold) {
  if (comparison == "<=") return value <= threshold;
  if (comparison == ">=") return value >= threshold;
  if (comparison == "<") return value < threshold;
  return value > threshold;
}

std::string in_words(Unit unit, double value) {
  switch (unit) {
    case Unit::time:
      return to_text(Nanoseconds(static_cast<std::int64_t>(value)));
    case Unit::bytes:
      return to_text(Bytes{static_cast<std::int64_t>(value)});
    case Unit::number:
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
      throw Error(name + ": must be a text such as \"<= 120ms\"");
    }
    texts.push_back(name + " " + std::string(trimmed(demand.get_ref<const std::string&>())));
    read_text(texts.back());
  }
  return texts;
}

nlohmann::json write_assert(const std::string& text) {
  const Assertion assertion = read_text(text);
  const std::string_view demand = trimmed(trimmed(text).substr(assertion.quantity.name.size()));
  return {{std::string(assertion.quantity.name), std::string(demand)}};
}

std::vector<CheckedAssert> evaluate_asserts(const Scenario& scenario,
                                            const Prediction& prediction) {
  std::vector<CheckedAssert> checked;
  for (const std::string& text : scenario.asserts) {
    const Assertion assertion = within("assert", [&] { return read_text(text); });
    const Unit unit = assertion.quantity.unit;
    const Found found =
        within("assert", [&] { return found_in(prediction, assertion.quantity.name); });
    const auto holds = [&](double value) {
      return satisfies(value, assertion.comparison, assertion.threshold);
    };
    CheckedAssert result{.text = text, .found = in_words(unit, found.point)};
    result.verdict = holds(found.point) ? Verdict::holds : Verdict::fails;
    if (found.lower != found.upper) {
      result.found +=
          " (" + in_words(unit, found.lower) + " to " + in_words(unit, found.upper) + ")";
      if (holds(found.lower) != holds(found.upper)) result.verdict = Verdict::undecided;
    }
    checked.push_back(std::move(result));
  }
  return checked;
}

std::vector<CheckedAssert> check_asserts(const Scenario& scenario, const Prediction& prediction) {
  std::vector<CheckedAssert> checked = evaluate_asserts(scenario, prediction);
  std::erase_if(checked, [](const CheckedAssert& a) { return a.verdict == Verdict::holds; });
  return checked;
}

}  // namespace foretrace

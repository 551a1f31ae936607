#include "scenario/values.h"

#include <charconv>
#include <cmath>
#include <fmt/core.h>
#include <optional>

#include "base/numbers/range.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxValues = 10'000;
constexpr std::int64_t kUsualSteps = 10;
/// Largest range of whole numbers that is tried one by one by default.
constexpr std::int64_t kMaxSingly = 64;

struct NumberInUnit {
  double number = 0;
  std::string unit;
  bool whole = false;  ///< Written as a whole number.
};

std::optional<NumberInUnit> read_quantity(std::string_view text) {
  NumberInUnit quantity;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc() || !std::isfinite(quantity.number)) return std::nullopt;
  const auto digits = static_cast<std::size_t>(end - text.data());
  quantity.unit = text.substr(digits);
  quantity.whole = text.substr(0, digits).find_first_of(".eE") == text.npos;
  return quantity;
}

/// Writes a number with just enough digits to distinguish values that are `apart`: 1.7, not
/// 1.7000000000000002.
std::string format_number(double number, double apart, bool whole, const std::string& unit) {
  if (whole) return to_text(std::round(number)) + unit;
  const double digits = 2 - std::floor(std::log10(apart));
  if (!(digits >= 0 && digits <= 15)) return to_text(number) + unit;
  const double scale = std::pow(10.0, digits);
  const double rounded = std::round(number * scale) / scale;
  return to_text(std::isfinite(rounded) ? rounded : number) + unit;
}

NumberInUnit read_range_end(std::string_view text) {
  const std::optional<NumberInUnit> quantity = read_quantity(text);
  if (!quantity)
    throw Error(fmt::format(
        "must be a range of quantities such as 0..16 or 1GB/s..8GB/s at both ends, got \"{}\"",
        text));
  return *quantity;
}

/// How many equal parts the range has; nullopt if the range does not say.
std::optional<std::int64_t> parts_of(const RangeText& range) {
  if (range.step != RangeStep::parts) return std::nullopt;
  const auto parts = parse_number<std::int64_t>(range.amount);
  if (!parts || *parts < 1 || *parts > kMaxValues)
    throw Error(fmt::format("must have from 1 to {} steps, got {}", kMaxValues, range.amount));
  return parts;
}

/// The numbers that a range with a step of its own has: 8..64/+8, 8..64/x2.
std::vector<double> stepped(const RangeText& range, const NumberInUnit& low,
                            const NumberInUnit& high) {
  const bool adds = range.step == RangeStep::add;
  const NumberInUnit amount = read_range_end(range.amount);
  if (amount.number <= (adds ? 0 : 1) || (!amount.unit.empty() && amount.unit != low.unit) ||
      (!adds && low.number <= 0))
    throw Error(fmt::format("must go up by /+ an amount or /x a factor, got \"{}\"", range.amount));
  constexpr double kSlack = 1e-9;  // The last value counts however sums are rounded.
  std::vector<double> numbers;
  for (std::int64_t i = 0;; ++i) {
    const double steps = static_cast<double>(i);
    const double number =
        adds ? low.number + steps * amount.number : low.number * std::pow(amount.number, steps);
    if (number > high.number * (1 + kSlack)) return numbers;
    if (i > kMaxValues) throw Error(fmt::format("must be at most {} values", kMaxValues));
    numbers.push_back(number);
  }
}

/// The numbers of a range in equal parts.
std::vector<double> parted(const RangeText& range, const NumberInUnit& low,
                           const NumberInUnit& high, bool is_whole) {
  const double span = high.number - low.number;
  const std::optional<std::int64_t> given = parts_of(range);
  std::int64_t parts = given.value_or(kUsualSteps);
  // A range from 1 to 8 means 1, 2, 3 ... even if the setting accepts 1.5; a range from 0 to 1
  // means steps of a tenth.
  const bool by_ones = is_whole || (low.whole && high.whole && span > 1);
  if (by_ones && !given && span <= static_cast<double>(kMaxSingly))
    parts = static_cast<std::int64_t>(span);
  std::vector<double> numbers;
  for (std::int64_t i = 0; i <= parts; ++i)
    numbers.push_back(low.number + span * (static_cast<double>(i) / static_cast<double>(parts)));
  return numbers;
}

Values read_range(const RangeText& range, bool whole_setting) {
  const NumberInUnit low = read_range_end(range.first), high = read_range_end(range.last);
  if (low.unit != high.unit) {
    throw Error(
        fmt::format("must have one unit at both ends, got \"{}\" and \"{}\"", low.unit, high.unit));
  }
  if (low.number >= high.number) throw Error("must have the smaller end first");
  Values values;
  values.is_range = true;
  values.whole = whole_setting && low.whole && high.whole;
  values.low = low.number;
  values.high = high.number;
  values.unit = low.unit;
  const bool has_step = range.step == RangeStep::add || range.step == RangeStep::times;
  const std::vector<double> numbers =
      has_step ? stepped(range, low, high) : parted(range, low, high, values.whole);
  const double apart = numbers.size() > 1 ? numbers[1] - numbers[0] : high.number - low.number;
  for (const double number : numbers) {
    std::string value = format_number(number, apart, values.whole, low.unit);
    if (values.listed.empty() || values.listed.back() != value)
      values.listed.push_back(std::move(value));
  }
  return values;
}

/// Splits at commas outside [...].
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace

Values read_values(std::string_view text, bool whole_setting) {
  if (const auto range = split_range(text)) return read_range(*range, whole_setting);
  Values values;
  values.listed = split(text);
  if (values.listed.size() > static_cast<std::size_t>(kMaxValues))
    throw Error(fmt::format("must be at most {} values", kMaxValues));
  for (const std::string& value : values.listed) {
    if (value.empty()) throw Error("must be values such as 1,2,4 or a range such as 0..16");
  }
  return values;
}

std::string format_value(const Values& range, double number, double apart) {
  return format_number(number, apart, range.whole, range.unit);
}

std::string midpoint(const Values& values, std::string_view low, std::string_view high) {
  const NumberInUnit from = read_range_end(low), to = read_range_end(high);
  double middle = from.number + (to.number - from.number) / 2;
  if (values.whole) middle = std::floor(middle);
  std::string text =
      format_number(middle, std::abs(to.number - from.number) / 2, values.whole, from.unit);
  return text == low || text == high ? std::string() : text;
}

}  // namespace foretrace

#include "scenario/axis.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/json_text.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "scenario/scenario_file.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Resolution of drawn values, as a share of their range.
constexpr double kFinest = 1e-4;

bool reads_scale(const Json& scale) {
  if (scale == "log") return true;
  if (scale == "linear") return false;
  throw Error("scale: must be \"linear\" or \"log\"");
}

}  // namespace

SweepAxis::SweepAxis(const std::string& name, const Json& values, bool log_scale,
                     const Json& scenario, const std::string& folder)
    : name_(name), log_(log_scale) {
  if (name != "machine" && name != "trace") setting_.emplace(name, scenario);
  if (values.is_array()) {
    read_list(values, scenario, folder);
  } else if (values.is_string() && setting_) {
    read_text(values.get<std::string>(), scenario);
  } else if (values.is_object() && setting_) {
    read_range_object(values, scenario);
  } else {
    throw Error(setting_
                    ? "must be a list of values such as [1, 2, 4], or a range such as \"0..16\""
                    : "must be a list of names or paths");
  }
  if (log_ && range_.is_range) space_by_log(scenario);
  if (!setting_) return;
  for (SweepValue& value : listed_) setting_->rebase(value.change, scenario, folder);
}

void SweepAxis::read_range_object(const Json& values, const Json& scenario) {
  for (const auto& [key, value] : values.items()) {
    constexpr std::string_view kKnown[] = {"range", "scale"};
    if (key == "range" || key == "scale") continue;
    throw Error(fmt::format("there is no \"{}\"; a range has range and scale{}", key,
                            did_you_mean(key, kKnown)));
  }
  const auto range = values.find("range");
  if (range == values.end() || !range->is_string())
    throw Error("range: must be a string such as \"1GB/s..64GB/s\"");
  if (values.contains("scale")) log_ = reads_scale(values["scale"]);
  read_text(range->get<std::string>(), scenario);
  if (!range_.is_range) throw Error("range: must have two ends, as in \"1GB/s..64GB/s\"");
}

void SweepAxis::read_list(const Json& values, const Json& scenario, const std::string& folder) {
  if (values.empty()) throw Error("must have at least one value");
  for (std::size_t i = 0; i < values.size(); ++i) {
    within(fmt::format("[{}]", i), [&] {
      if (setting_) {
        listed_.push_back({json_line(values[i]), setting_->change(scenario, values[i])});
        return;
      }
      if (!values[i].is_string()) throw Error("must be a string");
      const auto& text = values[i].get_ref<const std::string&>();
      if (name_ == "machine" && !is_path(text)) find_device(text);
      Json part = {{name_, text}};
      rebase_scenario(part, folder);
      listed_.push_back({json_line(values[i]), std::move(part[name_])});
    });
  }
}

SweepValue SweepAxis::value_of_text(const std::string& text, const Json& scenario) const {
  Json change = setting_->change_of_text(scenario, text);
  return {json_line(setting_->value_in(change)), std::move(change)};
}

void SweepAxis::read_text(const std::string& text, const Json& scenario) {
  const Json now = setting_->value(scenario);
  range_ = read_values(text, !now.is_number_float() && !now.is_string());
  for (const std::string& value : range_.listed) listed_.push_back(value_of_text(value, scenario));
}

/// Spaces the values by a constant ratio; the ends keep the text they were given as.
void SweepAxis::space_by_log(const Json& scenario) {
  if (range_.low <= 0) throw Error("scale: \"log\" needs a range above 0");
  const std::size_t steps = listed_.size() - 1;
  const double ratio = range_.high / range_.low;
  for (std::size_t i = 1; i < steps; ++i) {
    const double number =
        range_.low * std::pow(ratio, static_cast<double>(i) / static_cast<double>(steps));
    listed_[i] = value_of_text(format_value(range_, number, number * kFinest), scenario);
  }
  const auto same = [](const SweepValue& a, const SweepValue& b) { return a.text == b.text; };
  listed_.erase(std::unique(listed_.begin(), listed_.end(), same), listed_.end());
}

SweepValue SweepAxis::sample(double u, const Json& scenario) const {
  if (!range_.is_range)
    return listed_[static_cast<std::size_t>(u * static_cast<double>(listed_.size()))];
  if (range_.whole) {
    // Every whole number is equally likely on a linear scale.
    const double least = log_ ? range_.low : std::ceil(range_.low);
    const double number = log_ ? least * std::pow((range_.high + 1) / least, u)
                               : least + u * (range_.high - least + 1);
    return value_of_text(format_value(range_, std::min(std::floor(number), range_.high), 1),
                         scenario);
  }
  const double number = log_ ? range_.low * std::pow(range_.high / range_.low, u)
                             : range_.low + u * (range_.high - range_.low);
  const double apart = log_ ? number * kFinest : (range_.high - range_.low) * kFinest;
  return value_of_text(format_value(range_, number, apart), scenario);
}

void SweepAxis::apply(const SweepValue& value, Json& scenario) const {
  if (setting_) {
    setting_->apply(value.change, scenario);
  } else {
    scenario[name_] = value.change;
  }
}

}  // namespace foretrace

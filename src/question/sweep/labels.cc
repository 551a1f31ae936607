#include "question/sweep/labels.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Describes the tasks that a step is limited to, such as "kernel, /softmax/"; empty for all tasks.
std::string task_filter(const Json& step) {
  std::string text;
  const auto where = step.find("where");
  if (where == step.end() || !where->is_object()) return text;
  for (const auto& [key, value] : where->items()) {
    if (value.is_null() || value == "" || value == "any") continue;
    const bool says_itself = key == "kind" || key == "name" || key == "phase";
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", says_itself ? "" : key + " ",
                        value.is_string() ? value.get<std::string>() : json_line(value));
  }
  return text;
}

/// Returns a readable name, or the setting itself if it does not belong to a numbered step.
std::string label_of(const Json& scenario, const std::string& setting) {
  constexpr std::string_view kStep = "transforms[";
  const std::size_t end = setting.find("].");
  if (!setting.starts_with(kStep) || end == std::string::npos) return setting;
  std::size_t number = 0;
  std::from_chars(setting.data() + kStep.size(), setting.data() + end, number);
  const auto steps = scenario.find("transforms");
  if (steps == scenario.end() || !steps->is_array() || number >= steps->size()) return setting;
  const Json& step = (*steps)[number];
  const std::string filter = task_filter(step);
  return fmt::format("{} of {}{}", setting.substr(end + 2), step.value("use", ""),
                     filter.empty() ? "" : fmt::format(" ({})", filter));
}

}  // namespace

std::vector<std::string> setting_labels(const SweepHeader& header) {
  const Json scenario = try_parse_json<Json>(header.scenario_json);
  std::vector<std::string> labels;
  for (const std::string& setting : header.settings)
    labels.push_back(scenario.is_object() ? label_of(scenario, setting) : setting);
  const std::vector<std::string> all = labels;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (std::count(all.begin(), all.end(), all[i]) > 1) labels[i] = header.settings[i];
  }
  return labels;
}

}  // namespace foretrace

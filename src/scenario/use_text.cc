#include "scenario/use_text.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

std::string value_text(const Json& value) {
  if (!value.is_string()) return json_line(value);
  const auto& text = value.get_ref<const std::string&>();
  const bool plain = text.find_first_of(",\"") == std::string::npos &&
                     (text.empty() || (text.front() != '[' && text.front() != '{'));
  return plain ? text : json_line(value);
}

void add_settings(const Json& settings, const Json& defaults, const std::string& prefix,
                  std::string& text) {
  for (const auto& [name, value] : settings.items()) {
    const Json& usual = defaults.at(name);
    if (value == usual) continue;
    if (value.is_object()) {
      add_settings(value, usual, prefix + name + ".", text);
    } else {
      text += fmt::format("{}{}{}={}", text.empty() ? ":" : ",", prefix, name, value_text(value));
    }
  }
}

}  // namespace

std::string use_text(std::string_view name, Transform& transform) {
  std::string settings;
  for (const TransformEntry& entry : transforms()) {
    if (entry.name != name) continue;
    add_settings(write_json(transform), write_json(*entry.make()), "", settings);
  }
  return std::string(name) + settings;
}

std::string_view kind_of(std::string_view use) { return use.substr(0, use.find(':')); }

std::vector<std::string> kinds_of(const std::vector<AppliedStep>& steps) {
  std::vector<std::string> kinds;
  for (const AppliedStep& step : steps) {
    const std::string_view kind = kind_of(step.use);
    if (!step.changed_nothing && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
      kinds.emplace_back(kind);
  }
  return kinds;
}

}  // namespace foretrace

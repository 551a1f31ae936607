#include "scenario/setting.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/transform.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kMemory = "memory";
constexpr std::ptrdiff_t kDeepestSetting = 15;

const Json& steps_of(const Json& scenario) {
  static const Json none = Json::array();
  const auto found = scenario.find("transforms");
  return found == scenario.end() ? none : *found;
}

/// Returns the number in "transforms[1]".
std::size_t step_number(std::string_view head, std::size_t steps) {
  constexpr std::string_view kBegin = "transforms[";
  std::size_t number = 0;
  const std::string_view digits = head.substr(kBegin.size());
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || digits.substr(static_cast<std::size_t>(end - digits.data())) != "]")
    throw Error("must be a setting such as \"transforms[0].buffers\"");
  if (number < steps) return number;
  throw Error(fmt::format("there is no transforms[{}]; the scenario has {}", number, steps));
}

/// Returns the index of the only step that uses this transform.
std::size_t only_step_of(std::string_view transform, const Json& steps) {
  std::optional<std::size_t> found;
  std::string known(kMemory);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string use = steps[i].value("use", "");
    known += ", " + use;
    if (use != transform) continue;
    if (found) {
      throw Error(
          fmt::format("several steps are \"{}\"; name one as transforms[{}] or transforms[{}]", use,
                      *found, i));
    }
    found = i;
  }
  if (found) return *found;
  throw Error(fmt::format("no step uses \"{}\": add it with --with {}, or vary one of {}",
                          transform, transform, known));
}

/// Sets a nested value such as "where.name" in an object.
void set(Json& object, std::string_view name, const Json& value) {
  Json* at = &object;
  while (true) {
    if (!at->is_object()) throw Error("has no settings of its own");
    const std::size_t dot = name.find('.');
    at = &(*at)[std::string(name.substr(0, dot))];
    if (dot == std::string_view::npos) break;
    if (at->is_null()) *at = Json::object();
    name.remove_prefix(dot + 1);
  }
  *at = value;
}

/// Overwrites values in `settings` by those in `changes`.
void merge(Json& settings, const Json& changes) {
  for (const auto& [key, value] : changes.items()) {
    if (value.is_object() && settings.contains(key) && settings[key].is_object()) {
      merge(settings[key], value);
    } else {
      settings[key] = value;
    }
  }
}

/// Returns a nested value such as "where.name"; null if there is none.
Json value_at(const Json& object, std::string_view name) {
  const Json* at = &object;
  for (;; name.remove_prefix(name.find('.') + 1)) {
    const auto found = at->find(std::string(name.substr(0, name.find('.'))));
    if (found == at->end()) return {};
    at = &*found;
    if (name.find('.') == name.npos) return *at;
  }
}

}  // namespace

SettingPath::SettingPath(std::string_view asked, const Json& scenario) {
  const std::string path = setting_path_called(asked);
  const Json& steps = steps_of(scenario);
  const std::size_t dot = path.find('.');
  if (dot == path.npos || dot == 0 || dot + 1 == path.size()) {
    throw Error(fmt::format(
        "must be a setting such as \"loader.workers\" or \"transforms[0].workers\", got \"{}\"",
        path));
  }
  const std::string_view head = std::string_view(path).substr(0, dot);
  name_ = path.substr(dot + 1);
  if (std::count(name_.begin(), name_.end(), '.') > kDeepestSetting)
    throw Error(fmt::format("must be at most {} names deep", kDeepestSetting + 1));
  of_memory_ = head == kMemory;
  if (of_memory_) return;
  step_ =
      head.starts_with("transforms[") ? step_number(head, steps.size()) : only_step_of(head, steps);
}

Json SettingPath::settings_of(const Json& scenario) const {
  if (of_memory_) return scenario.value(std::string(kMemory), Json::object());
  return steps_of(scenario)[step_];
}

void SettingPath::check(const Json& settings) const {
  if (of_memory_) {
    AllocatorSettings checked;
    read_json(settings, checked);
  } else {
    read_transform(settings);
  }
}

Json SettingPath::change(const Json& scenario, const Json& value) const {
  Json changed = Json::object();
  set(changed, name_, value);
  Json settings = settings_of(scenario);
  merge(settings, changed);
  check(settings);
  return changed;
}

Json SettingPath::change_of_text(const Json& scenario, std::string_view value) const {
  const std::string assignment = fmt::format("{}={}", name_, value);
  AllocatorSettings kinds;
  Json changed = of_memory_ ? read_assignments(assignment, kinds)
                            : read_assignments(assignment, *read_transform(settings_of(scenario)));
  Json settings = settings_of(scenario);
  merge(settings, changed);
  check(settings);
  return changed;
}

void SettingPath::apply(const Json& change, Json& scenario) const {
  Json& settings = of_memory_ ? scenario[std::string(kMemory)] : scenario["transforms"][step_];
  if (settings.is_null()) settings = Json::object();
  merge(settings, change);
}

void SettingPath::rebase(Json& change, const Json& scenario, const std::string& folder) const {
  if (!of_memory_) rebase_paths(change, *read_transform(settings_of(scenario)), folder);
}

Json SettingPath::value_in(const Json& change) const { return value_at(change, name_); }

Json SettingPath::value(const Json& scenario) const {
  Json settings = settings_of(scenario);
  if (of_memory_) {
    AllocatorSettings whole;
    read_json(settings, whole);
    settings = write_json(whole);
  } else {
    settings = write_json(*read_transform(settings));
  }
  return value_at(settings, name_);
}

}  // namespace foretrace

#include "foretrace/scenario.h"

#include <algorithm>
#include <filesystem>
#include <fmt/core.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>

#include "base/files/json_file.h"
#include "base/json_text.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "scenario/asserts.h"
#include "scenario/plan.h"
#include "scenario/scenario_file.h"
#include "scenario/use_text.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kKeys[] = {"$comment",         "$schema", "assert",          "extends",
                                      "machine",          "matrix",  "memory",          "reports",
                                      "samples_per_step", "sweep",   "tokens_per_step", "trace",
                                      "transforms",       "version"};
constexpr std::size_t kMaxBases = 16;
constexpr double kMaxSamples = 1e15;

std::string joined_keys() {
  std::string text;
  for (const std::string_view key : kKeys) {
    if (key.front() != '$') text += (text.empty() ? "" : ", ") + std::string(key);
  }
  return text;
}

void check_keys(const Json& json) {
  if (!json.is_object()) {
    throw Error("must be an object such as {\"version\": 1, \"transforms\": [{\"use\": \"amp\"}]}");
  }
  for (const auto& [key, value] : json.items()) {
    if (std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys)) continue;
    throw Error(fmt::format("there is no key \"{}\" in a scenario; the keys are {}{}", key,
                            joined_keys(), did_you_mean(key, kKeys)));
  }
  const auto version = json.find("version");
  if (version == json.end()) return;
  if (!version->is_number_integer()) throw Error("version: must be a whole number");
  if (*version != 1) throw Error("version: must be 1, got " + json_line(*version));
}

std::string read_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return {};
  if (!found->is_string()) throw Error(std::string(key) + ": must be a string");
  return found->get<std::string>();
}

/// Returns 0 if the key is missing.
double read_count(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return 0;
  const bool fits =
      found->is_number() && found->get<double>() > 0 && found->get<double>() <= kMaxSamples;
  if (!fits)
    throw Error(fmt::format("{}: must be a number above 0, got {}", key, json_line(*found)));
  return found->get<double>();
}

/// Calls `read` for each element and adds its place to errors. Does nothing if the key is missing.
template <class Read>
void for_each_element(const Json& json, const char* key, const Read& read) {
  const auto found = json.find(key);
  if (found == json.end()) return;
  if (!found->is_array()) throw Error(std::string(key) + ": must be a list");
  for (std::size_t i = 0; i < found->size(); ++i) {
    within(fmt::format("{}[{}]", key, i), [&] { read((*found)[i]); });
  }
}

/// The keys that refer to other files.
struct ScenarioPaths final : Described {
  std::string extends, trace, machine;

  void describe(Fields& fields) override {
    fields.path("extends", extends, "The scenario that this one extends");
    fields.path("trace", trace, "The trace to analyze");
    fields.name_or_path("machine", machine, "The device to predict for");
  }
};

/// Returns the elements of a list; empty if there is no list.
std::span<Json> elements(Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return {};
  return found->get_ref<Json::array_t&>();
}

/// An alternative given as text keeps that text as its name.
void rebase_alternative(const std::string& axis, const std::string& folder, Json& alternative) {
  if (!alternative.is_string()) return rebase_scenario(alternative, folder);
  Json part = {{axis, alternative}};
  rebase_scenario(part, folder);
  if (part[axis] == alternative) return;
  part["name"] = alternative;
  alternative = std::move(part);
}

Json without_comment(Json json) {
  if (json.is_object()) json.erase("$comment");
  return json;
}

std::string report_named(const Json& json) {
  if (!json.is_string()) throw Error("must be the name of a report");
  std::vector<std::string_view> names;
  for (const ReportEntry& entry : reports()) names.push_back(entry.name);
  const auto& name = json.get_ref<const std::string&>();
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  throw Error(fmt::format("there is no report \"{}\"{}", name, did_you_mean(name, names)));
}

void add_step(std::string use, std::unique_ptr<Transform> transform, Scenario& scenario) {
  constexpr std::size_t kMaxSteps = 1'000;
  if (scenario.transforms.size() == kMaxSteps)
    throw Error(
        fmt::format("must be at most {} steps in one question, because each is applied to "
                    "everything that those before it added",
                    kMaxSteps));
  const auto is_same = [&](const std::unique_ptr<Transform>& earlier) {
    return typeid(*earlier) == typeid(*transform);
  };
  if (transform->happens_once() && std::ranges::any_of(scenario.transforms, is_same))
    throw Error("is given twice, but starts from what was recorded: give one of them");
  scenario.uses.push_back(std::move(use));
  scenario.transforms.push_back(std::move(transform));
}

}  // namespace

void rebase_scenario(Json& json, const std::string& folder) {
  ScenarioPaths paths;
  rebase_paths(json, paths, folder);
  for (Json& step : elements(json, "transforms")) {
    for (const TransformEntry& entry : transforms()) {
      if (step.is_object() && step.contains("use") && step["use"] == entry.name)
        rebase_paths(step, *entry.make(), folder);
    }
  }
  const auto matrix = json.find("matrix");
  if (matrix == json.end() || !matrix->is_object()) return;
  for (const auto& [axis, alternatives] : matrix->items()) {
    for (Json& alternative : elements(*matrix, axis)) rebase_alternative(axis, folder, alternative);
  }
}

Json extended(const Json& base, const Json& json) {
  Json combined = base;
  for (const auto& [key, value] : json.items()) {
    const bool appends = (key == "transforms" || key == "assert") && combined.contains(key) &&
                         combined[key].is_array() && value.is_array();
    if (!appends) {
      combined[key] = value;
      continue;
    }
    for (const Json& element : value) combined[key].push_back(element);
  }
  return combined;
}

ScenarioFile read_extended(const std::string& path, std::vector<std::string> readers) {
  readers.push_back(path);
  ScenarioFile file{.json = read_json_file(path),
                    .sweep_folder = std::filesystem::path(path).parent_path().string()};
  return within(path, [&] {
    check_keys(file.json);
    rebase_scenario(file.json, file.sweep_folder);
    const std::string base_path = read_text(file.json, "extends");
    if (base_path.empty()) return file;
    if (readers.size() > kMaxBases)
      throw Error(fmt::format("extends: must have at most {} files", kMaxBases));
    file.json.erase("extends");
    const ScenarioFile base = within("extends", [&] {
      if (std::find(readers.begin(), readers.end(), base_path) != readers.end())
        throw Error("must not lead back to " + base_path);
      ScenarioFile read = read_extended(base_path, readers);
      within(base_path, [&] { parse_scenario(read.json); });  // The base reports its own mistakes.
      return read;
    });
    if (!file.json.contains("sweep")) file.sweep_folder = base.sweep_folder;
    file.json = extended(base.json, file.json);
    return file;
  });
}

Scenario parse_scenario(const Json& json) {
  check_keys(json);
  if (json.contains("extends")) {
    throw Error(
        "extends: must only be used in scenario files, because its path is relative to the file");
  }
  Scenario scenario;
  scenario.trace = read_text(json, "trace");
  scenario.machine = read_text(json, "machine");
  scenario.samples_per_step = read_count(json, "samples_per_step");
  scenario.tokens_per_step = read_count(json, "tokens_per_step");
  if (const auto memory = json.find("memory"); memory != json.end())
    within("memory", [&] { read_json(without_comment(*memory), scenario.allocator); });
  for_each_element(json, "transforms", [&](const Json& step) {
    std::unique_ptr<Transform> transform = read_transform(step);
    std::string use = use_text(step.at("use").get<std::string>(), *transform);
    add_step(std::move(use), std::move(transform), scenario);
  });
  for_each_element(json, "reports",
                   [&](const Json& name) { scenario.reports.push_back(report_named(name)); });
  for_each_element(json, "assert", [&](const Json& assertion) {
    for (std::string& text : read_assert(assertion)) scenario.asserts.push_back(std::move(text));
  });
  if (asks_many(json)) SweepPlan(json, {});
  return scenario;
}

Scenario read_scenario(const std::string& path) {
  const Json json = read_extended(path).json;
  return within(path, [&] {
    Scenario scenario = parse_scenario(json);
    if (asks_many(json)) {
      throw Error(fmt::format("{}: asks many questions; use `foretrace sweep`",
                              json.contains("sweep") ? "sweep" : "matrix"));
    }
    return scenario;
  });
}

void add_steps(std::string_view text, Scenario& scenario) {
  for (std::string& step : read_steps(text)) {
    std::unique_ptr<Transform> transform = read_transform_text(step);
    add_step(std::move(step), std::move(transform), scenario);
  }
}

Json write_scenario(const Scenario& scenario) {
  Json json = {{"version", 1}, {"transforms", Json::array()}};
  if (!scenario.trace.empty()) json["trace"] = scenario.trace;
  if (!scenario.machine.empty()) json["machine"] = scenario.machine;
  AllocatorSettings allocator = scenario.allocator, defaults;
  if (Json memory = write_json(allocator); memory != write_json(defaults)) json["memory"] = memory;
  for (std::size_t i = 0; i < scenario.transforms.size(); ++i) {
    Json step = write_json(*scenario.transforms[i]);
    const std::string use = i < scenario.uses.size() ? scenario.uses[i] : std::string();
    step["use"] = kind_of(use);
    json["transforms"].push_back(std::move(step));
  }
  if (!scenario.reports.empty()) json["reports"] = scenario.reports;
  if (scenario.samples_per_step > 0) json["samples_per_step"] = scenario.samples_per_step;
  if (scenario.tokens_per_step > 0) json["tokens_per_step"] = scenario.tokens_per_step;
  for (const std::string& text : scenario.asserts) json["assert"].push_back(write_assert(text));
  return json;
}

std::string to_text(const Scenario& scenario) { return json_line(write_scenario(scenario)); }

const std::vector<ReportEntry>& reports() {
  static const std::vector<ReportEntry> entries = [] {
    std::vector<ReportEntry> all{
        {"csv", "One line of comma-separated figures, with a heading"},
        {"json", "One object, schema foretrace.prediction/1"},
    };
    for (const DocumentForm& form : document_forms()) {
      if (form.file_help.empty()) all.push_back({form.name, form.summary});
    }
    std::ranges::sort(all, {}, &ReportEntry::name);
    return all;
  }();
  return entries;
}

}  // namespace foretrace

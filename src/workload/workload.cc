#include "workload/workload.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/assignments.h"
#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "workload/hugging_face.h"
#include "workload/registered.h"

namespace foretrace {
namespace {

struct Family {
  std::string_view name, summary;
  std::unique_ptr<Workload> (*make)();
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
#define FAMILY(name, summary) {#name, summary, make_##name},
#include "workload/families.def"
#undef FAMILY
  };
  return all;
}

struct Preset {
  std::string_view name, summary, family, settings;
  std::vector<std::string_view> published_names;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
#define PRESET(...) {__VA_ARGS__},
#include "workload/presets.def"
#undef PRESET
  };
  return all;
}

std::unique_ptr<Workload> named_workload(const std::string& name) {
  for (const Family& family : families()) {
    if (family.name == name) return family.make();
  }
  const auto published_names = presets_recorded_as(name);
  for (const Preset& preset : presets()) {
    if (preset.name != name && (published_names.empty() || preset.name != published_names.front()))
      continue;
    auto workload = named_workload(std::string(preset.family));
    read_json(parse_json<nlohmann::json>(preset.settings), *workload);
    return workload;
  }
  std::vector<std::string_view> names;
  for (const WorkloadEntry& entry : workloads()) names.push_back(entry.name);
  throw Error(fmt::format("there is no model '{}'{}; must be the path of a JSON file or one of {}",
                          name, did_you_mean(name, names), joined(names)));
}

std::unique_ptr<Workload> workload_of_file(const std::string& path) {
  return within(path, [&] {
    nlohmann::json json = read_json_file(path);
    if (is_hugging_face(json) && !json.contains("use")) {
      auto workload = named_workload("transformer");
      read_json(hugging_face_settings(json), *workload);
      return workload;
    }
    if (!json.is_object() || !json.contains("use") || !json["use"].is_string())
      throw Error(
          "must be an object with \"use\": the name of a family or a preset, or a config.json of "
          "Hugging Face");
    auto workload = named_workload(json["use"].get<std::string>());
    json.erase("use");
    read_json(json, *workload);
    return workload;
  });
}

}  // namespace

double Workload::parameters() const {
  double sum = 0;
  for (const LayerRow& row : layers(LayerSlice{}))
    sum += row.all_parameters * static_cast<double>(row.count);
  return sum;
}

double Workload::operations() const {
  double sum = 0;
  for (const LayerRow& row : layers(LayerSlice{}))
    sum += row.operations * static_cast<double>(row.count);
  return sum;
}

const std::vector<WorkloadEntry>& workloads() {
  static const std::vector<WorkloadEntry> all = [] {
    std::vector<WorkloadEntry> list;
    for (const Family& family : families()) list.push_back({family.name, family.summary});
    for (const Preset& preset : presets()) list.push_back({preset.name, preset.summary});
    std::ranges::sort(list, {}, &WorkloadEntry::name);
    return list;
  }();
  return all;
}

std::vector<std::string_view> presets_recorded_as(std::string_view name) {
  const std::string letters = letters_and_digits(name);
  std::vector<std::string_view> found;
  for (const Preset& preset : presets()) {
    if (letters_and_digits(preset.name) == letters ||
        std::ranges::find(preset.published_names, letters) != preset.published_names.end())
      found.push_back(preset.name);
  }
  return found;
}

std::unique_ptr<Workload> find_workload(std::string_view name_or_path) {
  // A colon within the name of a file is no end of it.
  const std::size_t ending = name_or_path.find(".json");
  const std::size_t colon = name_or_path.find(':', ending == name_or_path.npos ? 0 : ending);
  const std::string name(name_or_path.substr(0, colon));
  auto workload = is_path(name) ? workload_of_file(name) : named_workload(name);
  if (colon != std::string_view::npos) {
    within(name_or_path.substr(0, colon),
           [&] { read_assigned(name_or_path.substr(colon + 1), *workload); });
  }
  workload->check();
  return workload;
}

}  // namespace foretrace

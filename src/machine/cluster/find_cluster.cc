#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/fields/assignments.h"
#include "base/files/json_file.h"
#include "base/json_text.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "machine/cluster/machine_file.h"
#include "machine/cluster/readers.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

struct Preset {
  std::string_view name, summary, file;
};

constexpr Preset kPresets[] = {
#define PRESET(name, summary, file) {name, summary, file},
#include "machine/cluster/presets.def"
#undef PRESET
};

const Preset* preset_named(std::string_view name) {
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

[[noreturn]] void refuse_name(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ClusterEntry& entry : clusters()) names.push_back(entry.name);
  throw Error(fmt::format(
      "must be one of {}, or a file (.json, .xml of NCCL, .yml of ASTRA-sim), got \"{}\"{}",
      joined(names), name, did_you_mean(name, names)));
}

/// Applies "extends": a file may start from a preset and list only the differences. A "network" or
/// "domain" that contains "use" replaces the preset's entirely.
Json resolve_extends(Json file) {
  if (!file.is_object() || !file.contains("extends")) return file;
  const Json name = file["extends"];
  file.erase("extends");
  const Preset* base =
      name.is_string() ? preset_named(name.get_ref<const std::string&>()) : nullptr;
  if (!base) throw Error("extends: must be a built-in machine, got " + json_line(name));
  Json all = resolve_extends(parse_json<Json>(base->file));
  for (const char* key : {"network", "domain"}) {
    if (file.contains(key) && file[key].is_object() && file[key].contains("use")) all.erase(key);
  }
  all.merge_patch(file);
  return all;
}

MachineFile read_preset(const Preset& preset) {
  Json json = resolve_extends(parse_json<Json>(preset.file));
  json["name"] = preset.name;
  return machine_from_json(std::move(json));
}

/// A machine that consists only of a topology, with one device per host.
struct TopologyMachine final : Described {
  explicit TopologyMachine(MachineFile& made) : machine(made) {}
  void describe(Fields& fields) override {
    fields.text("device", machine.device, "Device model");
    fields.integer("hosts", machine.hosts, "Number of devices", 1, 1'000'000);
    machine.network->describe(fields);
  }
  void check() const override { machine.network->check(); }
  MachineFile& machine;
};

constexpr std::int64_t kGenericHosts = 8;

MachineFile topology_machine(const TopologyEntry& entry, std::string_view settings) {
  MachineFile machine;
  machine.name = machine.use = entry.name;
  machine.source = "as given; settings that were not given are assumed";
  machine.network = entry.make();
  machine.hosts = kGenericHosts;
  TopologyMachine all(machine);
  if (!settings.empty()) read_assigned(settings, all);
  if (machine.network->size() > 0) machine.hosts = machine.network->size();
  return machine;
}

bool ends_in(std::string_view name, std::string_view ending) { return name.ends_with(ending); }

bool names_file(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEndings = {".json", ".xml", ".yml", ".yaml"};
  return name.find('/') != name.npos ||
         std::any_of(kEndings.begin(), kEndings.end(),
                     [&](std::string_view ending) { return ends_in(name, ending); });
}

MachineFile read_file(const std::string& path) {
  if (ends_in(path, ".xml")) return read_nccl_topology(read_text_file(path));
  if (ends_in(path, ".yml") || ends_in(path, ".yaml"))
    return read_astra_network(read_text_file(path));
  return machine_from_json(resolve_extends(parse_json_text(read_text_file(path))));
}

/// Returns where the settings of "dgx-h100:hosts=4" or "a:b/c.json:hosts=4" begin: they contain a =
/// and are not the name of a file.
std::size_t end_of_name(std::string_view text) {
  std::error_code none;
  if (std::filesystem::is_regular_file(text, none)) return text.size();
  const bool file = text.find('/') != text.npos || names_file(text.substr(0, text.find(':')));
  const std::size_t equals = text.find('=');
  if (!file) return std::min(text.find(':'), text.size());
  const std::size_t colon = text.rfind(':', equals);
  return equals == text.npos || colon == text.npos ? text.size() : colon;
}

/// If the number of hosts is not given, adds whole hosts until all ranks have a device.
void add_hosts_for_ranks(MachineFile& machine, const std::string& settings, std::int64_t ranks) {
  const bool given = ("," + settings).find(",hosts=") != settings.npos;
  const std::int64_t size = machine.network ? machine.network->size() : 0;
  if (given || ranks <= 0 || size > 0) return;
  machine.hosts = 1;
  const std::int64_t devices = build_cluster(machine, 0).facts.devices_per_host;
  machine.hosts = (ranks + devices - 1) / devices;
}

MachineFile read_machine(std::string_view name_or_path, std::int64_t ranks) {
  const std::size_t end = end_of_name(name_or_path);
  const std::string name(name_or_path.substr(0, end));
  const std::string settings(name_or_path.substr(std::min(end + 1, name_or_path.size())));
  return within(name, [&] {
    if (names_file(name)) {
      MachineFile machine = read_file(name);
      if (!settings.empty()) read_assigned(settings, machine);
      return machine;
    }
    MachineFile machine;
    if (const Preset* preset = preset_named(name)) {
      machine = read_preset(*preset);
      if (!settings.empty()) read_assigned(settings, machine);
    } else if (const TopologyEntry* entry = topology_named(name)) {
      machine = topology_machine(*entry, settings);
    } else {
      refuse_name(name);
    }
    add_hosts_for_ranks(machine, settings, ranks);
    return machine;
  });
}

}  // namespace

const std::vector<ClusterEntry>& clusters() {
  static const std::vector<ClusterEntry> sorted = [] {
    std::vector<ClusterEntry> all;
    for (const Preset& preset : kPresets) all.push_back({preset.name, preset.summary});
    for (const TopologyEntry& entry : topologies()) all.push_back({entry.name, entry.summary});
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }();
  return sorted;
}

Cluster find_cluster(std::string_view name_or_path, std::int64_t ranks) {
  const MachineFile machine = read_machine(name_or_path, ranks);
  return within(name_or_path, [&] { return build_cluster(machine, ranks); });
}

double fabric_share(const std::vector<FabricTier>& tiers, std::int64_t hosts) {
  double share = 1;
  for (const FabricTier& tier : tiers) {
    if (hosts > tier.hosts) share = std::min(share, tier.share);
  }
  return share;
}

Json cluster_json(std::string_view name_or_path, std::int64_t ranks) {
  MachineFile machine = read_machine(name_or_path, ranks);
  return machine_to_json(machine);
}

}  // namespace foretrace

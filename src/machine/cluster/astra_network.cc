// Reads the input of ASTRA-sim's analytical network: parallel lists with one entry per dimension,
// innermost first. Bandwidth is in GB/s (10^9 bytes), per link and direction; latency in ns.
//
//     topology: [ Ring, Switch ]
//     npus_count: [ 8, 4 ]
//     bandwidth: [ 200.0, 50.0 ]
//     latency: [ 50.0, 2000.0 ]
//
// The file does not say what a host is: the first dimension is taken as one host. Traffic to an NPU
// that differs in several dimensions is relayed by other NPUs, as in ASTRA-sim.

#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>

#include "base/config/config.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {
namespace {

using NamedLists = std::map<std::string, std::vector<std::string>>;

/// The names with their lists; a value alone is a list of one.
NamedLists lists_of(const std::vector<ConfigValue>& values) {
  NamedLists all;
  for (const ConfigValue& value : values) {
    const std::size_t dot = value.key.find('.');
    const std::string key = value.key.substr(0, dot);
    if (dot != std::string::npos && !parse_number<int>(value.key.substr(dot + 1)))
      throw Error(key + ": must be a list of plain values");
    all[key].push_back(value.text);
  }
  return all;
}

const std::vector<std::string>& entries(const NamedLists& lists, const std::string& key,
                                        std::size_t dimensions) {
  const auto found = lists.find(key);
  if (found == lists.end()) throw Error(key + ": must be given, with a value per dimension");
  if (dimensions > 0 && found->second.size() != dimensions) {
    throw Error(fmt::format("{}: must have {} values, as topology has, got {}", key, dimensions,
                            found->second.size()));
  }
  return found->second;
}

double number(const std::string& text, const std::string& key, double least) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= least) || *value > 1e9)
    throw Error(
        fmt::format("{}: must be a number of at least {}, got \"{}\"", key, to_text(least), text));
  return *value;
}

std::string topology_of(const std::string& name) {
  if (name == "Ring") return "ring";
  if (name == "FullyConnected") return "fully_connected";
  if (name == "Switch") return "switch";
  throw Error(fmt::format("topology: must be Ring, FullyConnected or Switch, got \"{}\"", name));
}

}  // namespace

MachineFile read_astra_network(std::string_view yaml) {
  const NamedLists lists = lists_of(yaml_values(yaml));
  if (lists.empty()) throw Error("must be a mapping with settings such as topology: [ Ring ]");
  for (const auto& [key, values] : lists) {
    if (key != "topology" && key != "npus_count" && key != "bandwidth" && key != "latency") {
      throw Error(fmt::format(
          "there is no setting \"{}\"; the settings are bandwidth, latency, npus_count, topology",
          key));
    }
  }
  const auto& names = entries(lists, "topology", 0);
  if (names.empty()) throw Error("topology: must have at least one dimension");
  nlohmann::json levels = nlohmann::json::array();
  std::int64_t all = 1, inner = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    constexpr std::int64_t kMax = 1'000'000;
    const auto entry = [&](const char* key) { return entries(lists, key, names.size())[i]; };
    const auto npus = static_cast<std::int64_t>(number(entry("npus_count"), "npus_count", 1));
    if (npus > kMax / all) throw Error("npus_count: must be at most 1,000,000 in all");
    all *= npus;
    if (i == 0) inner = npus;
    constexpr double kGiga = 1e9;
    const Bandwidth bandwidth{number(entry("bandwidth"), "bandwidth", 0) * kGiga};
    if (!(bandwidth.bytes_per_second > 0)) throw Error("bandwidth: must be above 0");
    const Nanoseconds latency = scaled(1ns, number(entry("latency"), "latency", 0));
    levels.push_back(fmt::format("{}*{}:bandwidth={},latency={},kind={}", npus,
                                 topology_of(names[i]), to_exact_text(bandwidth),
                                 to_exact_text(latency), i == 0 ? "nvlink" : "network"));
  }
  nlohmann::json machine = {{"name", "astra-network"},
                            {"source", "read from a network of ASTRA-sim"},
                            {"hosts", all / inner},
                            {"devices_relay", true},
                            {"host", {{"devices", {fmt::format("npu[0-{}]", inner - 1)}}}},
                            {"network", {{"use", "hierarchical"}, {"levels", levels}}}};
  MachineFile read = machine_from_json(std::move(machine));
  read.notes.add(Severity::info,
                 "the file does not say what a host is; the first dimension is taken as one host");
  return read;
}

}  // namespace foretrace

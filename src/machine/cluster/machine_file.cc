#include "machine/cluster/machine_file.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMaxHosts = 100'000;

Json take_member(Json& object, const char* key) {
  Json value = object.value(key, Json());
  object.erase(key);
  return value;
}

std::vector<LinkGroup> read_links(const Json& list) {
  std::vector<LinkGroup> links;
  if (list.is_null()) return links;
  if (!list.is_array()) throw Error("links: must be a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    within(fmt::format("links[{}]", i), [&] {
      read_json(list[i], links.emplace_back());
      if (links.back().from.empty()) throw Error("from: must be given");
      if (!list[i].contains("bandwidth"))
        throw Error("bandwidth: must be given, such as \"25GB/s\"");
    });
  }
  return links;
}

/// Returns the settings that differ from those of `fresh`.
Json without_defaults(Described& object, Described& fresh) {
  Json now = write_json(object);
  const Json before = write_json(fresh);
  for (const auto& [name, value] : before.items()) {
    if (now.contains(name) && now[name] == value) now.erase(name);
  }
  return now;
}

/// Returns the topology of this key, whose settings are still to be read; nullptr without the key.
std::shared_ptr<Topology> take_topology(Json& json, const std::string& key, std::string& use) {
  if (!json.contains(key)) return nullptr;
  return within(key, [&]() -> std::shared_ptr<Topology> {
    if (!json[key].is_object() || !json[key].contains("use"))
      throw Error("must be an object such as {\"use\": \"switch\"}");
    const Json name = take_member(json[key], "use");
    if (!name.is_string()) throw Error("use: must be the name of a topology");
    use = name.get<std::string>();
    return within("use", [&] { return make_topology(use); });
  });
}

void write_topology(const std::shared_ptr<Topology>& topology, const std::string& key,
                    const std::string& use, Json& json) {
  if (!topology) return;
  json[key] = without_defaults(*topology, *make_topology(use));
  json[key]["use"] = use;
}

Json links_json(std::vector<LinkGroup>& links) {
  Json list = Json::array();
  for (LinkGroup& link : links) {
    LinkGroup fresh;
    list.push_back(without_defaults(link, fresh));
  }
  return list;
}

Json list_schema() {
  LinkGroup link;
  Json items = json_schema(link);
  items["required"] = {"from", "bandwidth"};
  return {{"type", "array"}, {"items", items}, {"description", "Cables"}};
}

Json network_schema(std::string_view description) {
  Json kinds = Json::array();
  for (const TopologyEntry& entry : topologies()) {
    Json schema = json_schema(*entry.make());
    schema["title"] = entry.name;
    schema["description"] = entry.summary;
    schema["properties"]["use"] = {{"const", entry.name}};
    schema["required"] = {"use"};
    kinds.push_back(std::move(schema));
  }
  return {{"type", "object"},
          {"description", description},
          {"required", {"use"}},
          {"oneOf", std::move(kinds)}};
}

}  // namespace

void LinkGroup::describe(Fields& fields) {
  static const std::vector<std::string_view> patterns = {"blocks", "cycle", "all", "mesh", "ring"};
  fields.text("from", from, "Names of nodes, such as gpu[0-7]");
  fields.text("to", to, "Names of nodes at the other ends; not for mesh and ring");
  fields.choice("pattern", pattern, patterns,
                "blocks: the first nodes to the first one, and so on; cycle: in turn; all: each to "
                "each; mesh, ring: among \"from\"");
  fields.choice("kind", kind, link_kind_names(), "Kind of the cable");
  fields.bandwidth("bandwidth", bandwidth, "Bandwidth of one cable, each way");
  fields.optional_time("latency", latency,
                       "Latency from end to end; the usual one of its kind if left out", 0ns);
  fields.integer("count", count, "Parallel cables between each pair", 1, 1'000'000);
  fields.flag("one_way", one_way, "Traffic flows only from \"from\" to \"to\"");
}

void HostModel::describe(Fields& fields) {
  fields.texts("devices", devices, "Names of its devices");
  fields.texts("nics", nics, "Names of its NICs");
  fields.texts("switches", switches, "Names of its NVSwitches and PCIe switches");
  fields.texts("cpus", cpus, "Names of its sockets");
}

void FactSettings::describe(Fields& fields) {
  static const std::vector<std::string_view> cpus = {"unknown", "intel", "amd", "arm", "power"};
  static const std::vector<std::string_view> answers = {"unknown", "yes", "no"};
  fields.optional_integer("architecture", architecture,
                          "Compute capability of the devices times ten: 80 is Ampere, 90 Hopper",
                          0);
  fields.choice("cpu", cpu, cpus, "Maker of the CPU");
  fields.choice("nvls", nvls, answers, "Whether NVSwitches reduce (NVLink SHARP)");
  fields.choice("sharp", sharp, answers, "Whether switches of the network reduce");
}

void MachineFile::describe(Fields& fields) {
  fields.text("name", name, "Name of the machine");
  fields.text("source", source, "Source of the figures");
  fields.text("device", device, "Device model: a built-in device or a device file");
  fields.integer("hosts", hosts, "Number of hosts, named node0, node1, ...", 1, kMaxHosts);
  fields.flag("devices_relay", devices_relay, "Devices relay traffic of others");
  fields.object("facts", facts, "Facts that NCCL uses to choose an algorithm");
  fields.object("host", host, "Parts of each host, and the links inside it");
  fields.texts("switches", switches, "Names of switches outside of hosts");
  fields.texts("placement", placement,
               "The device of each rank, such as node[0-1]/gpu[0-7]; all, in order, if left out");
  fields.integer("domain_hosts", domain_hosts, "Number of hosts whose devices \"domain\" connects",
                 1, kMaxHosts);
  if (network) fields.object("network", *network, "Topology that connects the hosts");
  if (domain) fields.object("domain", *domain, "Topology that connects devices without NICs");
}

MachineFile machine_from_json(Json json) {
  if (!json.is_object()) throw Error("must be an object, such as {\"hosts\": 2, \"host\": {...}}");
  MachineFile machine;
  take_member(json, "$schema");
  take_member(json, "$comment");
  machine.links = read_links(take_member(json, "links"));
  if (json.contains("host") && json["host"].is_object()) {
    within("host", [&] { machine.host.links = read_links(take_member(json["host"], "links")); });
  }
  machine.network = take_topology(json, "network", machine.use);
  machine.domain = take_topology(json, "domain", machine.domain_use);
  read_json(json, machine);
  if (machine.name.empty()) machine.name = "machine";
  return machine;
}

Json machine_to_json(MachineFile& machine) {
  MachineFile fresh;
  Json json = without_defaults(machine, fresh);
  json["hosts"] = machine.hosts;
  HostModel no_host;
  json["host"] = without_defaults(machine.host, no_host);
  if (!machine.host.links.empty()) json["host"]["links"] = links_json(machine.host.links);
  FactSettings no_facts;
  if (json.contains("facts")) json["facts"] = without_defaults(machine.facts, no_facts);
  if (!machine.links.empty()) json["links"] = links_json(machine.links);
  write_topology(machine.network, "network", machine.use, json);
  write_topology(machine.domain, "domain", machine.domain_use, json);
  return json;
}

Json cluster_schema() {
  MachineFile machine;
  Json schema = json_schema(machine);
  schema["$schema"] = "http://json-schema.org/draft-07/schema#";
  schema["title"] = "Foretrace machine";
  schema["description"] = "Hosts, their devices, and the links between them";
  Json& properties = schema["properties"];
  properties["$schema"] = {{"type", "string"}};
  properties["$comment"] = Json::object();
  properties["extends"] = {{"type", "string"},
                           {"description", "A built-in machine; this file lists the differences"}};
  properties["links"] = list_schema();
  properties["host"]["properties"]["links"] = list_schema();
  properties["network"] = network_schema(
      "Topology that connects the NICs of all hosts, or their devices if they have none");
  properties["domain"] = network_schema(
      "Topology that connects the devices of domain_hosts hosts directly, such as the NVSwitches "
      "of a rack");
  return schema;
}

}  // namespace foretrace

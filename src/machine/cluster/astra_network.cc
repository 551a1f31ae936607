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

#include <yaml.h>

#include <fmt/core.h>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/parse_number.h"
#include "foretrace/error.h"
#include "machine/cluster/readers.h"

namespace foretrace {
namespace {

using NamedLists = std::map<std::string, std::vector<std::string>>;

/// A YAML document, freed by the destructor.
class Document {
 public:
  explicit Document(std::string_view text) {
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) throw Error("there is not enough memory to read it");
    const std::unique_ptr<yaml_parser_t, decltype(&yaml_parser_delete)> owner(&parser,
                                                                              &yaml_parser_delete);
    yaml_parser_set_input_string(&parser, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
    if (!yaml_parser_load(&parser, &document_)) {
      throw Error(fmt::format("line {}: must be YAML, got {}", parser.problem_mark.line + 1,
                              parser.problem ? parser.problem : "something else"));
    }
  }
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document() { yaml_document_delete(&document_); }

  /// Throws Error unless it is a mapping of names to lists.
  NamedLists lists() {
    const yaml_node_t* root = yaml_document_get_root_node(&document_);
    if (!root || root->type != YAML_MAPPING_NODE)
      throw Error("must be a mapping with settings such as topology: [ Ring ]");
    NamedLists all;
    for (const yaml_node_pair_t* pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; ++pair) {
      const std::string key = scalar(pair->key);
      all[key] = within(key, [&] { return list(pair->value); });
    }
    return all;
  }

 private:
  std::string scalar(int id) {
    const yaml_node_t* node = yaml_document_get_node(&document_, id);
    if (!node || node->type != YAML_SCALAR_NODE) throw Error("must be a list of plain values");
    return {reinterpret_cast<const char*>(node->data.scalar.value), node->data.scalar.length};
  }

  std::vector<std::string> list(int id) {
    const yaml_node_t* node = yaml_document_get_node(&document_, id);
    if (!node || node->type != YAML_SEQUENCE_NODE) return {scalar(id)};
    std::vector<std::string> values;
    for (const int* item = node->data.sequence.items.start; item < node->data.sequence.items.top;
         ++item) {
      values.push_back(scalar(*item));
    }
    return values;
  }

  yaml_document_t document_;
};

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
  const NamedLists lists = Document(yaml).lists();
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
    constexpr std::int64_t kMost = 1'000'000;
    const auto entry = [&](const char* key) { return entries(lists, key, names.size())[i]; };
    const auto npus = static_cast<std::int64_t>(number(entry("npus_count"), "npus_count", 1));
    if (npus > kMost / all) throw Error("npus_count: must be at most 1,000,000 in all");
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

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>

#include "base/wording.h"
#include "cli/options/command.h"
#include "document/words/table.h"
#include "document/words/wrapped.h"
#include "foretrace/cluster.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/machine.h"
#include "foretrace/scenario.h"
#include "foretrace/transform.h"
#include "network/collective.h"
#include "network/network.h"
#include "question/common/forms.h"
#include "schedule/schedule.h"
#include "transform/synonyms.h"
#include "workload/workload.h"

namespace foretrace {
namespace {

std::string counts_text(const Cluster& cluster) {
  std::map<NodeKind, std::int64_t> in_host, outside;
  for (const ClusterNode& node : cluster.nodes) {
    if (node.host == 0) ++in_host[node.kind];
    if (node.host < 0) ++outside[node.kind];
  }
  const auto count = [&](NodeKind kind, std::string_view noun) {
    return in_host[kind] > 0 ? ", " + counted(in_host[kind], noun) : "";
  };
  const std::int64_t outer = outside[NodeKind::switch_];
  std::string text =
      fmt::format("{}, each with {}{}{}{}", counted(cluster.hosts, "host"),
                  counted(in_host[NodeKind::device], "device"), count(NodeKind::nic, "NIC"),
                  count(NodeKind::switch_, "switch"), count(NodeKind::host, "CPU"));
  if (outer > 0) text += fmt::format("; {} outside of them", counted(outer, "switch"));
  return text;
}

std::string endpoint_name(const Cluster& cluster, std::uint32_t node) {
  const ClusterNode& end = cluster.nodes[node];
  if (end.kind == NodeKind::host) return "CPU";
  if (end.kind == NodeKind::nic) return "NIC";
  return std::string(to_string(end.kind));
}

/// Returns a table with one row for all links that are alike, in either direction.
Table link_table(const Cluster& cluster) {
  using Row = std::tuple<LinkKind, std::string, double, Nanoseconds, std::uint32_t>;
  std::map<Row, std::int64_t> rows;
  for (const ClusterLink& link : cluster.links) {
    const std::string from = endpoint_name(cluster, link.from),
                      to = endpoint_name(cluster, link.to);
    ++rows[{link.kind, fmt::format("{} - {}", std::min(from, to), std::max(from, to)),
            link.bandwidth.bytes_per_second, link.latency, link.count}];
  }
  Table table{.heading = {"links", "between", "one-way links", "bandwidth", "latency", "cables"},
              .rows = {},
              .left = {0, 1}};
  for (const auto& [row, number] : rows) {
    const auto& [kind, ends, bandwidth, latency, cables] = row;
    table.rows.push_back({std::string(to_string(kind)), ends, grouped(number),
                          to_text(Bandwidth{bandwidth}), to_text(latency), grouped(cables)});
  }
  return table;
}

/// Returns a table of typical routes from rank 0: to a neighbor, to another host, to the last rank.
Table route_table(const Network& network) {
  Table table{.heading = {"from rank 0 to", "links", "equal routes", "narrowest", "latency"},
              .rows = {}};
  const auto add = [&](std::uint32_t rank, const std::string& place) {
    std::vector<LinkId> route;
    network.route(0, rank, 0, route);
    Bandwidth narrowest = network.links()[route.front()].bandwidth;
    Nanoseconds latency{0};
    for (const LinkId link : route) {
      narrowest = std::min(narrowest, network.links()[link].bandwidth);
      latency += network.links()[link].latency;
    }
    table.rows.push_back({fmt::format("rank {}{}", grouped(rank), place), grouped(route.size()),
                          grouped(network.paths(0, rank)), to_text(narrowest), to_text(latency)});
  };
  const std::uint32_t ranks = network.ranks();
  std::uint32_t other = 1;
  while (other < ranks && network.host_of(other) == network.host_of(0)) ++other;
  if (other > 1) add(1, ", same host");
  if (other < ranks) add(other, ", next host");
  if (ranks > other + 1) add(ranks - 1, ", the last");
  return table;
}

std::string yes_or_no(const std::optional<bool>& fact) {
  return !fact ? "unknown" : *fact ? "yes" : "no";
}

std::string facts_text(const HostFacts& facts) {
  return fmt::format(
      "architecture {}, CPU {}, NVLS {}, SHARP {}, {} in an NVLink domain, NICs of a host {}",
      facts.architecture ? std::to_string(*facts.architecture) : "unknown",
      facts.cpu.empty() ? "unknown" : facts.cpu, yes_or_no(facts.nvls), yes_or_no(facts.sharp),
      counted(facts.devices_per_nvlink_domain, "device"),
      facts.nic_bandwidth ? to_text(*facts.nic_bandwidth) : "unknown");
}

/// Describes a machine: its hosts and their devices, its links by kind, the routes between ranks,
/// and the source of the figures.
void write_machine(const Network& network, std::ostream& out) {
  const Cluster& cluster = network.cluster();
  out << cluster.name << ": " << counted(network.ranks(), "rank")
      << (cluster.device.empty() ? "" : " on " + cluster.device) << '\n';
  out << "  " << counts_text(cluster) << '\n';
  if (!cluster.source.empty()) out << "  source: " << cluster.source << '\n';
  out << '\n';
  write_aligned(link_table(cluster), out, "  ");
  if (network.ranks() > 1) {
    out << '\n';
    try {
      write_aligned(route_table(network), out, "  ");
    } catch (const Error& error) {
      out << "  " << error.what() << '\n';
    }
    out << "\n  bisection: " << to_text(network.bisection())
        << " from the first half of the ranks to the second\n";
  }
  out << "  for NCCL: " << facts_text(cluster.facts) << '\n';
  for (const Note& note : cluster.notes.all()) out << "  " << note_text(note) << '\n';
}

using Rows = std::vector<std::pair<std::string, std::string>>;

template <class Entries>
Rows rows_of(const Entries& entries) {
  Rows rows;
  for (const auto& entry : entries) rows.emplace_back(entry.name, entry.summary);
  return rows;
}

Rows device_rows() {
  Rows rows;
  for (const std::string_view name : device_names()) {
    const DeviceModel device = find_device(name);
    const bool tensor_cores = device.bf16.flops_per_second > 0;
    const Throughput half = tensor_cores ? device.bf16 : device.fp16;
    const std::string what = tensor_cores ? " bf16, " : " fp16, ";
    rows.emplace_back(name, fmt::format("{}{} fp32, {}, {}",
                                        half.flops_per_second > 0 ? to_text(half) + what : "",
                                        to_text(device.fp32), to_text(device.memory_bandwidth),
                                        to_text(device.memory)));
  }
  return rows;
}

struct Listing {
  std::string_view name;
  Rows (*rows)();
};

/// Shows what each common name stands for, in one row for all names of the same step.
Rows synonym_rows() {
  Rows rows;
  for (const Synonym& synonym : synonyms()) {
    std::string step(synonym.transform);
    if (!synonym.settings.empty()) step += ":" + std::string(synonym.settings);
    std::string words = joined(synonym.words);
    if (!synonym.value.empty()) words += "; with =VALUE it sets " + std::string(synonym.value);
    rows.emplace_back(std::move(step), std::move(words));
  }
  return rows;
}

constexpr Listing kLists[] = {
    {"collectives", [] { return rows_of(algorithms()); }},
    {"commands", [] { return rows_of(outer_commands()); }},
    {"devices", device_rows},
    {"exporters", [] { return rows_of(exporters()); }},
    {"importers", [] { return rows_of(importers()); }},
    {"machines", [] { return rows_of(clusters()); }},
    {"models", [] { return rows_of(workloads()); }},
    {"reports", [] { return rows_of(reports()); }},
    {"schedules", [] { return rows_of(schedules()); }},
    {"synonyms", synonym_rows},
    {"transforms", [] { return rows_of(transforms()); }},
};

void print(const Listing& list, std::ostream& out) {
  const Rows rows = list.rows();
  std::size_t width = 0;
  for (const auto& [name, summary] : rows) width = std::max(width, name.size());
  for (const auto& [name, summary] : rows) {
    out << name << std::string(width - name.size() + 2, ' ') << summary << '\n';
  }
}

/// Prints one list, or all if `what` is empty.
void list(std::string_view what, std::ostream& out) {
  bool is_first = true;
  for (const Listing& list : kLists) {
    if (list.name == what) return print(list, out);
    if (!what.empty()) continue;
    out << (is_first ? "" : "\n") << list.name << ":\n";
    print(list, out);
    is_first = false;
  }
}

class ListCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    std::vector<std::string_view> names;
    for (const Listing& list : kLists) names.push_back(list.name);
    fields.as({.value = "WHAT", .is_positional = true})
        .choice("what", what_, names, "What to list; everything by default");
    fields.as({.value = "MACHINE", .is_positional = true})
        .name_or_path("machine", machine_,
                      "With machines: one to show, by name and settings (dgx-h100:hosts=16) or as "
                      "a file: our JSON, NCCL's topology (.xml), ASTRA-sim's network (.yml)");
    fields.integer("ranks", ranks_, "With a machine: show it with room for this many ranks", 1,
                   10'000'000);
    fields.choice("format", format_, {"text", "json"}, "Format of the result");
  }

  void run(Invocation& invocation) override {
    const bool json = format_ == "json";
    if (machine_.empty() && (json || ranks_ > 0))
      throw Error(
          "list: --format and --ranks need a machine, as in `foretrace list machines dgx-h100`");
    if (machine_.empty()) return list(what_, invocation.out);
    if (what_ != "machines")
      throw Error(
          fmt::format("list: only machines take a name to show, got '{} {}'", what_, machine_));
    if (json) return print_json(cluster_json(machine_, ranks_), invocation.out);
    write_machine(Network(find_cluster(machine_, ranks_)), invocation.out);
  }

 private:
  std::string what_, machine_, format_ = "text";
  std::int64_t ranks_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_list_command() { return std::make_unique<ListCommand>(); }

}  // namespace foretrace

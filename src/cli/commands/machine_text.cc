#include "cli/commands/machine_text.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <ostream>
#include <tuple>

#include "base/wording.h"
#include "document/words/table.h"
#include "document/words/wrapped.h"
#include "foretrace/error.h"

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

}  // namespace

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

}  // namespace foretrace

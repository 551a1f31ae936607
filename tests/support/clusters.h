#pragma once

// Machines for tests: from files, as text, and drawn at random.

#include <random>
#include <string>

#include "foretrace/cluster.h"
#include "support/folder.h"

namespace foretrace {

/// The cluster that a machine file with this text describes, or the message of the Error without
/// the path.
template <class Ask>
std::string asked_of_file(const std::string& name, const std::string& text, const Ask& ask) {
  const Folder folder;
  const std::string path = folder.write(name, text);
  try {
    return ask(path);
  } catch (const std::exception& error) {
    std::string message = error.what();
    for (std::size_t at; (at = message.find(path)) != message.npos;)
      message.replace(at, path.size(), name);
    return message;
  }
}

/// One line for each rank and for each link: "node0/gpu0 -> leaf0 network 50 GB/s 1 us x1".
inline std::string text_of(const Cluster& cluster) {
  std::string text;
  for (const std::uint32_t node : cluster.placement) text += cluster.nodes[node].name + "\n";
  for (const ClusterLink& link : cluster.links) {
    text += cluster.nodes[link.from].name + " -> " + cluster.nodes[link.to].name + " " +
            std::string(to_string(link.kind)) + " " + to_text(link.bandwidth) + " " +
            to_text(link.latency) + " x" + std::to_string(link.count) + "\n";
  }
  return text;
}

/// Random small hosts with devices, NICs, switches and CPUs, joined by few switches; any link may
/// exist. All bandwidths are whole numbers, so that their sums are exact.
inline Cluster random_cluster(std::mt19937& random, std::int32_t hosts, bool hosts_touch) {
  const auto below = [&](std::uint32_t count) {
    return static_cast<std::uint32_t>(random() % count);
  };
  Cluster cluster;
  cluster.name = "random";
  cluster.hosts = hosts;
  cluster.devices_relay = below(2) == 0;
  for (std::int32_t host = 0; host < hosts; ++host) {
    for (const NodeKind kind :
         {NodeKind::device, NodeKind::device, NodeKind::nic, NodeKind::host}) {
      const std::string name =
          "node" + std::to_string(host) + "/" + std::to_string(cluster.nodes.size());
      if (kind == NodeKind::device)
        cluster.placement.push_back(static_cast<std::uint32_t>(cluster.nodes.size()));
      cluster.nodes.push_back({name, kind, host});
    }
  }
  for (const char* name : {"leaf0", "leaf1"})
    cluster.nodes.push_back({name, NodeKind::switch_, -1});
  const auto nodes = static_cast<std::uint32_t>(cluster.nodes.size());
  for (std::uint32_t from = 0; from < nodes; ++from) {
    for (std::uint32_t to = 0; to < nodes; ++to) {
      const std::int32_t here = cluster.nodes[from].host, there = cluster.nodes[to].host;
      const bool touch = here >= 0 && there >= 0 && here != there;
      if (from == to || (touch && !hosts_touch) || below(3) > 0) continue;
      cluster.links.push_back(
          {from, to, {1.0 + below(9)}, Nanoseconds{10 * below(5)}, LinkKind::other, 1});
    }
  }
  return cluster;
}

}  // namespace foretrace

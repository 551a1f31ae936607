#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "foretrace/error.h"
#include "network/fabric.h"
#include "network/host_segments.h"
#include "network/network.h"
#include "support/clusters.h"

namespace foretrace {
namespace {

Network network_of(const std::string& name, std::int64_t ranks = 0) {
  return Network(find_cluster(name, ranks));
}

std::string route_text(const Network& network, std::uint32_t from, std::uint32_t to,
                       std::uint64_t seed = 0) {
  std::vector<LinkId> route;
  network.route(from, to, seed, route);
  if (route.empty()) return "";
  const auto& nodes = network.cluster().nodes;
  std::string text = nodes[network.links()[route.front()].from].name;
  for (const LinkId link : route) text += " " + nodes[network.links()[link].to].name;
  return text;
}

// An oracle: it finds the cost of the best path between two devices by relaxing all links until
// nothing changes, and the number of paths by walking all of them. Where hosts share no link, a
// path has three stages: the first host, switches, and the last host.
class Oracle {
 public:
  Oracle(const Cluster& cluster, bool touch, std::uint32_t from, std::uint32_t to)
      : cluster_(cluster), touch_(touch), from_(from), to_(to) {
    cost_.assign(3, std::vector<PathCost>(cluster.nodes.size(), kNoPath));
    for (auto& stage : cost_) stage[to] = 0;
    if (!touch && host(from) != host(to)) cost_[0][to] = kNoPath;
    cost_[1][to] = touch ? 0 : kNoPath;
    for (bool changed = true; changed;) {
      changed = false;
      each([&](const ClusterLink& link, std::size_t stage, std::size_t next) {
        const PathCost way = through(link, next);
        if (way < cost_[stage][link.from]) cost_[stage][link.from] = way, changed = true;
      });
    }
  }

  PathCost cost() const { return cost_[0][from_]; }
  std::uint64_t ways() const { return ways(from_, 0); }

 private:
  std::int32_t host(std::uint32_t node) const { return cluster_.nodes[node].host; }

  std::uint64_t ways(std::uint32_t node, std::size_t at) const {
    if (node == to_) return 1;
    std::uint64_t all = 0;
    each([&](const ClusterLink& link, std::size_t stage, std::size_t next) {
      if (link.from == node && stage == at && through(link, next) != kNoPath &&
          through(link, next) == cost_[stage][node])
        all += ways(link.to, next);
    });
    return all;
  }

  template <class Visit>
  void each(const Visit& visit) const {
    for (const ClusterLink& link : cluster_.links) {
      const std::int32_t a = host(link.from), b = host(link.to);
      if (touch_) {
        visit(link, 0, 0);
        continue;
      }
      if (a == host(from_) && b == a) visit(link, 0, 0);
      if (a == host(from_) && b < 0) visit(link, 0, 1);
      if (a < 0 && b < 0) visit(link, 1, 1);
      if (a < 0 && b == host(to_)) visit(link, 1, 2);
      if (a == host(to_) && b == a) visit(link, 2, 2);
    }
  }

  PathCost through(const ClusterLink& link, std::size_t next) const {
    const NodeKind kind = cluster_.nodes[link.to].kind;
    const bool blocked = kind == NodeKind::device && !cluster_.devices_relay && link.to != to_;
    if (blocked || cost_[next][link.to] == kNoPath) return kNoPath;
    return cost_[next][link.to] + link_cost(link) +
           (kind == NodeKind::host && link.to != to_ ? kThroughHost : 0);
  }

  const Cluster& cluster_;
  bool touch_;
  std::uint32_t from_, to_;
  std::vector<std::vector<PathCost>> cost_;  ///< By stage and node.
};

/// The cost of a route; fails unless the route leads from one node to the other.
PathCost cost_of(const Cluster& cluster, const std::vector<LinkId>& route, std::uint32_t from,
                 std::uint32_t to) {
  PathCost cost = 0;
  for (const LinkId link : route) {
    EXPECT_EQ(cluster.links[link].from, from);
    from = cluster.links[link].to;
    cost += link_cost(cluster.links[link]) +
            (cluster.nodes[from].kind == NodeKind::host ? kThroughHost : 0);
  }
  EXPECT_EQ(from, to);
  return cost;
}

TEST(Routes, AreTheShortestOfRandomClusters) {
  std::mt19937 random(1);
  int found = 0, missing = 0;
  for (int run = 0; run < 300; ++run) {
    SCOPED_TRACE(run);
    const bool touch = run % 2 == 0;
    const Cluster cluster = random_cluster(random, 3, touch);
    const Network network(cluster);
    for (std::uint32_t pair = 0; pair < network.ranks() * network.ranks(); ++pair) {
      const std::uint32_t from = pair / network.ranks(), to = pair % network.ranks();
      if (from == to) continue;
      const std::uint32_t start = cluster.placement[from], end = cluster.placement[to];
      const Oracle oracle(cluster, touch, start, end);
      std::vector<LinkId> route;
      if (oracle.cost() == kNoPath) {
        EXPECT_THROW(network.route(from, to, 0, route), Error);
        ++missing;
        continue;
      }
      ++found;
      network.route(from, to, static_cast<std::uint64_t>(run), route);
      EXPECT_EQ(cost_of(cluster, route, start, end), oracle.cost());
      // Where hosts share no link, segments inside hosts are fixed, so fewer paths are
      // distinguished.
      if (touch) {
        EXPECT_EQ(network.paths(from, to), oracle.ways());
      } else {
        EXPECT_LE(network.paths(from, to), oracle.ways());
      }
    }
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(missing, 10);
}

TEST(Routes, EachPathIsAnotherRoute) {
  for (const char* name :
       {"torus:shape=3x3x3", "dgx-h100:hosts=3", "dragonfly:hosts=24,ports=2,switches=3"}) {
    SCOPED_TRACE(name);
    const Network network = network_of(name);
    for (std::uint32_t to = 1; to < network.ranks(); ++to) {
      std::set<std::vector<LinkId>> routes;
      std::vector<LinkId> route;
      for (std::uint32_t path = 0; path < network.paths(0, to); ++path) {
        network.path(0, to, path, route);
        cost_of(network.cluster(), route, network.cluster().placement[0],
                network.cluster().placement[to]);
        routes.insert(route);
      }
      EXPECT_EQ(routes.size(), network.paths(0, to));
      network.route(0, to, 5, route);
      EXPECT_TRUE(routes.contains(route));
      EXPECT_THROW(network.path(0, to, network.paths(0, to), route), Error);
    }
  }
}

TEST(Routes, OfATorusAreCountedAsOrdersOfItsSteps) {
  const Network network = network_of("torus:shape=5x5x5");
  EXPECT_EQ(network.paths(0, 1), 1U);
  EXPECT_EQ(network.paths(0, 1 + 5), 2U);
  EXPECT_EQ(network.paths(0, 1 + 5 + 25), 6U);
  EXPECT_EQ(network.paths(0, 2 + 2 * 5 + 2 * 25), 90U);  // 6! / (2! 2! 2!)
  EXPECT_EQ(network.paths(0, 4), 1U);                    // Around the other way.
  EXPECT_EQ(network_of("ring:hosts=6").paths(0, 3), 2U);
}

TEST(Routes, StayOnTheirRailAndInTheirHost) {
  const Network h100 = network_of("dgx-h100");
  EXPECT_EQ(route_text(h100, 0, 0), "");
  EXPECT_EQ(route_text(h100, 0, 7), "node0/gpu0 node0/nvswitch node0/gpu7");
  EXPECT_EQ(route_text(h100, 3, 11),
            "node0/gpu3 node0/pcie3 node0/nic3 leaf3 node1/nic3 node1/pcie3 node1/gpu3");
  EXPECT_EQ(h100.paths(3, 11), 1U);
  EXPECT_EQ(h100.paths(3, 12), 32U);
  // Two devices and two NICs share a PCIe switch: each device uses its own NIC.
  const Network a100 = network_of("dgx-a100");
  EXPECT_EQ(route_text(a100, 1, 9),
            "node0/gpu1 node0/pcie0 node0/nic1 leaf1 node1/nic1 node1/pcie0 node1/gpu1");
}

TEST(Routes, PreferNvlinkToAsManyHopsOverPcie) {
  for (const char* name : {"dgx-a100", "aws-p4d", "dgx-h100"}) {
    const Network network = network_of(name);
    for (std::uint32_t from = 0; from < 8; ++from) {
      for (std::uint32_t to = 0; to < 8; ++to) {
        std::vector<LinkId> route;
        if (from != to) network.route(from, to, 0, route);
        for (const LinkId link : route)
          EXPECT_EQ(network.links()[link].kind, LinkKind::nvlink) << name << from << " " << to;
      }
    }
  }
}

TEST(Routes, RelayOverNvlinksOfADgx1) {
  const Network network = network_of("dgx-1v");
  EXPECT_EQ(route_text(network, 0, 3), "node0/gpu0 node0/gpu3");
  std::vector<LinkId> route;
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 0; to < 8; ++to) {
      network.route(from, to, 0, route);
      EXPECT_LE(route.size(), 2U);
      for (const LinkId link : route) EXPECT_EQ(network.links()[link].kind, LinkKind::nvlink);
    }
  }
}

TEST(Routes, ARackIsLeftOnlyForAnotherOne) {
  const Network network = network_of("gb200-nvl72:hosts=36");
  EXPECT_EQ(route_text(network, 0, 71), "node0/gpu0 domain0/switch0 node17/gpu3");
  EXPECT_EQ(route_text(network, 0, 1), "node0/gpu0 domain0/switch0 node0/gpu1");
  EXPECT_EQ(route_text(network, 0, 72),
            "node0/gpu0 node0/cpu0 node0/nic0 leaf0 node18/nic0 node18/cpu0 node18/gpu0");
}

TEST(Routes, OfAlpsTakeThePublishedTime) {
  // ATLAHS, case study on Alps: L = 3700 ns. One group has the 512 ports of 128 hosts.
  const Network network = network_of("alps:hosts=600");
  Nanoseconds longest{0};
  std::vector<LinkId> route;
  for (std::uint32_t to = 0; to < network.ranks(); to += 4) {
    network.route(0, to, 0, route);
    Nanoseconds latency{0};
    for (const LinkId link : route) latency += network.links()[link].latency;
    longest = std::max(longest, latency);
  }
  EXPECT_EQ(longest, 3700ns);
}

TEST(Routes, SpreadOverEqualOnesBySeed) {
  const Network network = network_of("fat_tree:hosts=64,ports=8,spines=4");
  std::map<std::string, int> taken;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) ++taken[route_text(network, 0, 63, seed)];
  EXPECT_EQ(taken.size(), 4U);
  for (const auto& [route, times] : taken) EXPECT_NEAR(times, 1000, 120) << route;
}

TEST(Routes, AreTheSameWhateverWasAskedBefore) {
  const Network asked = network_of("torus:shape=4x4x4");
  for (std::uint32_t from = 0; from < 64; ++from) route_text(asked, from, 63);
  for (std::uint32_t from = 0; from < 64; ++from)
    EXPECT_EQ(route_text(asked, from, 63, 3),
              route_text(network_of("torus:shape=4x4x4"), from, 63, 3));
}

TEST(Routes, SayWhichCutHasNoLink) {
  const auto error = [](const std::string& text) {
    return asked_of_file("m.json", text, [](const std::string& path) {
      return route_text(Network(find_cluster(path)), 0, 1);
    });
  };
  EXPECT_EQ(error(R"({"name": "apart", "hosts": 2, "host": {"cpus": ["cpu0"], "links": [
      {"from": "gpu0", "to": "cpu0", "bandwidth": "1GB/s"}]}})"),
            "apart: no route from rank 0 (node0/gpu0) to rank 1 (node1/gpu0): no link leads from "
            "the nodes that the first rank reaches (node0/gpu0, node0/cpu0) to the rest "
            "(node1/gpu0, node1/cpu0)");
  // A device in between does not forward, unless the machine says that devices do.
  const std::string line =
      R"({"name": "line", "placement": ["node0/gpu[0,2,1]"], "host": {"devices": ["gpu[0-2]"],
      "links": [{"from": "gpu[0,1]", "to": "gpu[1,2]", "bandwidth": "1GB/s"}]})";
  EXPECT_EQ(
      error(line + "}"),
      "line: no route from rank 0 (node0/gpu0) to rank 1 (node0/gpu2): no link leads from the "
      "nodes that the first rank reaches (node0/gpu0, node0/gpu1) to the rest (node0/gpu2)");
  EXPECT_EQ(error(line + R"(, "devices_relay": true})"), "node0/gpu0 node0/gpu1 node0/gpu2");
}

TEST(Bisection, IsTheLeastCutOfRandomClusters) {
  std::mt19937 random(2);
  for (int run = 0; run < 60; ++run) {
    SCOPED_TRACE(run);
    const Cluster cluster = random_cluster(random, 2, run % 2 == 0);
    const std::size_t nodes = cluster.nodes.size(), half = cluster.placement.size() / 2;
    std::uint32_t first = 0, second = 0;
    for (std::size_t i = 0; i < cluster.placement.size(); ++i)
      (i < half ? first : second) |= 1U << cluster.placement[i];
    double least = 1e300;
    for (std::uint32_t side = 0; side < 1U << nodes; ++side) {
      if ((side & first) != first || (side & second) != 0) continue;
      double cut = 0;
      for (const ClusterLink& link : cluster.links) {
        const bool relays = cluster.devices_relay;
        // No path passes through a device of the first half, or continues from one of the second.
        const bool useless =
            !relays && ((first >> link.to & 1U) != 0 || (second >> link.from & 1U) != 0);
        if (!useless && (side >> link.from & 1U) != 0 && (side >> link.to & 1U) == 0)
          cut += link.bandwidth.bytes_per_second;
      }
      least = std::min(least, cut);
    }
    EXPECT_EQ(Network(cluster).bisection().bytes_per_second, least);
  }
}

TEST(Bisection, OfRegularNetworksIsKnown) {
  const auto gigabytes = [](const std::string& name) {
    return network_of(name).bisection().bytes_per_second / 1e9;
  };
  EXPECT_NEAR(gigabytes("ring:hosts=8,bandwidth=50GB/s"), 2 * 50, 1e-6);
  EXPECT_NEAR(gigabytes("torus:shape=4x4,bandwidth=50GB/s"), 2 * 4 * 50, 1e-6);
  EXPECT_NEAR(gigabytes("torus:shape=4x4,bandwidth=50GB/s,wrap=false"), 4 * 50, 1e-6);
  EXPECT_NEAR(gigabytes("fully_connected:hosts=6,bandwidth=10GB/s"), 3 * 3 * 10, 1e-6);
  EXPECT_NEAR(gigabytes("switch:hosts=8,bandwidth=10GB/s"), 4 * 10, 1e-6);
  EXPECT_NEAR(gigabytes("fat_tree:hosts=64,ports=8,spines=4,bandwidth=10GB/s"), 32 * 10, 1e-6);
  EXPECT_NEAR(gigabytes("fat_tree:hosts=64,ports=8,spines=4,bandwidth=10GB/s,oversubscription=2"),
              16 * 10, 1e-6);
  EXPECT_NEAR(gigabytes("fat_tree:hosts=64,ports=8,spines=4,leaves=2,cores=2,bandwidth=10GB/s"),
              32 * 10, 1e-6);
  // Two switches of two in a group: one cable joins them, but detours would use all three.
  EXPECT_NEAR(gigabytes("dragonfly:hosts=4,ports=2,switches=4,bandwidth=40GB/s"), 25, 1e-6);
  EXPECT_NEAR(gigabytes("dragonfly:hosts=4,ports=2,switches=4,bandwidth=40GB/s,adaptive=true"),
              3 * 25, 1e-6);
  EXPECT_NEAR(gigabytes("dragonfly:hosts=8,ports=2,switches=2,bandwidth=90GB/s,adaptive=true"),
              4 * 25, 1e-6);
  EXPECT_NEAR(gigabytes("dgx-h100"), 8 * 48, 1e-6);
  EXPECT_NEAR(gigabytes("dgx-h100:hosts=1"), 4 * (18 * 20.6 + 48), 1e-6);  // NVLinks and NICs.
  EXPECT_EQ(network_of("dgx-h100", 1).bisection().bytes_per_second, 0);
}

TEST(Network, HoldsAThousandDevicesOfOneHost) {
  Cluster cluster;
  cluster.hosts = 1;
  for (std::uint32_t i = 0; i < 1025; ++i) {
    cluster.placement.push_back(i);
    cluster.nodes.push_back({"gpu" + std::to_string(i), NodeKind::device, 0});
  }
  try {
    host_segments(cluster);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "a host must have at most 1,024 devices, because the path between each two of "
                 "them is kept, got 1,025");
  }
}

TEST(Network, HoldsSixteenThousandDevices) {
  const Network network = network_of("dgx-h100", 16384);
  EXPECT_EQ(network.ranks(), 16384U);
  EXPECT_EQ(network.host_of(16383), 2047);
  std::vector<LinkId> route;
  network.route(0, 16383, 0, route);
  EXPECT_EQ(route.size(), 10U);  // Two levels above the leaves.
}

}  // namespace
}  // namespace foretrace

// The orders of rings within a node, on the meshes of built-in machines.

#include "network/collectives/nvlink_rings.h"

#include <gtest/gtest.h>

#include <map>

namespace foretrace {
namespace {

/// How often the rings go from one rank to another, for each pair.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> hops(
    const std::vector<RingOrder>& rings) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> all;
  for (const RingOrder& ring : rings) {
    for (std::size_t i = 0; i < ring.size(); ++i) ++all[{ring[i], ring[(i + 1) % ring.size()]}];
  }
  return all;
}

/// Expects that the rings go from each rank to each other one `times` for every cable between them.
void expect_all_cables(const std::string& machine, std::uint32_t ranks, double times) {
  SCOPED_TRACE(machine);
  const Network network(find_cluster(machine, ranks));
  const auto used = hops(nvlink_rings(network, ranks));
  const Cluster& cluster = network.cluster();
  std::size_t pairs = 0;
  for (const ClusterLink& link : cluster.links) {
    if (link.kind != LinkKind::nvlink || cluster.nodes[link.from].host != 0) continue;
    const auto rank = [&](std::uint32_t node) {
      return static_cast<std::uint32_t>(std::ranges::find(cluster.placement, node) -
                                        cluster.placement.begin());
    };
    ++pairs;
    EXPECT_DOUBLE_EQ(used.at({rank(link.from), rank(link.to)}), times * link.count);
  }
  EXPECT_EQ(used.size(), pairs);
}

TEST(NvlinkRings, UseAllCablesOfMeshes) {
  expect_all_cables("dgx-1v", 8, 1);
  expect_all_cables("alps", 4, 2. / 6);
  expect_all_cables("perlmutter", 4, 2. / 4);
}

TEST(NvlinkRings, AreOneWhereDevicesMeetAtASwitchOrOnPcie) {
  const std::vector<RingOrder> one = {{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(nvlink_rings(Network(find_cluster("dgx-h100", 8)), 8), one);
  EXPECT_EQ(nvlink_rings(Network(find_cluster("pcie-box", 8)), 8), one);
}

TEST(NvlinkRings, LeaveOutPairsWithoutACable) {
  // Every two of the first three devices of a DGX-1V are joined, by one cable at least.
  EXPECT_EQ(nvlink_rings(Network(find_cluster("dgx-1v", 3)), 3).size(), 2U);
  for (const RingOrder& ring : nvlink_rings(Network(find_cluster("dgx-1v", 6)), 6))
    EXPECT_EQ(ring.size(), 6U);
}

}  // namespace
}  // namespace foretrace

// NCCL's sends: the number of channels for a peer by its rules, and times against those that others
// measured.

#include "network/nccl/sends.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/statistics.h"
#include "network/nccl/measured.h"

namespace foretrace {
namespace {

TEST(Sends, APeerOnAnotherNodeHasTwoChannelsUntilThereAreTooManyRanks) {
  EXPECT_EQ(channels_per_peer(2, 1, 48), 2U);
  EXPECT_EQ(channels_per_peer(8, 1, 48), 2U);
  EXPECT_EQ(channels_per_peer(10, 1, 48), 1U);
  EXPECT_EQ(channels_per_peer(5, 1, 24), 1U);
  EXPECT_EQ(channels_per_peer(32, 4, 48), 2U);
  EXPECT_EQ(channels_per_peer(40, 4, 48), 1U);
  EXPECT_EQ(channels_per_peer(32, 8, 48), 2U);
  EXPECT_EQ(channels_per_peer(64, 8, 48), 1U);
}

TEST(Sends, AMessageWithinANodeGetsMoreChannelsAsItGrows) {
  EXPECT_DOUBLE_EQ(local_peer_rate(8, 64 << 20), 80);
  EXPECT_DOUBLE_EQ(local_peer_rate(8, 128 << 20), 160);
  EXPECT_DOUBLE_EQ(local_peer_rate(4, 128 << 20), 160);
  EXPECT_DOUBLE_EQ(local_peer_rate(8, 1e12), 640);
}

RankPlaces eight_on_nvlink() {
  return {.ranks = 8, .nodes = 1, .per_node = 8, .intra = 370.8, .kind = LinkKind::nvlink};
}

TEST(Sends, SmallMessagesUseLl) {
  const double small = sends_us(Operation::all_to_all, eight_on_nvlink(), 90, Bytes{128 << 10});
  const double large =
      sends_us(Operation::all_to_all, eight_on_nvlink(), 90, Bytes{(128 << 10) + 8});
  EXPECT_GT(large, small + 2);
}

TEST(Sends, ANodeMoreAddsThePeersOnIt) {
  const RankPlaces two{
      .ranks = 8, .nodes = 2, .per_node = 4, .intra = 370, .inter = 192, .nics = 4};
  RankPlaces three = two;
  three.ranks = 12, three.nodes = 3;
  const double more = sends_us(Operation::all_to_all, three, 90, Bytes{12 << 20}) -
                      sends_us(Operation::all_to_all, two, 90, Bytes{12 << 20});
  const double wire = (12 << 20) / 48e3 * (2. / 3 - 1. / 2);
  EXPECT_NEAR(more, wire + 4 * .65 * 14, 10);
}

// The ninth rank of two nodes of eight exchanges eight ninths of its buffer over its own NIC.
TEST(Sends, ARankAloneOnItsNodeSendsNearlyAllOverItsNic) {
  RankPlaces places{
      .ranks = 9, .nodes = 2, .per_node = 8, .intra = 370, .inter = 8 * 48, .nics = 8};
  const double us = sends_us(Operation::all_to_all, places, 90, Bytes{64 << 20});
  EXPECT_NEAR(us, (64 << 20) / 48e3 * 8 / 9, 150);
  places.inter = 3, places.nics = 1;  // One NIC for all: the full node's is as busy.
  EXPECT_NEAR(sends_us(Operation::all_to_all, places, 90, Bytes{64 << 20}),
              (64 << 20) / 3e3 * 8 / 9, 300);
}

/// Median error of measured rows of 1 MiB and more, from the machine alone.
double off(const std::string& machine, const std::string& rows, Operation operation) {
  const std::string path =
      std::string(std::getenv("FORETRACE_CORPUS")) + "/../data/measured/nccl.csv";
  std::vector<double> errors;
  for (const MeasuredCollective& row : read_measured_file(path, operation, {"machine=" + rows})) {
    if (row.operation != operation || row.bytes.count < (1 << 20)) continue;
    Cluster cluster = find_cluster(machine, row.nodes * 8);
    const auto devices = static_cast<std::size_t>(cluster.facts.devices_per_host);
    const std::size_t per_node = row.nodes == 1 ? devices : row.ranks / row.nodes;
    std::vector<std::uint32_t> chosen;
    for (std::size_t i = 0; i < cluster.placement.size() && chosen.size() < row.ranks; ++i) {
      if (i % devices < per_node) chosen.push_back(cluster.placement[i]);
    }
    cluster.placement = chosen;
    const std::int64_t architecture = cluster.facts.architecture.value();
    const RankPlaces places = places_of(Network(std::move(cluster)));
    errors.push_back(std::abs(sends_us(operation, places, architecture, row.bytes) / row.us - 1));
  }
  return median(errors);
}

TEST(Sends, AreNearWhatWasMeasuredOnOtherMachines) {
  if (std::getenv("FORETRACE_CORPUS") == nullptr) GTEST_SKIP() << "needs FORETRACE_CORPUS";
  EXPECT_LE(off("dgx-a100", "a100_sxm", Operation::all_to_all), .17);
  EXPECT_LE(off("dgx-h100", "h100_sxm", Operation::all_to_all), .12);
  EXPECT_LE(off("gb200-nvl72", "gb200", Operation::all_to_all), .15);
  EXPECT_LE(off("dgx-h100", "cluster01", Operation::all_to_all), .06);
  EXPECT_LE(off("dgx-h100", "cluster01", Operation::send_receive), .06);
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/transform.h"

namespace foretrace {
namespace {

/// An all-reduce of four ranks, and one of unknown size.
Graph communicating() {
  Graph graph = parse_graph(R"(
    stream: B 4 {phase=backward}
    nccl: c:collective 8, d:collective 6
)");
  const TaskId first = graph.first(LaneId{1});
  const NameId name = graph.names().intern("ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  graph.collectives().push_back(
      {.task = first, .operation = name, .group_size = 4, .bytes = Bytes{4'000'000}});
  graph.collectives().push_back({.task = graph.next(first), .operation = name, .group_size = 4});
  return graph;
}

Effect on_network(Graph& graph, const std::string& settings) {
  return read_transform_text("network:" + settings)->apply(graph, {});
}

TEST(Network, ACollectiveIsScaledByWhatTheModelSaysOfBothNetworks) {
  Graph graph = communicating();
  const Effect effect =
      on_network(graph, "from.bandwidth=1GB/s,from.latency=0us,bandwidth=4GB/s,latency=0us");
  const TaskId first = graph.first(LaneId{1});
  EXPECT_EQ(graph.task(first).duration, 2us);
  EXPECT_EQ(graph.task(graph.next(first)).duration, 6us);
  EXPECT_EQ(effect.changed, 1U);
  ASSERT_EQ(effect.notes.all().size(), 1U);
  EXPECT_EQ(effect.notes.all().front().count, 1);
}

TEST(Network, TheSameNetworkChangesNoDuration) {
  Graph graph = communicating();
  on_network(graph, "from.machine=dgx-a100,machine=dgx-a100");
  EXPECT_EQ(graph.task(graph.first(LaneId{1})).duration, 8us);
}

TEST(Network, AChangeThatNothingCrossesIsWarnedOf) {
  Graph graph = parse_graph("stream: B 4 {phase=backward}");
  const Effect effect = on_network(graph, "from.machine=dgx-a100,machine=dgx-h100");
  EXPECT_EQ(effect.changed, 0U);
  ASSERT_EQ(effect.notes.all().size(), 1U);
  EXPECT_EQ(effect.notes.all().front().severity, Severity::warning);
}

TEST(Network, CollectivesOfUnknownSizeAreRefused) {
  Graph graph = parse_graph("nccl: c:collective 8");
  EXPECT_THROW(on_network(graph, "from.machine=dgx-a100,machine=dgx-h100"), Error);
}

TEST(Network, BothNetworksMustBeGiven) {
  Graph graph = communicating();
  try {
    on_network(graph, "machine=dgx-h100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("from: machine: must be given"))
        << error.what();
  }
}

TEST(Network, AllWaitForASlowLink) {
  Graph graph = communicating();
  on_network(graph,
             "from.bandwidth=1GB/s,from.latency=0us,bandwidth=1GB/s,latency=0us,slow_link=0.25");
  EXPECT_EQ(graph.task(graph.first(LaneId{1})).duration, 32us);
}

TEST(Network, OnAMachineASlowLinkCostsUpToWhatItLost) {
  for (const char* const how : {"auto", "ring"}) {
    Graph graph = communicating();
    graph.collectives().front().bytes = Bytes{1 << 30};
    graph.collectives().front().group_size = 32;
    const std::string algorithm = std::string(",algorithm=") + how;
    on_network(graph, "from.machine=dgx-a100,machine=dgx-a100,slow_link=0.5" + algorithm +
                          ",from.algorithm=" + how);
    const Nanoseconds duration = graph.task(graph.first(LaneId{1})).duration;
    EXPECT_GT(duration, 14us) << how;
    EXPECT_LE(duration, 16us) << how;
  }
}

}  // namespace
}  // namespace foretrace

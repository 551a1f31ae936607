// Gradients as packets: step times by transport and loss, and what is refused.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// Four gradients of 1 MB, the front layers last, summed over 8 workers by a server in 20 ms.
Graph pushing(const char* operation = "allreduce", std::int32_t ranks = 8,
              Bytes bytes = {1'000'000}) {
  Graph graph = parse_graph(R"(
    stream: D 4 {phase=backward step=0}, C 4 {phase=backward step=0}, B 4 {phase=backward step=0}, A 4 {phase=backward step=0}, U 2 {phase=update step=0}
    network: w:collective 1280 {phase=backward step=0}, x:collective 1280 {phase=backward step=0}, y:collective 1280 {phase=backward step=0}, z:collective 1280 {phase=backward step=0}
    D -> w
    C -> x
    B -> y
    A -> z
    z -> U
    @step one
)");
  const NameId name = graph.names().intern(operation);
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id))
    graph.collectives().push_back(
        {.task = id, .operation = name, .group_size = ranks, .bytes = bytes});
  return graph;
}

constexpr const char* kServer =
    "drop_packets:algorithm=parameter_server,servers=1,bandwidth=12.5GB/s,latency=2us";

double figure_of(const Effect& effect, const std::string& name) {
  for (const Figure& figure : effect.figures) {
    if (figure.name == name) return magnitude(figure);
  }
  ADD_FAILURE() << name;
  return -1;
}

Effect dropped(const std::string& settings, Graph graph = pushing()) {
  return read_transform_text(settings)->apply(graph, {});
}

std::string refused(const std::string& settings, Graph graph = pushing()) {
  try {
    read_transform_text(settings)->apply(graph, {});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(DropPackets, WithoutQueuesTransfersTakeTheirTime) {
  const Effect effect = dropped(
      "drop_packets:transport=reliable,algorithm=ring,bandwidth=12.5GB/s,latency=2us,slice=1500B");
  // A switch stores each packet before it sends it on: 120 ns in each of 14 rounds.
  const double ratio = figure_of(effect, "transfer_after") / figure_of(effect, "transfer_before");
  EXPECT_NEAR(ratio, 1 + 14 * .12 / 168, .001);
  EXPECT_EQ(effect.changed, 4U);
}

TEST(DropPackets, BoundedLossAvoidsTheTimeoutsOfServers) {
  const std::string shallow = std::string(kServer) + ",port_buffer=225kB,slice=1500B";
  const auto many = [] { return pushing("allreduce", 32, {200'000}); };
  const Effect dctcp = dropped(shallow + ",transport=dctcp", many());
  const Effect bounded = dropped(shallow + ",loss=0.01", many());
  EXPECT_GT(figure_of(dctcp, "timeouts"), 0);
  EXPECT_LT(figure_of(bounded, "transfer_after"), figure_of(dctcp, "transfer_after") * .5);
  EXPECT_GT(figure_of(bounded, "dropped_unimportant"), 0);
  EXPECT_LE(figure_of(bounded, "missing_share"), .01);
  EXPECT_LT(figure_of(bounded, "missing_magnitude"), .02);
  EXPECT_EQ(figure_of(dctcp, "missing_share"), 0);
}

TEST(DropPackets, TimeFallsWithTheLossThatIsAdmitted) {
  double before = 1e300;
  for (const char* loss : {"0.001", "0.006", "0.012", "0.02", "0.035"}) {
    const double time = figure_of(dropped(std::string(kServer) + ",port_buffer=225kB,loss=" + loss),
                                  "transfer_after");
    EXPECT_LE(time, before * 1.005) << loss;
    before = time;
  }
}

TEST(DropPackets, LossMayDifferByLayerAndWithProgress) {
  const auto after = [](const std::string& more) {
    return figure_of(dropped(std::string(kServer) + ",port_buffer=225kB" + more), "transfer_after");
  };
  EXPECT_EQ(after(",loss=0.004,front_loss=0.004"), after(",loss=0.004"));
  EXPECT_LT(after(",loss=0.004,front_loss=0.03"), after(",loss=0.004"));
  EXPECT_EQ(after(",loss=0.01,late_loss=0.03,progress=0"), after(",loss=0.01"));
  EXPECT_LT(after(",loss=0.01,late_loss=0.03,progress=1"), after(",loss=0.01"));
}

TEST(DropPackets, RecordedTransfersScaleFromTheirTransport) {
  const std::string shallow = std::string(kServer) + ",port_buffer=225kB,slice=1500B";
  EXPECT_NEAR(figure_of(dropped(shallow + ",transport=dctcp,before=dctcp"), "transfer_after"),
              figure_of(dropped(shallow + ",transport=dctcp,before=dctcp"), "transfer_before"), 4);
  EXPECT_LT(figure_of(dropped(shallow + ",before=dctcp"), "transfer_after"),
            figure_of(dropped(shallow), "transfer_after"));
}

TEST(DropPackets, IsRefusedWithASentence) {
  EXPECT_EQ(refused(std::string(kServer) + ",loss=0.05"),
            "drop_packets: loss: must be at most 0.035, the most that a model tolerated without "
            "more epochs "
            "(DLCP, MLT), unless more_steps says how many more steps training takes; got 0.05");
  EXPECT_EQ(refused(std::string(kServer) + ",loss=0.05,more_steps=0.1"), "");
  EXPECT_EQ(refused(std::string(kServer) + ",pull_loss=0.001", pushing("all_gather")),
            "pull_loss: must be 0 where parameters are gathered, as FSDP and ZeRO do, because a "
            "worker has no earlier values to fall back on; or leave them out with where");
  EXPECT_EQ(refused(kServer, parse_graph("stream: A 4 {phase=backward step=0}\n@step one\n")),
            "nothing in the graph crosses a network; put it behind data_parallel, zero or p3, or "
            "record a job of several ranks");
  EXPECT_EQ(refused(std::string(kServer) + ",port_buffer=100kB,drop_at=200kB"),
            "drop_packets: drop_at: must be at most the buffer of a port, 100kB, got 200kB");
  EXPECT_EQ(refused("drop_packets:before=udp,bandwidth=1GB/s,latency=1us").substr(0, 40),
            "drop_packets: before: transport: must be");
}

TEST(DropPackets, FollowsWhatOtherStepsSend) {
  constexpr auto kJob = R"(
    stream: B 2000 {phase=backward step=0 layer=2}, A 2000 {phase=backward step=0 layer=1}, U 100 {phase=update step=0}, f 500 {phase=forward step=1 layer=1}
    @step one
    @step two
)";
  for (const char* sends :
       {R"("use": "data_parallel", "lateness": "0us", "lateness_share": 0, "copies": false)",
        R"("use": "p3")"}) {
    Graph graph = parse_graph(kJob);
    read_transform(nlohmann::json::parse("{" + std::string(sends) +
                                         R"(, "gpus": 4, "bandwidth": "1.25GB/s", "latency": "10us",
                          "gradient_bytes": "4MB"})"))
        ->apply(graph, {});
    const Effect effect =
        read_transform_text("drop_packets:bandwidth=1.25GB/s,latency=10us")->apply(graph, {});
    EXPECT_GT(effect.changed, 0U) << sends;
    EXPECT_GT(simulate(graph).finish.size(), 0U);
  }
}

}  // namespace
}  // namespace foretrace

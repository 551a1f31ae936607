// Gradients as packets: step times by transport and loss, and what is refused.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// Four gradients of 1 MB, the front layers last; a server sums them over 8 workers in 20 ms.
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
  // A switch stores each packet before it forwards it: 120 ns in each of 14 rounds.
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
    const double time =
        figure_of(dropped(std::string(kServer) + ",order=lane,port_buffer=225kB,loss=" + loss),
                  "transfer_after");
    EXPECT_LE(time, before * 1.005) << loss;
    before = time;
  }
}

TEST(DropPackets, LossMayDifferByLayerAndWithProgress) {
  const auto after = [](const std::string& more) {
    return figure_of(dropped(std::string(kServer) + ",order=lane,port_buffer=225kB" + more),
                     "transfer_after");
  };
  EXPECT_EQ(after(",loss=0.004,front_loss=0.004"), after(",loss=0.004"));
  EXPECT_LT(after(",loss=0.004,front_loss=0.03"), after(",loss=0.004"));
  EXPECT_EQ(after(",loss=0.01,late_loss=0.03,progress=0"), after(",loss=0.01"));
  EXPECT_LT(after(",loss=0.01,late_loss=0.03,progress=1"), after(",loss=0.01"));
}

TEST(DropPackets, RecordedTransfersScaleFromTheirTransport) {
  const std::string shallow = std::string(kServer) + ",order=lane,port_buffer=225kB,slice=1500B";
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
  EXPECT_EQ(
      refused(kServer, parse_graph("stream: A 4 {phase=backward step=0}\n@step one\n")),
      "nothing in the graph crosses a network; put this step after data_parallel, zero or p3, or "
      "record a job of several ranks");
  EXPECT_EQ(refused(std::string(kServer) + ",port_buffer=100kB,drop_at=200kB"),
            "drop_packets: drop_at: must be at most the buffer of a port, 100kB, got 200kB");
  EXPECT_EQ(refused("drop_packets:before=udp,bandwidth=1GB/s,latency=1us").substr(0, 40),
            "drop_packets: before: transport: must be");
}

TEST(DropPackets, TransfersThatAreReadyMeet) {
  const std::string fast = std::string(kServer) + ",transport=reliable,buffer=0B";
  Graph one = pushing(), other = pushing();
  const Effect apart = read_transform_text(fast + ",order=lane")->apply(one, {});
  const Effect met = read_transform_text(fast)->apply(other, {});
  // Each server's port carries 32 MB in and 32 MB out, at the same time if transfers overlap.
  EXPECT_GT(figure_of(met, "transfer_after"), 2.56e6);
  EXPECT_LT(figure_of(met, "transfer_after"), figure_of(apart, "transfer_after") * .7);
  EXPECT_LT(simulate(other).length, simulate(one).length);
  // The update waits for all transfers, not only for the one that began last.
  const Timeline timeline = simulate(other);
  const TaskId update = other.next(other.next(other.next(other.next(other.first(LaneId{0})))));
  for (TaskId id = other.first(LaneId{1}); id != kNoTask; id = other.next(id))
    EXPECT_GE(timeline.start[index(update)], timeline.finish[index(id)]);
}

TEST(DropPackets, TheUpdateWaitsForALargeTransferThatBeganFirst) {
  // The reduce-scatters have half the rounds of a ring, and each round follows one of the large
  // transfer.
  Graph graph = pushing("reduce_scatter", 8, {10'000});
  for (const auto& one : graph.collectives()) graph.task(one.task).duration = 1us;
  graph.collectives().front().operation = graph.names().intern("allreduce");
  graph.collectives().front().bytes = Bytes{8'000'000};
  read_transform_text(
      "drop_packets:algorithm=ring,order=ready,bandwidth=12.5GB/s,latency=2us,transport=reliable")
      ->apply(graph, {});
  const Timeline timeline = simulate(graph);
  const TaskId large = graph.collectives().front().task;
  for (TaskId id = graph.next(large); id != kNoTask; id = graph.next(id))
    EXPECT_LT(timeline.finish[index(id)], timeline.finish[index(large)]);
  EXPECT_EQ(timeline.length, timeline.finish[index(large)] + 2us);
}

TEST(DropPackets, LanesOfOneStepMeet) {
  const auto after = [](bool apart) {
    Graph graph = parse_graph(R"(
    stream: D 4 {phase=backward step=0}, U 2 {phase=update step=0}
    network: w:collective 168 {phase=backward step=0}
    other: x:collective 168 {phase=backward step=0}
    D -> w
    D -> x
    w -> U
    x -> U
    @step one
)");
    for (const std::uint32_t lane : {1U, 2U})
      graph.collectives().push_back({.task = graph.first(LaneId{lane}),
                                     .operation = graph.names().intern("allreduce"),
                                     .group_size = 8,
                                     .bytes = {1'000'000}});
    read_transform_text(std::string("drop_packets:transport=reliable,algorithm=ring,slice=1500B,"
                                    "bandwidth=12.5GB/s,latency=2us") +
                        (apart ? ",where.name=w" : ""))
        ->apply(graph, {});
    return simulate(graph).length;
  };
  EXPECT_GT(after(false), after(true) + 100us);
}

TEST(DropPackets, TakesTheNetworkOfTheStepInFront) {
  const auto network = read_transform_text(
      "data_parallel:gpus=8,algorithm=parameter_server,servers=1,bandwidth=12.5GB/s,latency=2us");
  Context context;
  context.network = network->job_change().network;
  Graph graph = pushing();
  const Effect effect =
      read_transform_text("drop_packets:port_buffer=225kB")->apply(graph, context);
  const Effect told = dropped(std::string(kServer) + ",port_buffer=225kB");
  EXPECT_EQ(figure_of(effect, "transfer_after"), figure_of(told, "transfer_after"));
  EXPECT_EQ(effect.assumptions.front(),
            "packets use the network of the earlier step, 8 GPUs over 12.5 GB/s");
  // Its own settings override those of the step before it.
  const Effect ring =
      read_transform_text("drop_packets:algorithm=ring")->apply(graph = pushing(), context);
  EXPECT_EQ(figure_of(ring, "timeouts"), 0);
  EXPECT_EQ(refused("drop_packets").substr(0, 22), "machine: must be given");
}

/// The cables of the first worker lose 1 % of all packets. Steps of a ring then wait for timeouts,
/// unless some loss is allowed.
TEST(DropPackets, GrayFailureKeepsStepsOfReliableTransportsOnly) {
  const auto length = [](const char* transport, const char* loss) {
    Nanoseconds sum{0};
    for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
      Graph graph = pushing();
      read_transform_text(
          std::string(
              "drop_packets:algorithm=colocated,bandwidth=12.5GB/s,latency=2us,transport=") +
          transport + ",link_loss=" + loss + ",seed=" + seed)
          ->apply(graph, {});
      sum += simulate(graph).length;
    }
    return static_cast<double>(sum.count());
  };
  const double bounded = length("bounded", "0.01") / length("bounded", "0");
  const double reliable = length("reliable", "0.01") / length("reliable", "0");
  std::printf("steps with 1 %% of random loss: bounded %.2f, reliable %.2f times as long\n",
              bounded, reliable);
  EXPECT_LT(bounded, 1.25);
  EXPECT_GT(reliable, 2);
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

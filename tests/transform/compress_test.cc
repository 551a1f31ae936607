#include <gtest/gtest.h>

#include <string>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// 2 MB of gradients in two all-reduces of two ranks. On an A100 of 2.04 TB/s one pass over 2 MB
/// takes 1 us.
Graph sending() {
  Graph graph = parse_graph(R"(
    stream: B 4 {phase=backward step=0}, A 4 {phase=backward step=0}, U 2 {phase=update step=0}
    network: x:collective 8 {phase=backward step=0}, y:collective 8 {phase=backward step=0}
    B -> x
    A -> y
    x -> U
    y -> U
    @step one
)");
  graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  const NameId name = graph.names().intern("allreduce");
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id))
    graph.collectives().push_back(
        {.task = id, .operation = name, .group_size = 2, .bytes = Bytes{4'000'000}});
  return graph;
}

Nanoseconds transfer_after(const std::string& step) {
  Graph graph = sending();
  const Effect effect = read_transform_text(step)->apply(graph, {});
  for (const Figure& figure : effect.figures) {
    if (figure.name == "transfer_after") return std::get<Nanoseconds>(figure.value);
  }
  return -1ns;
}

TEST(Compress, TransfersTakeTheirShareOfTheBytes) {
  EXPECT_EQ(transfer_after("compress:method=fp16"), 8us);
  EXPECT_EQ(transfer_after("compress:method=int8"), 4us);
  // 2 ranks x 1 % x 8 bytes for 4, relative to the traffic of 2 x (2 - 1) / 2 buffers.
  EXPECT_EQ(transfer_after("compress:method=topk,ratio=0.01"), 320ns);
  // Two matrices of 4 columns instead of one of 64.
  EXPECT_EQ(transfer_after("compress:method=powersgd,rank=4,side=64"), 2us);
}

TEST(Compress, LatencyStays) {
  // 4 MB at 1 TB/s take 4 us, and two messages 2 us; in fp16 that is 2 us and 2 us.
  EXPECT_NEAR(static_cast<double>(transfer_after("compress:bandwidth=1TB/s,latency=1us").count()),
              16000 * 4. / 6, 2);
}

TEST(Compress, GatheredValuesGrowWithTheRanks) {
  for (const std::int32_t ranks : {2, 64}) {
    Graph graph = sending();
    for (RecordedCollective& one : graph.collectives()) one.group_size = ranks;
    read_transform_text("compress:method=dgc,ratio=0.001,bandwidth=1GB/s,latency=0us")
        ->apply(graph, {});
    const Nanoseconds whole = graph.task(graph.first(LaneId{1})).duration;
    const Nanoseconds restored =
        time_for(Bytes{4'000'000}, find_device("a100-sxm4-80gb").memory_bandwidth);
    // n-1 of n parts of n x 0.002 of the buffer, relative to 2(n-1)/n of the buffer.
    EXPECT_NEAR(static_cast<double>((whole - restored).count()), 8000 * ranks * .002 / 2, 2);
  }
}

TEST(Compress, KernelsRunBehindTheWorkThatMakesTheGradients) {
  Graph graph = sending();
  read_transform_text("compress:method=fp16")->apply(graph, {});
  std::string names;
  for (TaskId id = graph.first(LaneId{0}); id != kNoTask; id = graph.next(id))
    names += std::string(graph.name(id)) + "; ";
  EXPECT_EQ(names, "B; compress gradients; A; compress gradients; U; ");
}

TEST(Compress, HiddenCommunicationGainsNothing) {
  Graph graph = parse_graph(R"(
    stream: B 4 {phase=backward step=0}, A 40 {phase=backward step=0}, U 2 {phase=update step=0}
    network: x:collective 8 {phase=backward step=0}
    B -> x
    x -> U
    @step one
)");
  graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  graph.collectives().push_back({.task = graph.first(LaneId{1}),
                                 .operation = graph.names().intern("allreduce"),
                                 .group_size = 2,
                                 .bytes = Bytes{4'000'000}});
  read_transform_text("compress:method=int8")->apply(graph, {});
  EXPECT_GE(simulate(graph).length, 46us);
}

TEST(Compress, WhatCannotBeIsRefused) {
  Graph graph = parse_graph("stream: B 4 {phase=backward}");
  graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  EXPECT_THROW(read_transform_text("compress:method=fp16")->apply(graph, {}), Error);
  EXPECT_THROW(read_transform_text("compress:method=topk,ratio=2"), Error);
  EXPECT_THROW(read_transform_text("compress:method=zip"), Error);
}

TEST(LocalSgd, EachStepTakesItsPartOfOneAverageThatNothingHides) {
  Graph graph = sending();
  read_transform_text("local_sgd:every=4")->apply(graph, {});
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
stream  |BBBBAAAA....UU|
network |........yyyy..|
)");
}

TEST(LocalSgd, EveryStepIsAsBefore) {
  Graph graph = sending();
  read_transform_text("local_sgd:every=1")->apply(graph, {});
  EXPECT_EQ("\n" + to_ascii(graph, simulate(graph)), R"(
stream  |BBBBAAAA............UU|
network |....xxxxxxxxyyyyyyyy..|
)");
  EXPECT_THROW(read_transform_text("local_sgd:every=0"), Error);
}

}  // namespace
}  // namespace foretrace

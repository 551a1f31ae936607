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

/// x is in the forward pass; y, of its size, is its counterpart in the backward pass.
TEST(Compress, ExchangesOfActivationsAreNoGradients) {
  Graph graph = sending();
  graph.task(graph.collectives()[0].task).phase = Phase::forward;
  try {
    read_transform_text("compress")->apply(graph, {});
    FAIL() << "must be refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("they exchange activations"), std::string::npos);
  }
  graph.collectives()[1].bytes = Bytes{25'000'000};
  EXPECT_EQ(read_transform_text("compress")->apply(graph, {}).changed, 2U);
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

/// An all-to-all of each pass, of 4 MB among two ranks, beside an all-reduce.
Graph exchanging(const char* type) {
  Graph graph = parse_graph(R"(
    stream: F 4 {phase=forward step=0}, B 4 {phase=backward step=0}, U 2 {phase=update step=0}
    network: t:collective 8 {phase=forward step=0}, b:collective 8 {phase=backward step=0}, g:collective 8 {phase=backward step=0}
    F -> t
    t -> B
    B -> b
    b -> U
    @step one
)");
  graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id)) {
    const bool is_sum = graph.name(id) == "g";
    graph.collectives().push_back(
        {.task = id,
         .operation = graph.names().intern(is_sum ? "allreduce" : "all_to_allv"),
         .type = graph.names().intern(is_sum ? "" : type),
         .group_size = 2,
         .bytes = Bytes{4'000'000}});
  }
  return graph;
}

TEST(Compress, AllToAllsOfBothPassesWhereAskedFor) {
  Graph graph = exchanging("Float");
  read_transform_text("compress:operation=all_to_all,method=int8")->apply(graph, {});
  const auto pass = time_for(Bytes{4'000'000}, find_device("a100-sxm4-80gb").memory_bandwidth);
  const TaskId there = graph.first(LaneId{1}), back = graph.next(there), sum = graph.next(back);
  for (const TaskId id : {there, back})
    EXPECT_NEAR(static_cast<double>((graph.task(id).duration - 2us).count()),
                1.25 * static_cast<double>(pass.count()), 2);
  EXPECT_EQ(graph.task(sum).duration, 8us);
  const TaskId kernel = graph.next(graph.first(LaneId{0}));
  EXPECT_EQ(graph.name(kernel), "compress");
  EXPECT_EQ(graph.task(kernel).phase, Phase::forward);
  EXPECT_NEAR(static_cast<double>(graph.task(kernel).duration.count()),
              2.25 * static_cast<double>(pass.count()), 2);

  Graph only_sums = exchanging("Float");
  read_transform_text("compress:method=int8")->apply(only_sums, {});
  EXPECT_EQ(only_sums.task(only_sums.first(LaneId{1})).duration, 8us);
}

TEST(Compress, IntegersAndNarrowElementsStay) {
  const auto share = [](const char* type, const char* step) {
    Graph graph = exchanging(type);
    const auto transform = read_transform_text(step);
    const double share = transform->applies(graph).share;
    EXPECT_EQ(transform->apply(graph, {}).changed > 0, share > 0) << type;
    return share;
  };
  EXPECT_EQ(share("Float", "compress:operation=all_to_all"), 1);
  EXPECT_EQ(share("BFloat16", "compress:operation=all_to_all"), 0);
  EXPECT_EQ(share("BFloat16", "compress:operation=all_to_all,method=int8"), 1);
  EXPECT_EQ(share("Long", "compress:operation=all_to_all,method=int8"), 0);
  EXPECT_EQ(share("Byte", "compress:operation=all_to_all,method=int8"), 0);
  Graph graph = exchanging("Float");
  graph.collectives()[0].type = graph.names().intern("Long");
  EXPECT_EQ(to_text(read_transform_text("compress:operation=all_to_all")->applies(graph)),
            "applies to 50.0 %: 50.0 % of the time of its transfers is of integers, or of elements "
            "that are no wider than those of fp16");
}

TEST(Compress, AnAllToAllSumsNothing) {
  for (const char* method : {"topk", "dgc", "powersgd"}) {
    Graph graph = exchanging("Float");
    const auto transform =
        read_transform_text(std::string("compress:operation=all_to_all,method=") + method);
    try {
      transform->apply(graph, {});
      ADD_FAILURE() << method;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("method: must be fp16 or int8 for all_to_all"), 0U)
          << error.what();
    }
  }
  Graph sums = sending();
  EXPECT_THROW(read_transform_text("compress:operation=all_to_all")->apply(sums, {}), Error);
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

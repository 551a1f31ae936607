#include <gtest/gtest.h>

#include <string>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// Two GPUs; the network of 1 GB/s sends 4 kB in 4 us.
constexpr auto kTwoBuckets = R"(
    stream: F 3 {phase=forward step=0}, D 2 {phase=backward step=0}, C 2 {phase=backward step=0}, B 2 {phase=backward step=0}, A 2 {phase=backward step=0}, U 2 {phase=update step=0}
    network: all_reduce:collective 4 {phase=backward step=0}, sum:collective 4 {phase=backward step=0}
    C -> all_reduce
    A -> sum
    all_reduce -> U
    sum -> U
    @step one
)";

Graph two_buckets() {
  Graph graph = parse_graph(kTwoBuckets);
  const NameId name = graph.names().intern("allreduce");
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id))
    graph.collectives().push_back(
        {.task = id, .operation = name, .group_size = 2, .bytes = Bytes{4000}});
  return graph;
}

std::string with_buckets(const std::string& settings) {
  Graph graph = two_buckets();
  read_transform_text("bucket_size:bandwidth=1GB/s,latency=0us," + settings)->apply(graph, {});
  return "\n" + to_ascii(graph, simulate(graph));
}

TEST(BucketSize, TheSameSizeChangesNothing) {
  const Graph graph = two_buckets();
  const std::string before = "\n" + to_ascii(graph, simulate(graph));
  EXPECT_EQ(before, with_buckets("bucket=4kB"));
  EXPECT_EQ(before, with_buckets("bucket=4.5kB"));  // A bucket ends with a whole parameter.
}

TEST(BucketSize, OneBucketWaitsForTheLastGradient) {
  EXPECT_EQ(with_buckets("bucket=8kB,first_bucket=8kB"), R"(
stream  |FFFDDCCBBAA........UU|
network |...........ssssssss..|
)");
}

TEST(BucketSize, ReadersOfABucketWaitForTheOneItIsMergedInto) {
  Graph graph = parse_graph(R"(
    stream: F 3 {phase=forward step=0}, C 4 {phase=backward step=0}, A 4 {phase=backward step=0}, U 2 {phase=update step=0}
    network: all_reduce:collective 2 {phase=backward step=0}, sum:collective 2 {phase=backward step=0}
    C -> all_reduce
    A -> sum
    all_reduce -> U
    @step one
)");
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id))
    graph.collectives().push_back({.task = id,
                                   .operation = graph.names().intern("allreduce"),
                                   .group_size = 2,
                                   .bytes = Bytes{2000}});
  EXPECT_EQ(to_ascii(graph, simulate(graph)), R"(stream  |FFFCCCCAAAAUU|
network |.......aa..ss|
)");
  read_transform_text("bucket_size:bandwidth=1GB/s,latency=0us,bucket=4kB,first_bucket=4kB")
      ->apply(graph, {});
  EXPECT_EQ(to_ascii(graph, simulate(graph)), R"(stream  |FFFCCCCAAAA....UU|
network |...........ssss..|
)");
}

TEST(BucketSize, SmallerBucketsBeginEarlier) {
  EXPECT_EQ(with_buckets("bucket=2kB"), R"(
stream  |FFFDDCCBBAA..UU|
network |.....aaaassss..|
)");
}

TEST(BucketSize, LatencyIsPaidForEachBucket) {
  // A ring of two pays the latency twice: 2 us of the 6 us are latency.
  Graph graph = two_buckets();
  read_transform_text("bucket_size:bandwidth=1GB/s,latency=1us,bucket=2kB")->apply(graph, {});
  Nanoseconds sum{0};
  for (TaskId id = graph.first(LaneId{1}); id != kNoTask; id = graph.next(id))
    sum += graph.task(id).duration;
  // 8 us x (4 buckets of 2 + 2 us) / (2 buckets of 4 + 2 us)
  EXPECT_NEAR(static_cast<double>(sum.count()), 8000. * 16 / 12, 2);
}

TEST(BucketSize, WithoutCommunicationItIsRefused) {
  Graph graph = parse_graph("stream: B 4 {phase=backward}");
  EXPECT_THROW(read_transform_text("bucket_size:machine=dgx-a100")->apply(graph, {}), Error);
}

}  // namespace
}  // namespace foretrace

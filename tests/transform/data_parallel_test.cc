#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/simulated.h"
#include "transform/checked.h"

namespace foretrace {
namespace {

/// Two gradients of 4 kB. On a uniform network of 1 GB/s with two workers, a ring sends each in 4
/// us.
constexpr auto kOneGpu = R"(
    stream: F 3 {phase=forward step=0}, C 4 {phase=backward step=0}, B 4 {phase=backward step=0}, U 2 {phase=update step=0}
    @step one
    @alloc 4kB use=gradient: C .. U writes C reads U
    @alloc 4kB use=gradient: B .. U writes B reads U
)";

std::string data_parallel(const std::string& more) {
  return R"({"use": "data_parallel", "gpus": 2, "bandwidth": "1GB/s", "latency": "0us",
             "copies": false, "lateness": "0us", "lateness_share": 0, "kernel_contention": 0, "collective_contention": 0, )" +
         more + "}";
}

TEST(DataParallel, ABucketIsSentOnceItsLastGradientIsReady) {
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("bucket": "4kB", "first_bucket": "4kB")")), R"(
stream        |FFFCCCCBBBB....UU|
data parallel |.......aaaaaaaa..|
)");
}

TEST(DataParallel, OneBucketWaitsForAllOfThem) {
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("bucket": "1MB", "first_bucket": "1MB")")), R"(
stream        |FFFCCCCBBBB........UU|
data parallel |...........aaaaaaaa..|
)");
}

TEST(DataParallel, TheFirstBucketMayBeSmaller) {
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("bucket": "8kB", "first_bucket": "4kB")")), R"(
stream        |FFFCCCCBBBB....UU|
data parallel |.......aaaaaaaa..|
)");
}

TEST(DataParallel, WithoutOverlapBucketsAreSentBehindThePass) {
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("bucket": "4kB", "overlap": false)")), R"(
stream        |FFFCCCCBBBB........UU|
data parallel |...........aaaaaaaa..|
)");
}

TEST(DataParallel, OneWorkerSendsNothing) {
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("gpus": 1)")), R"(
stream |FFFCCCCBBBBUU|
)");
}

TEST(DataParallel, EverybodyWaitsForTheSlowestWorker) {
  // Both passes take 11 us; the later one of two workers is 0.56 deviations behind the mean.
  EXPECT_EQ(simulated(kOneGpu, data_parallel(R"("bucket": "1MB", "lateness": "3.53us")")), R"(
stream        |FFFCCCCBBBB..........UU|
data parallel |.............aaaaaaaa..|
)");
}

TEST(DataParallel, GivenBytesBecomeReadyWithTheTimeOfThePass) {
  // 3 and 1 of 4 parts; the second one waits for the first on the network.
  constexpr auto kUnknown = R"(
    stream: F 3 {phase=forward step=0}, C 6 {phase=backward step=0}, B 2 {phase=backward step=0}, U 2 {phase=update step=0}
    @step one
)";
  EXPECT_EQ(simulated(kUnknown, data_parallel(R"("gradient_bytes": "4kB", "bucket": "1kB")")), R"(
stream        |FFFCCCCCCBB..UU|
data parallel |.........aaaa..|
)");
}

TEST(DataParallel, SeveralMicroBatchesSendGradientsOfTheLast) {
  constexpr auto kTwo = R"(
    stream: F 2 {phase=forward step=0}, B 2 {phase=backward step=0}, f 2 {phase=forward step=0}, b 2 {phase=backward step=0}, U 1 {phase=update step=0}
    @step one
)";
  EXPECT_EQ(simulated(kTwo, data_parallel(R"("gradient_bytes": "3kB")")), R"(
stream        |FFBBffbb...U|
data parallel |........aaa.|
)");
  // Buckets that the first micro-batch could fill still wait for the last micro-batch.
  EXPECT_EQ(
      simulated(kTwo, data_parallel(
                          R"("gradient_bytes": "3kB", "bucket": "1kB", "first_bucket": "1kB")")),
      R"(
stream        |FFBBffbb...U|
data parallel |........aaa.|
)");
}

TEST(DataParallel, CopiesGoInAndOutOfBucketsOnTheStreamOfThePass) {
  // Reading and writing 4 kB at 2 TB/s takes 4 ns; a thousand times as much takes 4 us.
  Graph graph = parse_graph(R"(
    stream: F 3 {phase=forward step=0}, B 4 {phase=backward step=0}, U 2 {phase=update step=0}
    @step one
    @alloc 4MB use=gradient: B .. U writes B reads U
)");
  graph.device_names() = {"NVIDIA A100-SXM4-80GB"};
  const auto step = read_transform_text(
      "data_parallel:gpus=2,bandwidth=1TB/s,latency=0us,lateness=0us,lateness_share=0,"
      "kernel_contention=0,"
      "collective_contention=0");
  step->apply(graph, {});
  std::string names;
  Nanoseconds copies{0};
  const LaneId stream{0};
  for (TaskId id = graph.first(stream); id != kNoTask; id = graph.next(id)) {
    names += std::string(graph.name(id)) + "; ";
    if (graph.task(id).kind == TaskKind::copy_on_device) copies += graph.task(id).duration;
  }
  EXPECT_EQ(names, "F; B; gradients into a bucket; gradients out of buckets; U; ");
  const DeviceModel a100 = find_device("a100-sxm4-80gb");
  EXPECT_EQ(copies, 2 * time_for(Bytes{8'000'000}, a100.memory_bandwidth));
  Bytes held{};
  for (const Allocation& block : graph.allocations()) held += block.bytes;
  EXPECT_EQ(held.count, 2 * 4'000'000);
}

TEST(DataParallel, AnEstimateOfTheGradientsIsSaid) {
  Graph graph = parse_graph(
      "stream: F 3 {phase=forward step=0}, B 4 {phase=backward step=0}, U 1 {phase=update step=0}");
  graph.gradient_estimate() = {Bytes{8'000}, Bytes{6'000}, Bytes{9'000}, "a guess"};
  const auto step = nlohmann::json::parse(data_parallel(R"("bucket": "1MB")"));
  Graph changed = graph.clone();
  const Effect effect = read_transform(step)->apply(changed, {});
  EXPECT_EQ(figure(effect, "gradient_bytes"), 8'000);
  EXPECT_EQ(effect.assumptions[effect.assumptions.size() - 3],
            "gradients take 8 kB, between 6 kB and 9 kB, estimated from a guess; gradient_bytes "
            "states their size");
  // A size that is given counts.
  nlohmann::json given = step;
  given["gradient_bytes"] = "4kB";
  const Effect stated = read_transform(given)->apply(graph, {});
  EXPECT_EQ(figure(stated, "gradient_bytes"), 4'000);
  for (const std::string& one : stated.assumptions) EXPECT_EQ(one.find("estimated"), one.npos);
}

TEST(DataParallel, RefusalsSayWhatToGive) {
  EXPECT_EQ(simulated(kOneGpu, R"({"use": "data_parallel"})"),
            "machine: must be given (\"dgx-a100\"; see `foretrace list machines`), "
            "or for a uniform network both bandwidth and latency");
  EXPECT_NE(simulated("stream: F 3 {phase=forward}, B 4 {phase=backward}, U 1 {phase=update}",
                      data_parallel(R"("bucket": "4kB")"))
                .find("gradient_bytes: must be given"),
            std::string::npos);
  EXPECT_NE(simulated("stream: F 3, B 4", data_parallel(R"("gradient_bytes": "4kB")"))
                .find("no backward pass"),
            std::string::npos);
  EXPECT_NE(simulated(R"(
    stream: B 4 {phase=backward}, U 1 {phase=update}
    nccl: c:collective 2
)",
                      data_parallel(R"("gradient_bytes": "4kB")"))
                .find("has communicated already (c)"),
            std::string::npos);
  EXPECT_NE(
      simulated(kOneGpu, R"({"use": "data_parallel", "gpus": 64, "machine": "dgx-h100:hosts=2"})")
          .find("16"),
      std::string::npos);
}

/// B runs during the whole first all-reduce.
constexpr auto kBeside = R"(
    stream: C 1 {phase=backward step=0}, B 8 {phase=backward step=0}, U 2 {phase=update step=0}
    @step one
    @alloc 4kB use=gradient: C .. U writes C reads U
)";

TEST(Contention, OverlapLengthensBothByTheirShares) {
  // The all-reduce takes 4, all of it beside B, so 6. It then covers 6 of B's 8; the next round
  // uses the longer times.
  const std::string step = data_parallel(R"("bucket": "4kB", "first_bucket": "4kB")");
  EXPECT_EQ(simulated(kBeside, step, R"({"use": "contention", "kernels": 0, "collectives": 0.5})"),
            R"(
stream        |CBBBBBBBBUU|
data parallel |.aaaaaa....|
)");
  EXPECT_EQ(simulated(kBeside, step, R"({"use": "contention", "kernels": 0.5, "collectives": 0})"),
            R"(
stream        |CBBBBBBBBBBUU|
data parallel |.aaaa........|
)");
}

TEST(Contention, NothingOverlapsNothingChanges) {
  EXPECT_EQ(simulated(kBeside, data_parallel(R"("overlap": false)"), R"({"use": "contention"})"),
            R"(
stream        |CBBBBBBBB....UU|
data parallel |.........aaaa..|
)");
}

/// The steps as a scenario applies them.
std::string in_order(std::string_view text, const std::vector<std::string>& steps) {
  Graph graph = parse_graph(text);
  for (const std::string& step : steps) apply_checked(*read_transform_text(step), graph, {});
  return "\n" + to_ascii(graph, simulate(graph));
}

TEST(Contention, FollowsWhatLaterStepsLeave) {
  const std::string step =
      "data_parallel:gpus=2,bandwidth=1GB/s,latency=0us,copies=false,lateness=0us,"
      "lateness_share=0,bucket=4kB,first_bucket=4kB,collective_contention=0,kernel_contention=0.5";
  EXPECT_EQ(in_order(kBeside, {step}), R"(
stream        |CBBBBBBBBBBUU|
data parallel |.aaaa........|
)");
  EXPECT_EQ(in_order(kBeside, {step, "local_sgd:every=1000000"}), R"(
stream        |CBBBBBBBBUU|
data parallel |...........|
)");
  EXPECT_EQ(in_order(kBeside, {step, "scale:factor=2,where.kind=collective"}), R"(
stream        |CBBBBBBBBBBBUU|
data parallel |.aaaaaaaa.....|
)");
}

TEST(LocalSgd, WaitsForTheLatestWorkerOnceInSeveralSteps) {
  const std::string step =
      "data_parallel:gpus=2,bandwidth=1GB/s,latency=0us,copies=false,lateness=3.53us,"
      "lateness_share=0,bucket=1MB,collective_contention=0,kernel_contention=0";
  EXPECT_EQ(in_order(kOneGpu, {step, "local_sgd:every=4"}), R"(
stream        |FFFCCCCBBBB...UU|
data parallel |............aa..|
)");
}

TEST(Contention, RecordedCommunicationIsRefused) {
  Graph graph = parse_graph(R"(
    stream: B 4 {phase=backward}
    nccl: c:collective 2
)");
  graph.task(graph.first(LaneId{1})).record = 3;
  EXPECT_THROW(read_transform_text("contention")->apply(graph, {}), Error);
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Two kernels bound by memory: the shortest kernel of the trace is the minimum for both.
constexpr auto kBatchStep = R"(
    stream: i:copy_in 2 {bytes=2kB}, A 4 {phase=forward}, a 1 {phase=forward}, B 6 {phase=backward}, c:collective 2 {phase=backward}, U 5 {phase=update}
    @alloc 4kB use=parameter: .. U
    @alloc 8kB use=activation: A .. U writes A reads B
    @alloc 4kB use=gradient: B .. writes B
)";

// Two weights, and their casts by autocast; two activations have the size of a cast by chance.
TEST(BatchSize, CastsOfWeightsDoNotGrow) {
  const auto sizes_with = [](const std::string& op) {
    Graph graph = parse_graph(R"(
      s: f 5 {phase=forward}, g 1 {phase=forward}, b 1 {phase=backward}
      @alloc 8kB use=parameter: .. b
      @alloc 8kB use=parameter: .. b
      @alloc 4kB use=activation op=")" +
                              op + R"(": f .. b
      @alloc 4kB use=activation op=")" +
                              op + R"(": g .. b
    )");
    read_transform_text("batch_size:factor=2")->apply(graph, {});
    return std::pair(graph.allocations()[2].bytes.count, graph.allocations()[3].bytes.count);
  };
  EXPECT_EQ(sizes_with("aten::_to_copy"), std::pair(4000L, 4000L));
  EXPECT_EQ(sizes_with("aten::linear"), std::pair(8000L, 8000L));
}

// Statistics of 32 channels loop over the samples; a kernel of rows has more blocks.
TEST(BatchSize, BlocksThatLoopOverSamplesTakeLonger) {
  Graph graph = parse_graph(R"(
    s: a 0 {phase=forward}, batch_norm_collect_statistics 100 {phase=forward fill=0.25}, softmax_warp 10 {phase=forward fill=0.25}, gemm 100 {phase=forward fill=0.25}, batch_norm_transform 100 {phase=forward fill=2}
  )");
  read_transform_text("batch_size:factor=2")->apply(graph, {});
  EXPECT_EQ(graph.task(TaskId{1}).duration, 190us);
  EXPECT_EQ(graph.task(TaskId{2}).duration, 10us);
  EXPECT_EQ(graph.task(TaskId{3}).duration, 100us);
  EXPECT_EQ(graph.task(TaskId{4}).duration, 190us);
}

// 16 tokens: products take the time to read their weights, and attention reads a cache a sample.
TEST(BatchSize, FewTokensAreAnsweredByReadingWeights) {
  const auto times = [](const char* update) {
    Graph graph = parse_graph(std::string("s: nvjet_sm90_tst_128x16_64x11 100 {fill=1}, ") +
                              "nvjet_sm90_tst_128x256_64x4 100 {fill=1}, "
                              "flash_fwd_kernel 100 {fill=0.25}, an_elementwise 100 {fill=0.25}" +
                              update);
    read_transform_text("batch_size:factor=2")->apply(graph, {});
    std::vector<Nanoseconds> found;
    for (std::uint32_t i = 0; i < 4; ++i) found.push_back(graph.task(TaskId{i}).duration);
    return found;
  };
  using Times = std::vector<Nanoseconds>;
  EXPECT_EQ(times(", x 1"), (Times{100us, 199us, 199us, 100us}));
  EXPECT_EQ(times(", x 1 {phase=update}"), (Times{199us, 199us, 100us, 100us}));
}

TEST(BatchSize, Baseline) {
  EXPECT_EQ(simulated(kBatchStep, R"({"use": "batch_size"})"), R"(
stream |iiAAAAaBBBBBBccUUUUU|
)");
}

TEST(BatchSize, ThePassesGrowAboveWhatAKernelTakesAnyway) {
  // A: 1 + 3 * 2. B touches 8 kB that grow and 4 kB that do not: 1 + 5 * (2 * 2 + 1) / 3. The copy
  // of 2 is the shortest there is, so it keeps its time.
  EXPECT_EQ(simulated(R"(
    stream: i:copy_in 2 {bytes=2kB}, A 4 {phase=forward}, a 1 {phase=forward}, B 6 {phase=backward}, c:collective 2 {phase=backward}, U 5 {phase=update}
)",
                      R"({"use": "batch_size", "from": 16, "to": 32})"),
            R"(
stream |iiAAAAAAAaBBBBBBBBBBBccUUUUU|
)");
}

TEST(BatchSize, TrafficOfParametersDoesNotGrow) {
  EXPECT_EQ(simulated(R"(
    stream: a 1 {phase=forward}, A 5 {phase=forward}, z 3 {phase=forward}, G 5 {phase=forward}
    @alloc 8kB use=activation: a .. G reads A
    @alloc 8kB use=parameter: a .. G reads A, z
)",
                      R"({"use": "batch_size", "factor": 2})"),
            R"(
stream |aAAAAAAAzzzGGGGGGGGG|
)");
}

TEST(BatchSize, LoadingGrowsAndLaunchingDoesNot) {
  EXPECT_EQ(simulated(R"(
    cpu: l:input 2, L:launch 3, M:launch 3
    stream: A 1 {phase=forward}, B 4 {phase=forward}
    L -> A
    M -> B
)",
                      R"({"use": "batch_size", "factor": 2})"),
            R"(
cpu    |llllLLLMMM.......|
stream |.......A..BBBBBBB|
)");
}

// A fills the device twice over, B a quarter of it: B takes 4 times the blocks at no cost, and 8
// times the blocks in twice the time.
constexpr auto kQuarterFull = R"(
    stream: a 1 {phase=forward}, A 3 {phase=forward fill=2}, B 3 {phase=forward fill=0.25}
)";

TEST(BatchSize, AKernelThatDoesNotFillTheDeviceTakesMoreInTheSameTime) {
  EXPECT_EQ(simulated(kQuarterFull, R"({"use": "batch_size", "factor": 4})"), R"(
stream |aAAAAAAAAABBB|
)");
  EXPECT_EQ(simulated(kQuarterFull, R"({"use": "batch_size", "factor": 8})"), R"(
stream |aAAAAAAAAAAAAAAAAABBBBB|
)");
}

TEST(BatchSize, ASmallerBatchSavesNothingOnceTheDeviceIsNotFull) {
  EXPECT_EQ(simulated(kQuarterFull, R"({"use": "batch_size", "factor": 0.25})"), R"(
stream |aAABBB|
)");
}

TEST(BatchSize, NumbersAreAsLargeForAnyBatch) {
  EXPECT_EQ(simulated("stream: x:copy_in 1 {bytes=8kB}, A 1, l:copy_out 3 {bytes=4B}, X:copy_in 3 "
                      "{bytes=9kB}",
                      R"({"use": "batch_size", "factor": 3})"),
            R"(
stream |xAlllXXXXXXX|
)");
}

TEST(BatchSize, ActivationsGrowAndGradientsDoNot) {
  Graph graph = parse_graph(kBatchStep);
  const Effect effect = read_transform_text("batch_size:factor=0.5")->apply(graph, {});
  EXPECT_EQ(graph.allocations()[0].bytes, Bytes{4000});
  EXPECT_EQ(graph.allocations()[1].bytes, Bytes{4000});
  EXPECT_EQ(graph.allocations()[2].bytes, Bytes{4000});
  ASSERT_EQ(effect.figures.at(1).name, "peak_after");
  EXPECT_EQ(to_text(effect.figures.at(1)), "12 kB");
}

// Otherwise later changes of device or precision would take arithmetic for traffic of memory.
TEST(BatchSize, FlopsOfThePassesGrow) {
  Graph graph =
      parse_graph("s: gemm 90 {phase=forward flops=100}, adam 20 {phase=update flops=50}");
  read_transform_text("batch_size:factor=4")->apply(graph, {});
  EXPECT_DOUBLE_EQ(graph.task(TaskId{0}).flops, 400);
  EXPECT_DOUBLE_EQ(graph.task(TaskId{1}).flops, 50);
}

TEST(BatchSize, TimeAndMemoryNeverShrinkWithTheBatch) {
  Nanoseconds length{};
  Bytes peak{};
  for (const char* factor : {"0.25", "0.5", "1", "1.5", "2", "7", "100"}) {
    Graph graph = parse_graph(kBatchStep);
    read_transform_text("batch_size:factor=" + std::string(factor))->apply(graph, {});
    const Timeline timeline = simulate(graph);
    EXPECT_GE(timeline.length, length);
    EXPECT_GE(timeline.memory.at(0).peak, peak);
    length = timeline.length, peak = timeline.memory.at(0).peak;
  }
}

TEST(BatchSize, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "batch_size", "from": 4})", "to: must be given together with from"},
      {R"({"use": "batch_size", "to": 4})", "from: must be given together with to"},
      {R"({"use": "batch_size", "from": 4, "to": 8, "factor": 2})",
       "factor: cannot be given together with from and to"},
      {R"({"use": "batch_size", "factor": 0})", "factor: must be at least 0.000001, got 0"},
  };
  for (const auto& [step, message] : cases) EXPECT_EQ(simulated(kBatchStep, step), message);
  EXPECT_EQ(simulated("cpu: A:host 1", R"({"use": "batch_size", "factor": 2})"),
            "factor: this trace has no kernels, copies or loading of input that depend on a batch");
}

}  // namespace
}  // namespace foretrace

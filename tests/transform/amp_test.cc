#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kStep = R"(
    stream: "volta_sgemm_128x64_nn" 9 {phase=forward}, "vectorized_elementwise_kernel<float>" 4 {phase=forward}, "a volta_fp16_s884gemm" 3 {phase=forward}, "o multi_tensor_apply_kernel" 4 {phase=update}, i:copy_in 2
)";

TEST(Amp, Baseline) {
  EXPECT_EQ(simulated(kStep), R"(
stream |vvvvvvvvvvvvvaaaooooii|
)");
}

TEST(Amp, ArithmeticAtAThirdMemoryAtHalf) {
  EXPECT_EQ(simulated(kStep, R"({"use": "amp"})"), R"(
stream |vvvvvaaaooooii|
)");
}

TEST(Amp, TheUpdateOnlyWhenAsked) {
  EXPECT_EQ(simulated(kStep, R"({"use": "amp", "optimizer": true})"), R"(
stream |vvvvvaaaooii|
)");
}

TEST(Amp, NoKernelGetsShorterThanTheShortest) {
  EXPECT_EQ(simulated(kStep, R"({"use": "amp", "shortest": "4us"})"), R"(
stream |vvvvvvvvaaaooooii|
)");
}

// Messages between devices and bookkeeping: neither arithmetic nor memory traffic decides how long
// they take.
TEST(Amp, WhatLatencyBoundsStaysAsItIs) {
  for (const std::string setting : {"", ":compute_factor=0.1,memory_factor=0.1,tf32_factor=0.1"}) {
    Graph graph = parse_graph(R"(
      stream: "void cub::DeviceScanInitKernel<int>" 8 {phase=forward}, volta_sgemm_128x64_nn 9 {phase=forward}
      stream: ncclDevKernel_SendRecv 6 {phase=forward}
    )");
    const Effect effect = read_transform_text("amp" + setting)->apply(graph, {});
    EXPECT_EQ(graph.task(TaskId{0}).duration, 8us);
    EXPECT_LT(graph.task(TaskId{1}).duration, 4us);
    EXPECT_EQ(graph.task(TaskId{2}).duration, 6us);
    EXPECT_EQ(effect.notes.count("kernels bound by latency, left as they are"), 2);
    EXPECT_EQ(effect.changed, 1U);
  }
}

TEST(Amp, DevicePeaksBoundArithmetic) {
  // 15.7 TFLOP/s in FP32 over half of 125 TFLOP/s in FP16.
  Graph graph = parse_graph("stream: volta_sgemm_128x64_nn 1000");
  read_transform_text("amp:device_peaks=true,device=v100-sxm2-32gb")->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 1e6 * 15.7 / 62.5, 3000);
}

// By default a third; of an A100 twice 19.5 of 312 TFLOP/s, of an RTX 3060 12.7 of 25.5 TFLOP/s.
TEST(Amp, ArithmeticGainsWhatThePeaksOfTheDeviceAllow) {
  using Pair = std::pair<Nanoseconds, Nanoseconds>;
  const auto durations = [](const std::string& device, const char* use) {
    Graph graph = parse_graph("stream: volta_sgemm_128x64_nn 900, a_1688gemm_tf32 900");
    graph.device_names() = {device};
    read_transform_text(use)->apply(graph, {});
    return Pair(graph.task(TaskId{0}).duration, graph.task(TaskId{1}).duration);
  };
  EXPECT_EQ(durations("NVIDIA A100-SXM4-40GB", "amp"), Pair(112'500ns, 450us));
  EXPECT_EQ(durations("NVIDIA A100-SXM4-40GB", "amp:efficiency=0.25"), Pair(225us, 450us));
  EXPECT_EQ(durations("Tesla V100-SXM2-16GB", "amp"), Pair(300us, 450us));
  EXPECT_EQ(durations("", "amp"), Pair(300us, 450us));
  const auto [single, tf32] = durations("NVIDIA GeForce RTX 3060", "amp");
  EXPECT_NEAR(static_cast<double>(single.count()), 900e3 * 12.7 / 25.5, 5e3);
  EXPECT_GE(tf32, 450us);
  EXPECT_EQ(durations("NVIDIA GeForce RTX 3060", "amp:compute_factor=0.1").first, 90us);
}

TEST(Amp, WhatAutocastComputesInFullStays) {
  Graph graph = parse_graph(
      "stream: vectorized_layer_norm_kernel 9, softmax_warp_forward 9, cudnn_bn_bw_1C11_kernel 9, "
      "nll_loss_forward_reduce 9, nchwToNhwcKernel 9, vectorized_elementwise_kernel 9");
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(graph.task(TaskId{i}).duration, 9us) << i;
  EXPECT_EQ(graph.task(TaskId{5}).duration, 4500ns);
  EXPECT_EQ(
      effect.notes.count("norms, softmax, losses and conversions of layout, left as they are"), 5);
}

TEST(Amp, AppliesToThePartThatIsNotInHalfPrecisionYet) {
  const auto applies = [](const char* stream) {
    return read_transform_text("amp")->applies(parse_graph(stream));
  };
  EXPECT_EQ(applies("stream: volta_sgemm 90, x_elementwise 10").share, 1);
  const Applicability part = applies("stream: volta_sgemm 60, volta_fp16_s884gemm 30, nccl 50");
  EXPECT_NEAR(part.share, 2.0 / 3, 1e-9);
  EXPECT_EQ(to_text(part),
            "applies to 66.7 %: 33.3 % of the time of its kernels is in half precision already");
  EXPECT_EQ(applies("stream: volta_fp16_s884gemm 30, triton_poi_fused_0 20").share, 0);
}

TEST(Amp, KernelsThatItMadeFasterCountAsNarrow) {
  Graph graph = parse_graph("stream: volta_sgemm 90, x_elementwise 60");
  const auto amp = read_transform_text("amp");
  amp->apply(graph, {});
  const Nanoseconds product = graph.task(TaskId{0}).duration;
  EXPECT_LT(product, 90us);
  EXPECT_EQ(amp->applies(graph).share, 0);
  amp->apply(graph, {});
  EXPECT_EQ(graph.task(TaskId{0}).duration, product);
}

TEST(Amp, LeavesDoublePrecisionAndProgramsWithoutAFramework) {
  for (const char* stream : {"stream: \"elementwise_kernel<double>\" 90, other_kernel 10",
                             "stream: flux_kernel 90, other_kernel 10"}) {
    Graph graph = parse_graph(stream);
    const auto amp = read_transform_text("amp");
    const Applicability applies = amp->applies(graph);
    EXPECT_EQ(applies.share, 0);
    EXPECT_NE(applies.why_not.find(graph.name(TaskId{0}) == "flux_kernel" ? "framework" : "double"),
              std::string::npos)
        << applies.why_not;
    EXPECT_EQ(amp->apply(graph, {}).changed, 0U);
    EXPECT_EQ(graph.task(TaskId{0}).duration, 90us);
  }
}

TEST(Amp, NothingGoesBeyondThePeak) {
  // 6.25 TFLOP take 50 ms at 125 TFLOP/s, whatever the ratio of the peaks.
  Graph graph = parse_graph("stream: volta_sgemm_128x64_nn 100000 {flops=6.25e12}");
  read_transform_text("amp:device_peaks=true,device=v100-sxm2-32gb")->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 50e6, 1e6);
}

TEST(Amp, CastsAndScalerTakeTheirTime) {
  EXPECT_EQ(simulated(R"(
      cpu:    f:launch 1 {phase=forward}, u:launch 1 {phase=update}
      stream: F=F_elementwise 4 {phase=forward}, U=U_elementwise 2 {phase=update}
      f -> F
      u -> U
  )",
                      R"({"use": "amp", "cast_time": "2us", "scaler_time": "1us"})"),
            R"(
cpu    |flllll.aaaaau..|
stream |.aaFF.a......UU|
)");
}

TEST(Amp, SaysWhatItLeftAlone) {
  Graph graph = parse_graph(kStep);
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  EXPECT_EQ(effect.summary,
            "1 kernel bound by arithmetic at 0.333, 1 bound by memory at 0.500 of their time");
  EXPECT_EQ(effect.notes.count("kernels already in half precision, left as they are"), 1);
  EXPECT_EQ(effect.notes.count("kernels of the update phase, left in FP32"), 1);
  EXPECT_EQ(effect.changed, 2U);
}

// Only the name of a matrix product tells its precision; what lies between reads its results.
TEST(Amp, AJobInHalfPrecisionKeepsItsOtherKernels) {
  const auto apply = [](const char* steps) {
    Graph graph = parse_graph(steps);
    return read_transform_text("amp")->apply(graph, {});
  };
  const Effect half = apply("stream: h16816gemm 600, triton_poi_0 300, sgemm 400");
  EXPECT_EQ(half.summary,
            "1 kernel bound by arithmetic at 0.333, 0 bound by memory at 0.500 of their time");
  EXPECT_EQ(half.changed, 1U);
  EXPECT_EQ(half.notes.count("most of the job's arithmetic is in half precision already, so "
                             "kernels bound by memory count as such, too"),
            1);
  EXPECT_EQ(apply("stream: h16816gemm 300, triton_poi_0 300, sgemm 400").changed, 2U);
}

TEST(Amp, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "amp", "precision": "fp8", "device_peaks": true})",
       "precision: must be one of fp16, bf16, got \"fp8\" (did you mean \"fp16\"?)"},
      {R"({"use": "amp", "device_peaks": true})",
       "device: must be given, as the trace does not say what device it was recorded on"},
      {R"({"use": "amp", "where": {"phase": "backward"}})",
       "no task matches \"where\" (kind kernel, phase backward); no task of this trace is of that "
       "phase"},
      {R"({"use": "amp", "where": {"kind": "copy_in"}})",
       "no kernel matches \"where\" (kind copy_in)"},
      {R"({"use": "amp", "cast_time": 5})",
       "cast_time: must be a string with a unit, such as \"5us\", got 5"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kStep, transform), message) << transform;
  }
}

/// A product, whose op converts 3 tensors, and a sum that moves a third of its bytes narrow.
Graph with_autocast_work() {
  Graph graph = parse_graph(
      "stream: volta_sgemm_128x64_nn 900 {phase=forward}, vectorized_elementwise_kernel 90");
  graph.device_names() = {"NVIDIA H100 80GB HBM3"};
  graph.autocast() = {{.task = TaskId{0}, .casts = 3, .weights = 1'000'000, .elements = 2'000'000},
                      {.task = TaskId{1}, .narrow = 1.0F / 3}};
  return graph;
}

TEST(Amp, AddsConversionsInFrontOfTheOpsThatNeedThem) {
  Graph graph = with_autocast_work();
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  const TaskId cast = graph.previous(TaskId{0});
  ASSERT_NE(cast, kNoTask);
  EXPECT_EQ(graph.name(cast), "conversions by autocast");
  EXPECT_EQ(graph.task(cast).phase, Phase::forward);
  // 18 MB and three starts.
  const double least = 18e6 / 3.35e12 * 1e9;
  EXPECT_GT(static_cast<double>(graph.task(cast).duration.count()), least);
  EXPECT_LT(static_cast<double>(graph.task(cast).duration.count()), 1.5 * least + 15e3);
  EXPECT_NE(effect.summary.find("3 conversions added"), std::string::npos) << effect.summary;

  Graph larger = with_autocast_work();
  read_transform_text("amp")->apply(larger, {.samples = 2});
  const Nanoseconds more = larger.task(larger.previous(TaskId{0})).duration;
  EXPECT_GT(more, graph.task(cast).duration);
  EXPECT_LT(more, graph.task(cast).duration * 2);
}

TEST(Amp, WhatStaysInFullGainsNothing) {
  Graph graph = with_autocast_work();
  read_transform_text("amp")->apply(graph, {});
  EXPECT_EQ(graph.task(TaskId{1}).duration, 75us);
}

TEST(Amp, AGivenTimeReplacesTheConversionsByShapes) {
  Graph graph = with_autocast_work();
  const Effect effect = read_transform_text("amp:cast_time=7us")->apply(graph, {});
  EXPECT_EQ(graph.task(graph.previous(TaskId{0})).duration, 7us);
  EXPECT_EQ(graph.task_count(), 3U);
}

TEST(Amp, SaysIfConversionsAreNotCounted) {
  Graph graph = parse_graph("stream: volta_sgemm_128x64_nn 900");
  const Effect effect = read_transform_text("amp")->apply(graph, {});
  const auto says = [](const Note& note) { return note.text.starts_with("conversions are not"); };
  EXPECT_EQ(std::ranges::count_if(effect.notes.all(), says), 1);
}

}  // namespace
}  // namespace foretrace

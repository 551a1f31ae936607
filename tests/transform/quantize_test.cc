#include <gtest/gtest.h>

#include "foretrace/machine.h"
#include "machine/operation_rates.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kTrainedProducts = "stream: bf16_gemm 1000, x = bf16_gemm 1000 {phase=backward}";

Effect quantized(Graph& graph, const char* settings) {
  return read_transform_text("quantize:device=h100-sxm5-80gb," + std::string(settings))
      ->apply(graph, {});
}

Nanoseconds first(const Graph& graph) { return graph.task(TaskId{0}).duration; }

TEST(Quantize, LargeProductsGainAndSmallOnesGetSlower) {
  Graph graph = parse_graph("stream: bf16_gemm 1000, bf16_gemm 6, elementwise_kernel 50");
  const Effect effect = quantized(graph, "to=fp8");
  const DeviceModel device = find_device("h100-sxm5-80gb");
  const auto of = [&](Arithmetic type) { return rate_of(device, OperationKind::product, type); };
  EXPECT_EQ(first(graph), time_at(1ms, of(Arithmetic::half), of(Arithmetic::fp8), true));
  EXPECT_GT(graph.task(TaskId{1}).duration, 12us);
  EXPECT_EQ(graph.task(TaskId{2}).duration, 50us);
  EXPECT_EQ(effect.changed, 2U);
  EXPECT_NE(effect.summary.find("2 products in FP8 on h100-sxm5-80gb"), std::string::npos);
  EXPECT_NE(effect.summary.find("1 slower than before"), std::string::npos);
  EXPECT_EQ(effect.figures.at(0).name, "products_slower");
  EXPECT_GT(effect.times_error.share, 0.03);
}

// Public times on a B200: 9.2 us in BF16 and 19.4 us in NVFP4 for 1 x 7168 by 7168 x 2048.
TEST(Quantize, AProductWithALongInnerSizeGetsSlowerInFourBits) {
  Graph graph = parse_graph(
      "stream: bf16_gemm 9.2 {flops=29360128 inner=7168}, bf16_gemm 9.2 {flops=29360128}");
  const Effect effect = read_transform_text("quantize:device=b200,to=nvfp4")->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(first(graph).count()), 19'400, 2000);
  EXPECT_LT(graph.task(TaskId{1}).duration, 12us);
  EXPECT_NE(effect.summary.find("2 slower than before"), std::string::npos) << effect.summary;
}

// Decoding: 1 GFLOP explains 1 us; the weights are read in the rest.
TEST(Quantize, ProductsOfFewRowsReadFewerBytes) {
  Graph graph = parse_graph("stream: bf16_gemm 500");
  graph.task(TaskId{0}).flops = 1e9;
  quantized(graph, "to=int4_weights");
  EXPECT_LT(first(graph), 350us);
  Graph compute = parse_graph("stream: bf16_gemm 500");
  compute.task(TaskId{0}).flops = 500e-6 * 0.75 * 989e12;
  quantized(compute, "to=int4_weights");
  EXPECT_GT(first(compute), 400us);
}

TEST(Quantize, ProductsOfAStepThatDecodesReadTheirWeights) {
  Graph graph = parse_graph(
      "@step execute_context_0(0)_generation_8(8)\n@step execute_context_1(4000)_generation_8(8)\n"
      "stream: bf16_gemm 500 {step=0}, bf16_gemm 500 {step=1}");
  const Effect effect = quantized(graph, "to=int4_weights");
  EXPECT_LT(first(graph), 350us);
  EXPECT_GT(graph.task(TaskId{1}).duration, 400us);
  EXPECT_NE(effect.summary.find("1 by arithmetic, 1 by their weights"), std::string::npos);
}

TEST(Quantize, AppliesToTheShareThatIsWide) {
  const auto asked = [](const char* text, const char* step) {
    return read_transform_text(step)->applies(parse_graph(text));
  };
  EXPECT_EQ(asked("stream: bf16_gemm 50", "quantize").share, 1);
  const Applicability some = asked("stream: bf16_gemm 25, gemm_e4m3_e4m3 75", "quantize");
  EXPECT_DOUBLE_EQ(some.share, 0.25);
  EXPECT_EQ(some.why_not, "75.0 % of the time of its matrix products is in 8 or 4 bits already");
  EXPECT_EQ(to_text(asked("stream: bf16_gemm 60, dgemm_double 40", "quantize")),
            "applies to 60.0 %: 40.0 % of the time of its matrix products is in double precision, "
            "which 8 bits cannot stand for");
  EXPECT_EQ(asked("stream: elementwise_kernel 50", "quantize").share, 0);
  EXPECT_EQ(asked("stream: cudnn_conv_fprop 50", "quantize").share, 0);
  EXPECT_EQ(asked(kTrainedProducts, "quantize").share, 1);
  EXPECT_EQ(asked(kTrainedProducts, "quantize:to=int4_weights").share, 0);
  EXPECT_EQ(asked(kTrainedProducts, "quantize:to=int8").share, 0);
  EXPECT_EQ(asked("stream: scaled_2_bias_matmul_kernel 50", "quantize:to=int8").share, 0);
}

TEST(Quantize, WhatDoesNotApplyChangesNothing) {
  Graph graph = parse_graph(kTrainedProducts);
  EXPECT_EQ(quantized(graph, "to=int8_weights").changed, 0U);
  EXPECT_EQ(first(graph), 1ms);
}

TEST(Quantize, RefusesTypesThatTheDeviceLacks) {
  EXPECT_EQ(simulated("stream: bf16_gemm 1000",
                      R"({"use": "quantize", "to": "nvfp4", "device": "h100-sxm5-80gb"})"),
            "to: must be a type that h100-sxm5-80gb computes in, got nvfp4; for one that does, put "
            "faster_device:to=b200 before it");
  EXPECT_EQ(simulated("stream: bf16_gemm 1000", R"({"use": "quantize"})"),
            "device: must be given, as the trace does not say what device it was recorded on");
}

TEST(Quantize, WeightsThatProductsReadAreSmallerUnlessTheJobTrains) {
  for (const bool trains : {false, true}) {
    Graph graph = parse_graph(trains ? kTrainedProducts : "stream: bf16_gemm 1000, bf16_gemm 1000");
    graph.allocations() = {{.bytes = Bytes{1 << 20}, .use = MemoryUse::parameter},
                           {.bytes = Bytes{1 << 20}, .use = MemoryUse::activation}};
    graph.accesses() = {{.allocation = 0, .task = TaskId{0}}, {.allocation = 1, .task = TaskId{0}}};
    const Effect effect = quantized(graph, "to=fp8");
    EXPECT_EQ(graph.allocations()[0].bytes.count, trains ? 1 << 20 : 1 << 19);
    EXPECT_EQ(graph.allocations()[1].bytes.count, 1 << 20);
    EXPECT_EQ(effect.changed, trains ? 2U : 3U);
  }
}

TEST(Quantize, WeightsAloneNeedKernelsOfTheirOwn) {
  const auto doubts_with = [](const char* to) {
    Graph graph = parse_graph("stream: nvjet_sm90_tst_128x256 900");
    graph.device_names() = {"NVIDIA H100 80GB HBM3"};
    return read_transform_text(std::string("quantize:to=") + to)->apply(graph, {}).doubts.size();
  };
  EXPECT_EQ(doubts_with("int8_weights"), 1U);
  EXPECT_EQ(doubts_with("fp8"), 0U);
}

TEST(Quantize, WhatItNarrowedStaysAsItIs) {
  Graph graph = parse_graph("stream: bf16_gemm 1000, elementwise_kernel 50");
  quantized(graph, "to=fp8");
  const Nanoseconds once = first(graph);
  EXPECT_EQ(graph.name(TaskId{0}), "bf16_gemm (fp8)");
  EXPECT_EQ(graph.name(TaskId{1}), "elementwise_kernel");
  EXPECT_EQ(quantized(graph, "to=fp8").changed, 0U);
  EXPECT_EQ(first(graph), once);
}

TEST(Quantize, SaysThatProductsInFullGainFromHalfPrecision) {
  const auto warned = [](const char* product) {
    Graph graph = parse_graph("stream: " + std::string(product) + " 1000");
    const Effect effect = quantized(graph, "to=int4_weights");
    return std::ranges::any_of(effect.notes.all(), [](const Note& note) {
      return note.text.starts_with("products recorded in FP32");
    });
  };
  EXPECT_TRUE(warned("ampere_sgemm_128x64_nn"));
  EXPECT_FALSE(warned("bf16_gemm"));
}

}  // namespace
}  // namespace foretrace

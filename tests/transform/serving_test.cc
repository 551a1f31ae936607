#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "machine/operation_rates.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kDecode = R"(
    @step execute_100_context_0(sq0sk0sqsq0sqsk0)_generation_64(sq64sk65536sqsq64sqsk65536)
    @step execute_context_1(4000)_generation_8(8)
    stream: bf16_gemm 100 {step=0}, flash_attention 211 {step=0}, moe_kernel 100 {step=0}, bf16_gemm 900 {step=1}, flash_attention 211 {step=1}
)";

Graph decoding() { return parse_graph(kDecode); }

Effect changed(Graph& graph, const std::string& step) {
  return read_transform_text(step + ",device=h100-sxm5-80gb")->apply(graph, {});
}

Nanoseconds time_of(const Graph& graph, std::uint32_t task) {
  return graph.task(TaskId{task}).duration;
}

template <class Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const Nanoseconds kStart =
    rate_of(find_device("h100-sxm5-80gb"), OperationKind::decode, Arithmetic::half).start;

TEST(ServingTransforms, ANarrowCacheHalvesWhatDecodingReads) {
  Graph graph = decoding();
  const Effect effect = changed(graph, "kv_cache:to=fp8");
  EXPECT_EQ(time_of(graph, 1), kStart + (211us - kStart) / 2);
  EXPECT_EQ(time_of(graph, 0), 100us);
  EXPECT_EQ(time_of(graph, 4), 211us);  // A step that computes a prompt as well.
  EXPECT_EQ(effect.changed, 1U);
  EXPECT_GE(effect.times_error.share, 0.2);
  EXPECT_FALSE(effect.doubts.empty());
}

TEST(ServingTransforms, SayWhereTheyDoNotApply) {
  const auto applies = [](const Graph& graph, const char* step) {
    return read_transform_text(step)->applies(graph);
  };
  const Graph graph = decoding();
  EXPECT_EQ(applies(graph, "kv_cache").share, 0.5);
  EXPECT_EQ(applies(graph, "context_length:factor=2").why_not,
            "50.0 % of the time of attention is in steps that compute prompts as well, where "
            "arithmetic and the cache cannot be told apart");
  EXPECT_NEAR(applies(graph, "serving_batch:to=8").share, 411. / 1522, 1e-9);
  const Graph between =
      parse_graph("@step execute_context_0(0)_generation_4(4)\nstream: a 30 {step=0}, b 10");
  EXPECT_EQ(applies(between, "serving_batch:to=8").why_not,
            "25.0 % of the time of device work is outside the steps that the engine names");
  const Graph other = parse_graph("stream: flash_attention 50");
  for (const char* step : {"kv_cache", "context_length:factor=2", "serving_batch"}) {
    EXPECT_EQ(applies(other, step).share, 0) << step;
    Graph copy = other.clone();
    EXPECT_EQ(refusal_of([&] {
                read_transform_text(std::string(step) +
                                    (std::string(step).find(':') == std::string::npos ? ":" : ",") +
                                    "device=h100-sxm5-80gb")
                    ->apply(copy, {});
              }).substr(0, 32),
              "no step is named as one of an en");
  }
  const Graph narrow = parse_graph(
      "@step execute_context_0(0)_generation_4(4)\nstream: flash_attention_fp8 50 {step=0}");
  EXPECT_EQ(applies(narrow, "kv_cache").why_not,
            "the cache of keys and values is in 8 bits already");
}

TEST(ServingTransforms, ACacheNeedsADeviceOfItsType) {
  Graph graph = decoding();
  EXPECT_EQ(refusal_of([&] {
              read_transform_text("kv_cache:to=fp8,device=a100-sxm4-80gb")->apply(graph, {});
            }),
            "to: must be a type that a100-sxm4-80gb has, got fp8");
  EXPECT_EQ(refusal_of([&] { changed(graph, "kv_cache:to=nvfp4"); }),
            "to: must be a type that h100-sxm5-80gb has, got nvfp4");
}

TEST(ServingTransforms, ALongerContextIsReadByDecodingAlone) {
  Graph graph = decoding();
  const Effect effect = changed(graph, "context_length:to=2048");  // Recorded: 65,536 / 64.
  EXPECT_EQ(time_of(graph, 1), kStart + (211us - kStart) * 2);
  EXPECT_EQ(time_of(graph, 4), 211us);
  EXPECT_TRUE(effect.doubts.empty());
  Graph far = decoding();
  EXPECT_EQ(changed(far, "context_length:factor=5").doubts.size(), 1U);
  Graph untold = parse_graph(
      "@step execute_context_0(0)_generation_4(4)\nstream: flash_attention 50 {step=0}");
  EXPECT_EQ(refusal_of([&] { changed(untold, "context_length:to=5"); }).substr(0, 35),
            "to: must have a recorded length to ");
}

TEST(ServingTransforms, MoreSequencesReadTheSameWeights) {
  Graph graph = decoding();
  const Effect effect = changed(graph, "serving_batch:to=128,experts=128,top_k=8");
  EXPECT_EQ(time_of(graph, 0), 100us);  // 128 tokens are too few for arithmetic to matter.
  EXPECT_EQ(time_of(graph, 1), kStart + (211us - kStart) * 2);
  // All but 1.6 % of the experts work for 64 tokens already.
  EXPECT_GT(time_of(graph, 2), 101us);
  EXPECT_LT(time_of(graph, 2), 102us);
  EXPECT_EQ(time_of(graph, 3), 900us);
  EXPECT_NE(effect.summary.find("128 sequences in a step that decodes"), std::string::npos);
  Graph without = decoding();
  EXPECT_EQ(refusal_of([&] { changed(without, "serving_batch:to=128"); }).substr(0, 46),
            "experts: must be given together with top_k, as");
}

// H100 and H200 differ in the bandwidth of memory alone.
TEST(ServingTransforms, DecodingIsFasterWhereMemoryIs) {
  Graph graph = decoding();
  read_transform_text("faster_device:from=h100-sxm5-80gb,to=h200")->apply(graph, {});
  EXPECT_LT(time_of(graph, 0), 80us);
  EXPECT_LT(time_of(graph, 1), 180us);
  EXPECT_GT(time_of(graph, 3), 850us);
}

TEST(ServingTransforms, GpusShareEachLayerOfAStep) {
  const std::string step = "tensor_parallel:gpus=2,bandwidth=100GB/s,latency=0ns";
  Graph graph = decoding();
  EXPECT_EQ(refusal_of([&] { read_transform_text(step)->apply(graph, {}); }).substr(0, 26),
            "token_bytes: must be given");
  const Effect effect = read_transform_text(step + ",token_bytes=1000kB")->apply(graph, {});
  EXPECT_EQ(time_of(graph, 0), 100us);  // The shortest kernel.
  EXPECT_EQ(time_of(graph, 1), 155'500ns);
  EXPECT_EQ(time_of(graph, 3), 500us);
  // A ring of two sends as many bytes as it sums: two times 64 MB, and 4,008 MB.
  EXPECT_EQ(graph.task(graph.next(TaskId{1})).duration, 2 * 640us);
  EXPECT_EQ(graph.task(graph.next(TaskId{4})).duration, 2 * 40080us);
  EXPECT_FALSE(effect.doubts.empty());
}

TEST(ServingTransforms, ArithmeticLimitsLargeBatches) {
  Graph graph =
      parse_graph("@step execute_context_0(0)_generation_64(64)\nstream: bf16_gemm 100 {step=0}");
  Graph larger = graph.clone();
  changed(graph, "serving_batch:to=256");
  changed(larger, "serving_batch:to=4096");
  EXPECT_LT(time_of(graph, 0), 150us);
  EXPECT_GT(time_of(larger, 0), 500us);
}

TEST(ServingTransforms, StepsThatDecodeAreNotForChangesOfWholeBatches) {
  const auto asked = [](const char* stream, const char* step) {
    return read_transform_text(step)->applies(
        parse_graph("@step execute_context_0(0)_generation_4(4)\n" + std::string(stream)));
  };
  for (const char* step : {"batch_size:factor=2", "sequence_length:factor=2"}) {
    EXPECT_EQ(asked("stream: bf16_gemm 30 {step=0}, bf16_gemm 10", step).share, 0) << step;
    EXPECT_EQ(asked("stream: bf16_gemm 30 {step=0}, bf16_gemm 70", step).share, 0.7) << step;
    EXPECT_EQ(asked("stream: bf16_gemm 30", step).share, 1) << step;
  }
  EXPECT_EQ(asked("stream: bf16_gemm 30 {step=0}", "batch_size:factor=2").why_not,
            "100.0 % of the time of device work is in steps that decode, whose weights and caches "
            "it does not know; serving_batch does");
}

}  // namespace
}  // namespace foretrace

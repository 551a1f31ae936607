// The bytes of all gradients, from shapes, from the blocks of kernels and from their time.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "foretrace/import.h"
#include "infer/recording.h"

namespace foretrace {
namespace {

constexpr auto kGradient = "torch::autograd::AccumulateGrad";

/// Two steps of 100 us; each hands over gradients with these shapes, `times` times, each time
/// behind a forward pass if `is_micro_batch`.
Recording steps_with(const std::vector<std::string>& shapes, int times = 1,
                     bool is_micro_batch = false, const std::string& type = "float") {
  Recording run;
  Trace& trace = run.trace();
  std::uint32_t correlation = 0;
  for (int step = 0; step < 2; ++step) {
    int at = 100 * step;
    run.step(step, at, 100);
    for (int time = 0; time < times; ++time) {
      if (time == 0 || is_micro_batch) {
        run.op(0, "forward", at + 1, 4);
        ++correlation;
        run.call(0, "cudaLaunchKernel", at + 2, 1, correlation)
            .kernel(0, "gemm", at + 4, 1, correlation);
        at += 6;
      }
      for (const std::string& shape : shapes) {
        run.op(1, kGradient, at++, 1);
        trace.op_details.push_back({.shapes = trace.names.intern("[" + shape + "]"),
                                    .types = trace.names.intern("[\"" + type + "\"]")});
        trace.hosts.back().details = static_cast<std::uint32_t>(trace.op_details.size() - 1);
      }
    }
  }
  return run;
}

GradientEstimate estimate_of(Recording&& run) {
  return infer(run.trace()).graph.gradient_estimate();
}

TEST(GradientSizes, AreThoseOfTheShapesThatAutogradAccumulates) {
  const GradientEstimate found = estimate_of(steps_with({"[64, 3, 7, 7]", "[64]"}));
  EXPECT_EQ(found.bytes.count, 4 * (64 * 3 * 7 * 7 + 64));
  EXPECT_EQ(found.lower, found.bytes);
  EXPECT_EQ(found.upper, found.bytes);
  EXPECT_EQ(estimate_of(steps_with({"[64, 3]"}, 1, false, "c10::BFloat16")).bytes.count,
            2 * 64 * 3);
}

TEST(GradientSizes, LayersThatAreAlikeAreNoMicroBatches) {
  EXPECT_EQ(estimate_of(steps_with({"[8, 8]", "[8]"}, 3)).bytes.count, 3 * 4 * 72);
}

TEST(GradientSizes, MicroBatchesHandOverTheSameOnes) {
  const GradientEstimate found = estimate_of(steps_with({"[8, 8]", "[8]"}, 3, true));
  EXPECT_EQ(found.bytes.count, 4 * 72);
}

TEST(GradientSizes, NothingShowsThem) {
  Recording run;
  run.step(0, 0, 10).op(0, "aten::mm", 1, 2);
  EXPECT_EQ(estimate_of(std::move(run)).bytes, Bytes{});
}

/// A recording of a model whose parameters were counted, and the bytes of as many in fp32.
struct Counted {
  Trace trace;
  double bytes = 0;
};

Counted counted(const std::string& side, const std::string& model) {
  const std::string folder = FORETRACE_SOURCE_DIR "/traces/";
  std::ifstream file(folder + "ground_truth.json");
  const nlohmann::json truth = nlohmann::json::parse(file);
  for (const nlohmann::json& one : truth.at("cases")) {
    if (one.at("model") == model)
      return {import_trace(folder + "ground_truth/" + side),
              4 * one.at("before").at("parameters").get<double>()};
  }
  return {};
}

void expect_inside(const GradientEstimate& found, double bytes, double most_off) {
  EXPECT_LE(static_cast<double>(found.lower.count), bytes) << found.source;
  EXPECT_GE(static_cast<double>(found.upper.count), bytes) << found.source;
  EXPECT_NEAR(static_cast<double>(found.bytes.count), bytes, most_off * bytes) << found.source;
}

TEST(GradientSizes, OfTrainingsAreThoseOfTheirParameters) {
  for (const auto& [side, model] : {std::pair("resnet50.amp.pt.trace.json.zst", "resnet50"),
                                    std::pair("gpt2-small.amp.pt.trace.json.zst", "gpt2-small")}) {
    Counted job = counted(side, model);
    expect_inside(infer(job.trace, {.memory = false}).graph.gradient_estimate(), job.bytes, 0);
    // Without shapes, calls and blocks are left.
    for (OpDetails& details : job.trace.op_details) details.shapes = {};
    const GradientEstimate blocks = infer(job.trace, {.memory = false}).graph.gradient_estimate();
    EXPECT_EQ(blocks.source, "the blocks of the optimizer's kernels");
    expect_inside(blocks, job.bytes, 0.02);
  }
  // A recording of kernels alone has only their times.
  for (const auto& [side, model, off] :
       {std::tuple("resnet50.amp.ftrace", "resnet50", 0.35),
        std::tuple("gpt2-small.amp.fused.ftrace", "gpt2-small", 0.1)}) {
    const Counted job = counted(side, model);
    const GradientEstimate time = infer(job.trace, {.memory = false}).graph.gradient_estimate();
    EXPECT_EQ(time.source, "the time of the optimizer's kernels");
    expect_inside(time, job.bytes, off);
  }
}

/// Two steps whose update launches multi-tensor kernels with these functors, each of 100 blocks.
Recording steps_updated_by(const std::string& optimizer, const std::vector<std::string>& functors) {
  Recording run;
  std::uint32_t correlation = 0;
  for (int step = 0; step < 2; ++step) {
    int at = 100 * step;
    run.step(step, at, 100);
    for (int i = 0; i < 4; ++i) run.op(1, kGradient, ++at, 1);
    run.op(0, "Optimizer.step#" + optimizer + ".step", at + 2, 60);
    for (const std::string& functor : functors) {
      at += 10;
      run.call(0, "cudaLaunchKernel", at, 1, ++correlation)
          .kernel(0, "multi_tensor_apply_kernel<TensorListMetadata" + functor, at + 2, 3,
                  correlation);
      run.trace().devices.back().grid = 100;
      run.trace().devices.back().block = 512;
    }
  }
  return run;
}

TEST(GradientSizes, SgdReadsEachMomentumOnceAndWithoutThoseEachGradient) {
  const std::string momentum = "<1>, BinaryOpScalarFunctor<float, 1>";
  const std::string added = "<2>, BinaryOpListAlphaFunctor<float, 2>";
  const std::string decayed = "<3>, BinaryOpListAlphaFunctor<float, 3>";
  const auto bytes = [](const std::string& optimizer, const std::vector<std::string>& functors) {
    return estimate_of(steps_updated_by(optimizer, functors)).bytes.count;
  };
  constexpr std::int64_t kBlocks = 4 * 65536 * (100 - 3);
  EXPECT_EQ(bytes("SGD", {decayed, momentum, added, added}), kBlocks);
  EXPECT_EQ(bytes("SGD", {decayed, added}), kBlocks);
  EXPECT_EQ(bytes("Shampoo", {momentum, added}), 0);
}

TEST(GradientSizes, SgdOfTheSampleIsTimed) {
  const Trace trace =
      import_trace(FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz");
  expect_inside(infer(trace, {.memory = false}).graph.gradient_estimate(), 4 * 11'689'512.0, 0.1);
}

TEST(GradientSizesCorpus, SgdOfResNet50HasItsParameters) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << "FORETRACE_CORPUS is not set";
  const Trace trace = import_trace(std::string(corpus) +
                                   "/hta-resnet-v100-ns/"
                                   "rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz");
  expect_inside(infer(trace, {.memory = false}).graph.gradient_estimate(), 4 * 25'557'032.0, 0.02);
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kEager = R"(
    cpu:    L:launch 1, h:host 3, M:launch 1, h:host 3, N:launch 1, h:host 3, O:launch 1, e:host 1
    stream: "a elementwise" 3, "b elementwise" 3, "c gemm" 2, "d gemm" 2
    L -> "a elementwise"
    M -> "b elementwise"
    N -> "c gemm"
    O -> "d gemm"
)";

TEST(TorchCompile, Baseline) {
  EXPECT_EQ(simulated(kEager), R"(
cpu    |LhhhMhhhNhhhOe.|
stream |.aaa.bbb.cc..dd|
)");
}

TEST(TorchCompile, FusesAndRunsAWrapperInsteadOfPython) {
  // 2us of guards and 1us for each of three launches replace 9us.
  EXPECT_EQ(
      simulated(kEager, R"({"use": "torch_compile", "guard_time": "2us", "wrapper_time": "1us"})"),
      R"(
cpu    |cccLcNcOe...|
stream |....ffffccdd|
)");
}

TEST(TorchCompile, WhatIsFasterInPythonStays) {
  EXPECT_EQ(
      simulated(kEager, R"({"use": "torch_compile", "guard_time": "9us", "wrapper_time": "1us"})"),
      R"(
cpu    |LhhhhhhNhhhOe.|
stream |.ffff...cc..dd|
)");
}

TEST(TorchCompile, ReducedOverheadIsOneGraph) {
  Graph graph = parse_graph(kEager);
  const Effect effect =
      read_transform_text("torch_compile:mode=reduce-overhead,guard_time=2us,wrapper_time=1us")
          ->apply(graph, {});
  EXPECT_EQ(effect.summary,
            "2 kernels became 1, from 6 us to 4 us in all, 1 launch call fewer; 1 compiled region "
            "with 4 us less host work; 3 launch calls became 1 graph launch, -3.6 us less host "
            "work");
}

TEST(TorchCompile, LoadedCodeBreaksTheRegionAndStays) {
  Graph graph = parse_graph(R"(
      cpu:    L:launch 1, h:host 9, M:launch 1, cuModuleLoadData:host 9, N:launch 1, h:host 9, O:launch 1
      stream: "a gemm" 3, "b gemm" 3, "c gemm" 2, "d gemm" 2
      L -> "a gemm"
      M -> "b gemm"
      N -> "c gemm"
      O -> "d gemm"
  )");
  const Effect effect =
      read_transform_text("torch_compile:guard_time=2us,wrapper_time=1us")->apply(graph, {});
  EXPECT_EQ(effect.host_saved, 10us);  // Two regions need 4us instead of 9us each.
}

TEST(TorchCompile, AWaitBreaksTheRegion) {
  Graph graph = parse_graph(R"(
      cpu:    L:launch 1, h:host 9, M:launch 1, s:sync 1, N:launch 1, h:host 9, O:launch 1
      stream: "a gemm" 3, "b gemm" 3, "c gemm" 2, "d gemm" 2
      L -> "a gemm"
      M -> "b gemm"
      "b gemm" -> s
      N -> "c gemm"
      O -> "d gemm"
  )");
  const Effect effect =
      read_transform_text("torch_compile:guard_time=2us,wrapper_time=1us")->apply(graph, {});
  EXPECT_EQ(effect.figures.at(6).name, "regions");
  EXPECT_EQ(to_text(effect.figures.at(6)), "2");
  EXPECT_EQ(effect.notes.count("graph breaks where the host waits for the device"), 1);
}

TEST(TorchCompile, SaysWhatIsWrong) {
  EXPECT_EQ(simulated("stream: \"a gemm\" 1", R"({"use": "torch_compile"})"),
            "where: no kernels (kind kernel) to fuse, and no host work between their launches to "
            "save");
  EXPECT_EQ(simulated("stream: \"a gemm\" 1 {phase=update}", R"({"use": "torch_compile"})"),
            "where: all tasks (kind kernel) are of the update phase; \"optimizer\": true compiles "
            "them");
}

Applicability applies_to(const char* stream) {
  return read_transform_text("torch_compile")->applies(parse_graph(stream));
}

TEST(TorchCompile, DoesNotApplyToWhatIsCompiled) {
  EXPECT_EQ(applies_to("stream: sgemm 90, x_elementwise 10").share, 1);
  EXPECT_EQ(applies_to("stream: sgemm 90, x_elementwise 30, triton_poi_fused_add_0 10").share, 1);
  const Applicability applies =
      applies_to("stream: sgemm 90, x_elementwise 10, triton_poi_fused_add_0 30");
  EXPECT_EQ(
      to_text(applies),
      "does not apply: 75.0 % of the time of its kernels bound by memory is in kernels that a "
      "compiler generated");
  EXPECT_EQ(applies_to("stream: flux_kernel 90").share, 0);
}

TEST(TorchCompile, LooksIntoNoKernelsOfOthers) {
  EXPECT_EQ(applies_to("stream: sgemm 70, x_elementwise 10, kDequantizeBlockwise 20").share, 1);
  EXPECT_NEAR(applies_to("stream: sgemm 50, x_elementwise 10, kDequantizeBlockwise 40").share, 0.6,
              1e-9);
}

}  // namespace
}  // namespace foretrace

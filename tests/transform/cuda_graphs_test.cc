#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// With a graph launch of 1us and no time for each kernel, times in pictures can be counted.
#define GRAPHS(more) \
  R"({"use": "cuda_graphs", "launch_time": "1us", "kernel_time": "0us", "gap": "0us")" more "}"

constexpr auto kHostBound = R"(
    cpu:    L:launch 1, h:host 2, M:launch 1, h:host 2, N:launch 1, e:host 1
    stream: A 1, B 1 {gap=1}, C 2
    L -> A
    M ->+1 B
    N -> C
)";

TEST(CudaGraphs, Baseline) {
  EXPECT_EQ(simulated(kHostBound), R"(
cpu    |LhhMhhNe.|
stream |.A...B.CC|
)");
}

TEST(CudaGraphs, OneLaunchAndNoHostWorkBetween) {
  EXPECT_EQ(simulated(kHostBound, GRAPHS("")), R"(
cpu    |ce...|
stream |.ABCC|
)");
}

TEST(CudaGraphs, LaunchTimeGrowsWithTheKernels) {
  EXPECT_EQ(
      simulated(
          kHostBound,
          R"({"use": "cuda_graphs", "launch_time": "1us", "kernel_time": "1us", "gap": "5us"})"),
      R"(
cpu    |cccce....|
stream |....A.BCC|
)");
}

TEST(CudaGraphs, WhatTheDeviceBoundsDoesNotGetFaster) {
  constexpr auto kDeviceBound = R"(
      cpu:    L:launch 1, M:launch 1, N:launch 1
      stream: A 5, B 5, C 5
      L -> A
      M -> B
      N -> C
  )";
  EXPECT_EQ(simulated(kDeviceBound), R"(
cpu    |LMN.............|
stream |.AAAAABBBBBCCCCC|
)");
  EXPECT_EQ(simulated(kDeviceBound, GRAPHS("")), R"(
cpu    |c...............|
stream |.AAAAABBBBBCCCCC|
)");
}

TEST(CudaGraphs, KernelsOnAllStreamsWaitForTheLaunch) {
  EXPECT_EQ(simulated(R"(
      cpu: L:launch 1, M:launch 1
      one: A 1
      two: B 1
      L -> A
      M -> B
  )",
                      GRAPHS("")),
            R"(
cpu |c.|
one |.A|
two |.B|
)");
}

TEST(CudaGraphs, AWaitEndsARegion) {
  EXPECT_EQ(simulated(R"(
      cpu:    L:launch 1, M:launch 1, w:sync 1, N:launch 1, O:launch 1
      stream: A 2, B 2, C 2, D 2
      L -> A
      M -> B
      B -> w
      N -> C
      O -> D
  )",
                      GRAPHS("")),
            R"(
cpu    |c....wc....|
stream |.AABB..CCDD|
)");
}

TEST(CudaGraphs, CodeThatIsCompiledOrLoadedEndsARegionAndStays) {
  for (const std::string call : {"cuModuleLoadDataEx", "cuLibraryLoadData", "hipModuleLoad",
                                 "executor_utils::Nvrtc::CompileProgram", "nvrtcCompileProgram"}) {
    EXPECT_EQ(simulated("cpu: L:launch 1, h:host 1, M:launch 1, \"" + call +
                            "\":host 4, N:launch 1, i:host 1, O:launch 1\n" +
                            "stream: A 1, B 1, C 1, D 1\nL -> A\nM -> B\nN -> C\nO -> D\n",
                        GRAPHS("")),
              "\ncpu    |c" + std::string(4, call[0]) + "c..|\nstream |.AB...CD|\n");
  }
}

TEST(CudaGraphs, HostWorkThatIsGoneIsCounted) {
  Graph graph = parse_graph(kHostBound);
  const auto graphs = read_transform_text("cuda_graphs:launch_time=1us,kernel_time=0us,gap=0us");
  EXPECT_EQ(graphs->apply(graph, {}).host_saved, 6us);  // Of 7us of launches and work, 1us is left.
}

TEST(CudaGraphs, ACopyFromTheHostEndsARegion) {
  EXPECT_EQ(simulated(R"(
      cpu:    i:launch 1, h:host 1, L:launch 1, h:host 1, M:launch 1
      stream: I:copy_in 1, A 1, B 1
      i -> I
      L -> A
      M -> B
  )",
                      GRAPHS("")),
            R"(
cpu    |ihc..|
stream |.I.AB|
)");
}

constexpr auto kAutograd = R"(
    main:     F:launch 1 {phase=forward}, g:host 1 {phase=forward}, t:host 1 {phase=backward}, U:launch 1 {phase=update}
    autograd: b:host 1 {phase=backward}, B:launch 1 {phase=backward}, C:launch 1 {phase=backward}
    stream:   f 1 {phase=forward}, x 1 {phase=backward}, y 1 {phase=backward}, u 1 {phase=update}
    F -> f
    B -> x
    C -> y
    U -> u
    g -> b
    C -> t
)";

TEST(CudaGraphs, AStepIncludesTheThreadsItHandsOverTo) {
  EXPECT_EQ(simulated(kAutograd), R"(
main     |Fg...tU.|
autograd |..bBC...|
stream   |.f..xy.u|
)");
  EXPECT_EQ(simulated(kAutograd, GRAPHS("")), R"(
main   |c....|
stream |.fxyu|
)");
}

TEST(CudaGraphs, PerPhaseThreadsStayApart) {
  EXPECT_EQ(simulated(kAutograd, GRAPHS(R"(, "per": "phase")")), R"(
main     |Fg..tU.|
autograd |..bc...|
stream   |.f..xyu|
)");
}

TEST(CudaGraphs, RegionsDoNotCrossSteps) {
  EXPECT_EQ(simulated(R"(
      @step one
      @step two
      cpu:    L:launch 1 {step=0}, M:launch 1 {step=0}, N:launch 1 {step=1}, O:launch 1 {step=1}
      stream: A 1 {step=0}, B 1 {step=0}, C 1 {step=1}, D 1 {step=1}
      L -> A
      M -> B
      N -> C
      O -> D
  )",
                      GRAPHS("")),
            R"(
cpu    |cc...|
stream |.ABCD|
)");
}

TEST(CudaGraphs, APlaceInTheLaunchQueueIsNoWait) {
  EXPECT_EQ(simulated(R"(
      cpu:    L:launch 1, M:launch 1, N:launch 1
      stream: A 3, B 3, C 3
      L -> A
      M -> B
      N -> C
      A -> N
  )",
                      GRAPHS("")),
            R"(
cpu    |c.........|
stream |.AAABBBCCC|
)");
}

TEST(CudaGraphs, SaysWhatItDidAndWhatIsWrong) {
  Graph graph = parse_graph(kHostBound);
  EXPECT_EQ(
      read_transform_text("cuda_graphs:kernel_time=0us,launch_time=1us")->apply(graph, {}).summary,
      "3 launch calls became 1 graph launch, 6 us less host work");
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "cuda_graphs", "per": "layer"})",
       "per: must be one of step, phase, got \"layer\""},
      {R"({"use": "cuda_graphs", "least": 1})", "least: must be at least 2, got 1"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kHostBound, transform), message) << transform;
  }
  EXPECT_EQ(simulated("stream: A 1, B 1", R"({"use": "cuda_graphs"})"),
            "no launch calls belong to the tasks of \"where\" (kind device): without a host side "
            "there is nothing to "
            "save");
}

#undef GRAPHS

}  // namespace
}  // namespace foretrace

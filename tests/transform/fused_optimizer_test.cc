#include <gtest/gtest.h>

#include <string>

#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kUpdate = R"(
    cpu:    L:launch 1 {phase=forward}, M:launch 1 {phase=update}, h:host 2 {phase=update}, N:launch 1 {phase=update}, h:host 2 {phase=update}, O:launch 1 {phase=update}, e:host 1
    stream: F 2 {phase=forward}, A 1 {phase=update}, B 1 {phase=update}, C 1 {phase=update}
    L -> F
    M -> A
    N -> B
    O -> C
)";

TEST(FusedOptimizer, Baseline) {
  EXPECT_EQ(simulated(kUpdate), R"(
cpu    |LMhhNhhOe|
stream |.FFA.B..C|
)");
}

TEST(FusedOptimizer, OneLaunchAndOneKernel) {
  EXPECT_EQ(simulated(kUpdate, R"({"use": "fused_optimizer"})"), R"(
cpu    |LMe...|
stream |.FFfff|
)");
}

// Passes over lists of tensors: 3 accesses, 2 and 4; Adam reads four values and writes three.
TEST(FusedOptimizer, ReadsAndWritesEachValueOnce) {
  const auto fused = [](const std::string& last, const char* use) {
    Graph graph = parse_graph(
        "s: \"multi_tensor_apply_kernel<M<2>, TernaryOpScalarFunctor<float, 2, 2, 0>, "
        "LerpFunctor>\" 30 {phase=update}, \"multi_tensor_apply_kernel<M<2>, "
        "UnaryOpFunctor<float, 2, 1, 1>, Sqrt>\" 20 {phase=update}, \"" +
        last + "\" 40 {phase=update}");
    read_transform_text(use)->apply(graph, {});
    return simulate(graph, {}).length;
  };
  const std::string division =
      "multi_tensor_apply_kernel<M<float, 3>, PointwiseOpFunctor<float, 3, 3, 0>>";
  EXPECT_EQ(fused(division, "fused_optimizer"), 70us);
  EXPECT_EQ(fused(division, "fused_optimizer:duration=sum"), 90us);
  EXPECT_EQ(fused("vectorized_elementwise_kernel<4, F, std::array<char*, 9ul>>", "fused_optimizer"),
            45us);
  EXPECT_EQ(fused("an_update", "fused_optimizer"), 90us);
}

TEST(FusedOptimizer, SaysWhetherEachValueIsReadOnce) {
  const auto assumes = [](const std::string& kernel) {
    Graph graph = parse_graph("s: \"" + kernel + "\" 30 {phase=update}, \"" + kernel +
                              "Sqrt\" 30 {phase=update}");
    return read_transform_text("fused_optimizer")->apply(graph, {}).assumptions.front();
  };
  EXPECT_EQ(assumes("vectorized_elementwise_kernel<4, F, std::array<char*, 9ul>>"),
            "the fused kernel reads and writes each value once");
  EXPECT_EQ(assumes("an_update"), "the fused kernel takes as long as all it replaces");
}

TEST(FusedOptimizer, HostTimeAndFactor) {
  EXPECT_EQ(simulated(kUpdate, R"({"use": "fused_optimizer", "host_time": "3us", "factor": 0.34})"),
            R"(
cpu    |LpppMe|
stream |.FF..f|
)");
}

TEST(FusedOptimizer, ProductsStayAndSplitIt) {
  EXPECT_EQ(simulated(R"(
      stream: "a elementwise" 1 {phase=update}, "b elementwise" 1 {phase=update}, sgemm 2 {phase=update}, "c elementwise" 1 {phase=update}, "d elementwise" 1 {phase=update}
  )",
                      R"({"use": "fused_optimizer"})"),
            R"(
stream |ffssff|
)");
}

TEST(FusedOptimizer, KeepsCopiesAndWaits) {
  EXPECT_EQ(simulated(R"(
      cpu:    M:launch 1 {phase=update}, c:launch 1 {phase=update}, w:sync 1 {phase=update}, N:launch 1 {phase=update}
      stream: A 1 {phase=update}, i:copy_in 2 {phase=update}, B 1 {phase=update}
      M -> A
      c -> i
      i -> w
      N -> B
  )",
                      R"({"use": "fused_optimizer"})"),
            R"(
cpu    |Mc...w|
stream |.ffii.|
)");
}

TEST(FusedOptimizer, WhatItWaitsForInBetweenSplitsIt) {
  EXPECT_EQ(simulated(R"(
      cpu:    M:launch 1 {phase=update}, N:launch 1 {phase=update}, g:launch 1, O:launch 1 {phase=update}, P:launch 1 {phase=update}
      stream: A 1 {phase=update}, B 1 {phase=update}, C 1 {phase=update}, D 1 {phase=update}
      nccl:   G:collective 2
      M -> A
      N -> B
      g -> G
      B -> G
      O -> C
      P -> D
      G -> C
  )",
                      R"({"use": "fused_optimizer"})"),
            R"(
cpu    |MgO....|
stream |.ff..ff|
nccl   |...GG..|
)");
}

TEST(FusedOptimizer, OnePerStep) {
  EXPECT_EQ(simulated(R"(
      @step one
      @step two
      cpu:    L:launch 1 {step=0}, M:launch 1 {step=0}, N:launch 1 {step=1}, O:launch 1 {step=1}
      stream: A 2 {step=0 phase=update}, B 2 {step=0 phase=update}, C 2 {step=1 phase=update}, D 2 {step=1 phase=update}
      L -> A
      M -> B
      N -> C
      O -> D
  )",
                      R"({"use": "fused_optimizer"})"),
            R"(
cpu    |LN.......|
stream |.ffffffff|
)");
}

/// K launches of 5us with 3us of host work after each, K kernels of `duration`, then a wait for the
/// last.
std::string launches(int count, int duration) {
  std::string cpu = "cpu: ";
  std::string stream = "stream: ";
  std::string waits;
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    cpu += "L" + n + ":launch 5 {phase=update}, h" + n + ":host 3 {phase=update}, ";
    stream += (i > 0 ? ", K" : "K") + n + " " + std::to_string(duration) + " {phase=update}";
    waits += "L" + n + " -> K" + n + "\n";
  }
  return cpu + "S:sync 0\n" + stream + "\n" + waits + "K" + std::to_string(count - 1) + " -> S\n";
}

// The cases of the Daydream method, in microseconds.
TEST(FusedOptimizer, AgreesWithTheDaydreamCases) {
  const auto length = [](const std::string& text, const char* step) {
    Graph graph = parse_graph(text);
    if (*step != '\0') read_transform_text(step)->apply(graph, {});
    return simulate(graph).length;
  };
  EXPECT_EQ(length(launches(100, 2), ""), 800us);
  EXPECT_EQ(length(launches(100, 8), ""), 805us);
  EXPECT_EQ(length(launches(100, 20), ""), 2005us);
  EXPECT_EQ(length(launches(100, 20), "scale:where.kind=kernel,factor=0.33333333333333333"),
            803667ns);
  EXPECT_EQ(length(launches(2633, 2), ""), 21064us);
  EXPECT_EQ(length(launches(2633, 2), "fused_optimizer"), 5271us);
}

TEST(FusedOptimizer, TrafficTakesBytesOverBandwidth) {
  Graph graph = parse_graph("stream: A 900 {phase=update}, B 900 {phase=update}");
  // 10 M parameters, 28 bytes each, at 80 % of 900 GB/s.
  read_transform_text("fused_optimizer:duration=traffic,parameters=10000000,device=v100-sxm2-32gb")
      ->apply(graph, {});
  EXPECT_NEAR(static_cast<double>(graph.task(TaskId{0}).duration.count()), 388'889, 4000);
}

TEST(FusedOptimizer, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "fused_optimizer", "duration": "traffic"})",
       "parameters: must be given with \"duration\": \"traffic\""},
      {R"({"use": "fused_optimizer", "where": {"name": "adam"}})",
       "no task matches \"where\" (kind kernel, name \"adam\", phase update)"},
      {R"({"use": "fused_optimizer", "efficiency": 0})",
       "efficiency: must be at least 0.01, got 0"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kUpdate, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Each addition moves three tensors.
constexpr auto kChain = R"(
    cpu:    L:launch 1, M:launch 1, N:launch 1, O:launch 1
    stream: "a elementwise_kernel" 6, "b elementwise_kernel" 6, "c elementwise_kernel" 6, "g gemm" 3
    L -> "a elementwise_kernel"
    M -> "b elementwise_kernel"
    N -> "c elementwise_kernel"
    O -> "g gemm"
)";

TEST(OpFusion, Baseline) {
  EXPECT_EQ(simulated(kChain), R"(
cpu    |LMNO..................|
stream |.aaaaaabbbbbbccccccggg|
)");
}

TEST(OpFusion, WhatLiesBetweenIsNeitherWrittenNorRead) {
  // Two fusions; at each of them a third of 6 us is not written and a third not read.
  EXPECT_EQ(simulated(kChain, R"({"use": "op_fusion"})"), R"(
cpu    |LO............|
stream |.ffffffffffggg|
)");
}

TEST(OpFusion, DurationAsAsked) {
  EXPECT_EQ(simulated(kChain, R"({"use": "op_fusion", "duration": "longest"})"), R"(
cpu    |LO........|
stream |.ffffffggg|
)");
  EXPECT_EQ(simulated(kChain, R"({"use": "op_fusion", "duration": "sum"})"), R"(
cpu    |LO....................|
stream |.ffffffffffffffffffggg|
)");
}

TEST(OpFusion, ChainsAreNoLongerThanTheLongest) {
  EXPECT_EQ(simulated(kChain, R"({"use": "op_fusion", "longest": 2})"), R"(
cpu    |LNO...............|
stream |.ffffffffccccccggg|
)");
}

TEST(OpFusion, ArithmeticKeepsItsTime) {
  // A third of b is not read; the product was not bound by writing its output.
  EXPECT_EQ(simulated("stream: \"a gemm\" 6, \"b relu\" 6 ",
                      R"({"use": "op_fusion", "pattern": ["gemm", "relu"]})"),
            R"(
stream |ffffffffff|
)");
}

TEST(OpFusion, AReductionReadsAndMakesNextToNothing) {
  // The sum reads the output of b. A chain has one reduction, so the second sum begins another
  // chain.
  EXPECT_EQ(simulated(R"(stream: "a elementwise" 6, "b reduce_kernel" 2, "c reduce_kernel" 2)",
                      R"({"use": "op_fusion", "reductions": 1})"),
            R"(
stream |ffffcc|
)");
}

TEST(OpFusion, WhatAReductionReadIsAtHandBehindIt) {
  // x / sum(x): the division reads x again, which takes a third of its 6us.
  EXPECT_EQ(
      simulated(R"(stream: "s reduce_kernel" 2, "d elementwise" 6)", R"({"use": "op_fusion"})"),
      R"(
stream |ffffff|
)");
}

TEST(OpFusion, AccessesTellTheBytes) {
  // The tensor in between, 4 + 4 of 16 MB, is neither written nor read: half of the time.
  constexpr auto kAccesses = R"(
    cpu: m 1, L:launch 1, M:launch 1, f 1
    stream: "a elementwise" 4, "b elementwise" 4
    L -> "a elementwise"
    M -> "b elementwise"
    @alloc 4MB use=input: .. reads "a elementwise"
    @alloc 4MB use=temporary: m .. f writes "a elementwise" reads "b elementwise"
    @alloc 4MB use=activation: m .. writes "b elementwise"
  )";
  EXPECT_EQ(simulated(kAccesses, R"({"use": "op_fusion"})"), R"(
cpu    |mLf...|
stream |..ffff|
)");
  Graph graph = parse_graph(kAccesses);
  const Effect effect = read_transform_text("op_fusion")->apply(graph, {});
  EXPECT_EQ(graph.allocations()[1].bytes, Bytes{0});
  EXPECT_EQ(graph.allocations()[2].bytes, Bytes{4'000'000});
  EXPECT_EQ(effect.summary, "2 kernels became 1, from 8 us to 4 us in all, 1 launch call fewer");
  EXPECT_EQ(to_text(effect.figures[4]), "8 MB");
}

TEST(OpFusion, WhatTheBackwardPassReadsIsStillWritten) {
  Graph graph = parse_graph(R"(
    cpu: m 1, f 1
    stream: "a elementwise" 4, "b elementwise" 4, "g gemm" 1
    @alloc 4MB use=input: .. reads "a elementwise"
    @alloc 4MB use=activation: m .. f writes "a elementwise" reads "b elementwise", "g gemm"
    @alloc 4MB use=activation: m .. writes "b elementwise"
  )");
  read_transform_text("op_fusion")->apply(graph, {});
  EXPECT_EQ(graph.allocations()[1].bytes, Bytes{4'000'000});
  EXPECT_EQ(graph.task(TaskId{2}).duration, 6us);
}

TEST(OpFusion, NothingIsJoinedAcrossAWait) {
  constexpr const char* kWaits[] = {
      // The host waits for a before it launches b.
      "cpu: L:launch 1, s:sync 1, M:launch 1\nL -> A\nA -> s\nM -> B\n",
      // b needs the result of another stream.
      "other: X 9\nX -> B\n",
      // Another stream needs a.
      "other: X 1\nA -> X\n",
      // Two threads launch the kernels.
      "cpu: L:launch 1\nthread: M:launch 1\nL -> A\nM -> B\n",
  };
  for (const char* wait : kWaits) {
    const std::string text = std::string("stream: A = elementwise 2, B = elementwise 2\n") + wait;
    EXPECT_EQ(simulated(text, R"({"use": "op_fusion"})"),
              "classes: no two kernels that could be joined (reductions) directly follow each "
              "other among the tasks of \"where\" (kind kernel)")
        << text;
  }
}

TEST(OpFusion, WhatACompilerLeftApartStaysApart) {
  EXPECT_EQ(simulated("stream: triton_poi_fused_add_0 2, triton_poi_fused_mul_1 2",
                      R"({"use": "op_fusion"})"),
            "classes: no two kernels that could be joined (reductions) directly follow each "
            "other among the tasks of \"where\" (kind kernel)");
}

TEST(OpFusion, APlaceInTheLaunchQueueIsNoWait) {
  EXPECT_EQ(simulated(R"(
      cpu: L:launch 1, M:launch 1, N:launch 1
      stream: A = elementwise 3, B = elementwise 3, C = gemm 1
      L -> A
      M -> B
      N -> C
      A -> N [measured "launch queue"]
  )",
                      R"({"use": "op_fusion"})"),
            R"(
cpu    |L....N.|
stream |.ffff.g|
)");
}

TEST(OpFusion, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "op_fusion", "pattern": ["relu"]})",
       "pattern: must be the names of at least two kernels"},
      {R"({"use": "op_fusion", "pattern": ["gemm", "relu"]})",
       "pattern: no kernels of these names directly follow each other among the tasks of "
       "\"where\" (kind kernel)"},
      {R"({"use": "op_fusion", "pattern": ["gemm", ""]})",
       "pattern: [1]: must be a part of a kernel's name"},
      {R"({"use": "op_fusion", "where": {"phase": "update"}})",
       "no task matches \"where\" (kind kernel, phase update); the phases of this trace are "
       "unknown"},
      {R"({"use": "op_fusion", "longest": 0})", "longest: must be at least 1, got 0"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kChain, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace

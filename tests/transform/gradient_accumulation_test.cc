#include <gtest/gtest.h>

#include <fmt/core.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kAccumulatedStep = R"(
    stream: i:copy_in 2 {bytes=8kB phase=input step=0}, F 5 {phase=forward step=0}, B 5 {phase=backward step=0}, c:collective 3 {phase=backward step=0}, U 2 {phase=update step=0}, u 1 {phase=update step=0}
    @step one
    @alloc 8kB use=activation: F .. B writes F reads B
    @alloc 4kB use=gradient: B .. u writes B reads U
)";

TEST(GradientAccumulation, Baseline) {
  EXPECT_EQ(simulated(kAccumulatedStep, R"({"use": "gradient_accumulation", "micro_batches": 1})"),
            R"(
stream |iiFFFFFBBBBBcccUUu|
)");
}

TEST(GradientAccumulation, EachMicroBatchGoesForwardAndBackwardAndOneUpdateFollows) {
  // F takes 1 plus half of the 4 above it. A third of the bytes that B touches is a gradient, which
  // keeps its size. The copy is the shortest of its kind.
  EXPECT_EQ(simulated(kAccumulatedStep, R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
stream |iiFFFBBBBiiFFFBBBcccUUu|
)");
}

TEST(GradientAccumulation, EveryKernelIsLaunchedAgain) {
  EXPECT_EQ(simulated(R"(
    cpu: L:launch 2 {phase=forward}, M:launch 2 {phase=backward}, O:launch 1 {phase=update}
    stream: F 5 {phase=forward}, B 5 {phase=backward}, U 1 {phase=update}
    L -> F
    M -> B
    O -> U
)",
                      R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
cpu    |LLMMLLMMO......|
stream |..FFFBBBFFFBBBU|
)");
}

TEST(GradientAccumulation, OnlyTheLastMicroBatchCommunicates) {
  EXPECT_EQ(simulated(R"(
    stream: F 5 {phase=forward}, B 5 {phase=backward}, b 1 {phase=backward}, U 1 {phase=update}
    nccl: c:collective 2 {phase=backward}
    B -> c
    c -> U
)",
                      R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
stream |FFFBBBbFFFBBBb.U|
nccl   |.............cc.|
)");
}

TEST(GradientAccumulation, AnUpdateAmidThePassesOfAStepComesOnce) {
  // The step begins with input, then updates with the results of the previous step, like a
  // pipelined loop. The host waits for the forward pass, and so for everything before it on the
  // stream.
  EXPECT_EQ(simulated(R"(
    cpu: I:input 2 {phase=input}, O:launch 1 {phase=update}, L:launch 1 {phase=forward}, S:sync 1 {phase=forward}, M:launch 1 {phase=backward}
    stream: U 2 {phase=update}, F 4 {phase=forward}, B 4 {phase=backward}
    O -> U
    L -> F
    F -> S
    M -> B
)",
                      R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
cpu    |IL...SMIOL.....SM...|
stream |..FFF..BBBUUFFF..BBB|
)");
}

/// Steps of 11 ticks on the device, which the host launches in 3.
std::string steps_launched_ahead(int steps) {
  std::string text;
  for (int i = 0; i < steps; ++i) {
    text += fmt::format(R"(
        cpu: L{0}:launch 1 {{phase=forward step={0}}}, M{0}:launch 1 {{phase=backward step={0}}}
        cpu: O{0}:launch 1 {{phase=update step={0}}}
        stream: F{0} 5 {{phase=forward step={0}}}, B{0} 5 {{phase=backward step={0}}}
        stream: U{0} 1 {{phase=update step={0}}}
        L{0} -> F{0} [measured launch]
        M{0} -> B{0} [measured launch]
        O{0} -> U{0} [measured launch]
        @step s{0}
    )",
                        i);
  }
  return text;
}

/// Returns the names of the tasks on `lane` in order.
std::string names_on(const Graph& graph, std::uint32_t lane) {
  std::string names;
  for (TaskId id = graph.first(LaneId{lane}); id != kNoTask; id = graph.next(id))
    names += (names.empty() ? "" : " ") + std::string(graph.name(id));
  return names;
}

// The host launches the third step while the device runs the first.
TEST(GradientAccumulation, MicroBatchesStayBehindEarlierStepsOnADeviceThatLags) {
  Graph graph = parse_graph(steps_launched_ahead(3));
  read_transform_text("gradient_accumulation:micro_batches=2")->apply(graph, {});
  EXPECT_EQ(names_on(graph, 0), "L0 M0 L0 M0 O0 L1 M1 L1 M1 O1 L2 M2 L2 M2 O2");
  EXPECT_EQ(names_on(graph, 1), "F0 B0 F0 B0 U0 F1 B1 F1 B1 U1 F2 B2 F2 B2 U2");
  EXPECT_EQ(step_times(graph, simulate(graph)).step_time, 13us);
}

// Steps are marked by their first launches, which are those of the first micro-batch.
TEST(GradientAccumulation, EveryStepBeginsWithItsFirstMicroBatch) {
  Graph graph = parse_graph(steps_launched_ahead(3));
  read_transform_text("gradient_accumulation:micro_batches=2")->apply(graph, {});
  EXPECT_EQ(step_times(graph, simulate(graph)).each, (std::vector<Nanoseconds>{14us, 13us, 13us}));
}

// Amid the second step, which begins ahead of the device, the host waits for the first.
TEST(GradientAccumulation, TheFirstMicroBatchWaitsForEarlierSteps) {
  EXPECT_EQ(simulated(R"(
    @step one
    @step two
    cpu: L0 = L:launch 1 {phase=forward step=0}, M0 = M:launch 1 {phase=backward step=0}
    cpu: L1 = L:launch 1 {phase=forward step=1}, S:sync 1 {phase=forward step=1}
    cpu: M1 = M:launch 1 {phase=backward step=1}
    stream: F0 = F 3 {phase=forward step=0}, B0 = B 3 {phase=backward step=0}
    stream: F1 = F 3 {phase=forward step=1}, B1 = B 3 {phase=backward step=1}
    L0 -> F0
    M0 -> B0
    B0 -> S
    L1 -> F1
    M1 -> B1
)",
                      R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
cpu    |LMLML........SMLSM.......|
stream |.FFFBBBFFFBBBFFFBBBFFFBBB|
)");
}

TEST(GradientAccumulation, ActivationsShrinkAndGradientsStay) {
  Graph graph = parse_graph(kAccumulatedStep);
  const Effect effect =
      read_transform_text("gradient_accumulation:micro_batches=4")->apply(graph, {});
  const Timeline timeline = simulate(graph);
  // From the first backward pass on, the gradient exists, and 2 kB of each micro-batch.
  EXPECT_EQ(timeline.memory.at(0).peak, Bytes{6000});
  EXPECT_EQ(to_text(effect.figures.at(0)) + " " + to_text(effect.figures.at(1)), "8 kB 6 kB");
}

// If gradients are exchanged during the backward pass, only the last micro-batch exchanges them.
TEST(GradientAccumulation, CollectivesHappenOnce) {
  EXPECT_EQ(simulated(R"(
    stream: F 1 {phase=forward step=0}, B 1 {phase=backward step=0}, c:collective 2 {phase=backward step=0}, b 1 {phase=backward step=0}, U 1 {phase=update step=0}
    @step one
)",
                      R"({"use": "gradient_accumulation", "micro_batches": 2})"),
            R"(
stream |FBbFBccbU|
)");
}

TEST(GradientAccumulation, GradientsAreMadeByTheFirstMicroBatch) {
  Graph graph = parse_graph(kAccumulatedStep);
  read_transform_text("gradient_accumulation:micro_batches=4")->apply(graph, {});
  const Timeline timeline = simulate(graph);
  for (const Allocation& block : graph.allocations()) {
    if (block.use != MemoryUse::gradient) continue;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (graph.name(TaskId{i}) != "B") continue;
      EXPECT_LE(timeline.start[index(block.made_by)], timeline.start[i]);
    }
  }
}

TEST(GradientAccumulation, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "gradient_accumulation", "micro_batches": 0})",
       "micro_batches: must be at least 1, got 0"},
      {R"({"use": "gradient_accumulation", "micro_batches": 2000})",
       "micro_batches: must be at most 1024, got 2000"},
  };
  for (const auto& [step, message] : cases) EXPECT_EQ(simulated(kAccumulatedStep, step), message);
  EXPECT_EQ(simulated("x: A 1", R"({"use": "gradient_accumulation"})"),
            "micro_batches: no task of this trace is of the forward or backward pass");
}

}  // namespace
}  // namespace foretrace

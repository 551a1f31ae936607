#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/simulated.h"
#include "transform/model/stage_work.h"

namespace foretrace {
namespace {

/// Four layers that can each be a stage: 1 us forward and 2 us backward each.
constexpr auto kFourStages = R"(
    stream: a 1 {phase=forward layer=0 step=0}, b 1 {phase=forward layer=1 step=0}, c 1 {phase=forward layer=2 step=0}, d 1 {phase=forward layer=3 step=0}, D 2 {phase=backward layer=3 step=0}, C 2 {phase=backward layer=2 step=0}, B 2 {phase=backward layer=1 step=0}, A 2 {phase=backward layer=0 step=0}, U 2 {phase=update step=0}
    @step one
)";

std::string begins(const std::string& graph_text, std::size_t stages, const std::string& cuts) {
  try {
    const Graph graph = parse_graph(graph_text);
    std::string text;
    for (const std::size_t begin :
         stage_begins(recorded_layers(graph, simulate(graph)), stages, cuts))
      text += std::to_string(begin) + " ";
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

// Rank 0 runs two forward passes, a backward pass after rank 1 has run its own, the other one, and
// the update.
TEST(Pipeline, StagesHaveTheWorkOfTheirLayersAndFollowTheSchedule) {
  EXPECT_EQ(simulated(kFourStages, R"({"use": "pipeline", "stages": 2, "micro_batches": 2})"),
            R"(
rank 0           |0000....0000..00000|
rank 1           |..1111111111111....|
rank 0 gradients |...................|
rank 1 gradients |...................|
)");
}

TEST(Pipeline, LayersAreCutSoThatTheSlowestStageIsAsFastAsCanBe) {
  EXPECT_EQ(begins(kFourStages, 2, ""), "0 2 ");
  EXPECT_EQ(begins(kFourStages, 4, ""), "0 1 2 3 ");
  constexpr auto kLastIsLong = R"(
    stream: a 1 {phase=forward layer=0}, b 1 {phase=forward layer=1}, c 8 {phase=forward layer=2}, C 1 {phase=backward layer=2}
)";
  EXPECT_EQ(begins(kLastIsLong, 2, ""), "0 2 ");
  EXPECT_EQ(begins(kLastIsLong, 3, ""), "0 1 2 ");
}

TEST(Pipeline, CutsMayBeGiven) {
  EXPECT_EQ(begins(kFourStages, 3, "1,3"), "0 1 3 ");
  EXPECT_NE(begins(kFourStages, 3, "1").find("one less than the 3 stages"), std::string::npos);
  EXPECT_NE(begins(kFourStages, 3, "3,1").find("ascending"), std::string::npos);
  EXPECT_NE(begins(kFourStages, 3, "1,9").find("from 1 to 3"), std::string::npos);
  EXPECT_NE(begins(kFourStages, 5, "").find("at most the 4 layers"), std::string::npos);
}

TEST(Pipeline, PausesBelongToTheLayerInFront) {
  const Graph graph = parse_graph(R"(
    stream: a 1 {phase=forward layer=0}, b 1 {phase=forward layer=1 gap=3}, B 2 {phase=backward layer=1}, A 2 {phase=backward layer=0}
)");
  const RecordedLayers found = recorded_layers(graph, simulate(graph));
  ASSERT_EQ(found.steps.size(), 1U);
  EXPECT_TRUE(found.are_recorded);
  EXPECT_EQ(found.steps[0].layers[0].forward, 4us);
  EXPECT_EQ(found.steps[0].layers[1].forward, 1us);
}

TEST(Pipeline, WithoutLayersStagesBeginAnywhere) {
  const Graph graph = parse_graph(R"(
    stream: a 4 {phase=forward}, B 8 {phase=backward}, U 1 {phase=update}
)");
  const RecordedLayers found = recorded_layers(graph, simulate(graph));
  EXPECT_FALSE(found.are_recorded);
}

const std::string kWithActivations = std::string(kFourStages) + R"(
    @alloc 4MB use=activation: a .. A writes a reads A
    @alloc 2MB use=activation: d .. D writes d reads D
)";

TEST(Pipeline, WhatIsComputedAgainExistsAgain) {
  Graph graph = parse_graph(kWithActivations);
  graph.initial_memory() = {Bytes{40'000'000}};
  read_transform_text(
      "pipeline:stages=2,micro_batches=4,recompute=true,output_bytes=1MB,bandwidth=1GB/s,"
      "latency=0us")
      ->apply(graph, {});
  // Inputs in flight, and a stage's activations of one micro-batch.
  EXPECT_EQ(graph.initial_memory()[0].count, 20'000'000 + 2 * 1'000'000 + 4'000'000);
  EXPECT_EQ(graph.initial_memory()[1].count, 20'000'000 + 1'000'000 + 2'000'000);
}

TEST(Pipeline, ActivationsInFlightAndAPartOfTheWeightsAreHeld) {
  Graph graph = parse_graph(kWithActivations);
  graph.initial_memory() = {Bytes{40'000'000}};
  read_transform_text("pipeline:stages=2,micro_batches=4")->apply(graph, {});
  const std::vector<MemoryCurve> curves = simulate(graph).memory;
  ASSERT_EQ(curves.size(), 2U);
  // Half of the weights on each GPU, and two activations in flight on the first GPU, one on the
  // last.
  EXPECT_EQ(graph.initial_memory()[0].count, 20'000'000 + 2 * 4'000'000);
  EXPECT_EQ(graph.initial_memory()[1].count, 20'000'000 + 2'000'000);
}

TEST(Pipeline, RefusalsNameTheSetting) {
  EXPECT_NE(simulated(kFourStages, R"({"use": "pipeline", "stages": 3, "schedule": "chimera"})")
                .find("schedule: "),
            std::string::npos);
  EXPECT_NE(simulated(kFourStages, R"({"use": "pipeline", "stages": 2, "schedule": "2f2b"})")
                .find("schedule: there is no schedule"),
            std::string::npos);
  EXPECT_NE(simulated(kFourStages, R"({"use": "pipeline", "stages": 2, "replicas": 2})")
                .find("gradient_bytes: must be given"),
            std::string::npos);
  EXPECT_NE(simulated("stream: a 1", R"({"use": "pipeline", "stages": 2})")
                .find("no step of the trace has a forward and a backward pass"),
            std::string::npos);
}

// All recorded work is replaced, so that recorded communication would be lost.
TEST(Pipeline, RefusesJobsThatCommunicateAlready) {
  const std::string words = "has communicated already (sum)";
  const std::string two = std::string(kFourStages) + "    other: sum:collective 4\n";
  EXPECT_NE(simulated(two, R"({"use": "pipeline", "stages": 2})").find(words), std::string::npos);
}

// Loading a batch takes 20 us, which is longer than a micro-batch takes in a stage.
TEST(Pipeline, InputIsLoadedAtTheRecordedPace) {
  const std::string text = std::string(kFourStages) + "    loader: i:input 20 {step=0}\n";
  Graph graph = parse_graph(text);
  const Effect effect = read_transform_text("pipeline:stages=2,micro_batches=2")->apply(graph, {});
  const Timeline timeline = simulate(graph);
  Nanoseconds last{0}, first{1h};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    if (graph.removed(TaskId{i}) || graph.task(TaskId{i}).kind != TaskKind::kernel) continue;
    first = std::min(first, timeline.start[i]), last = std::max(last, timeline.start[i]);
  }
  EXPECT_EQ(first, 20us);
  EXPECT_GT(last, 40us);
  EXPECT_EQ(effect.assumptions.back(),
            "each micro-batch takes 20 us to load, as a recorded batch did");
}

}  // namespace
}  // namespace foretrace

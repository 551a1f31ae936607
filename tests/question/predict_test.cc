#include "foretrace/question/predict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "question/recorded.h"

namespace foretrace {
namespace {

Scenario with(std::initializer_list<const char*> steps) {
  Scenario scenario;
  for (const char* step : steps) {
    scenario.transforms.push_back(read_transform_text(step));
    scenario.uses.push_back(step);
  }
  return scenario;
}

PredictOptions strictly() {
  PredictOptions options;
  options.strict = true;
  return options;
}

PredictOptions explaining() {
  PredictOptions options;
  options.explain = true;
  return options;
}

std::string error_of(std::string_view graph, const Scenario& scenario,
                     const PredictOptions& options = {}) {
  try {
    predict(recorded_as(graph), scenario, options);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Predict, ReplaysTheJobAsItIs) {
  const Prediction prediction = predict(recorded_as(kFourSteps), {});
  // Each step begins with its load, because the device is idle: 10 + 5 + 2 + 50, 14 + 5 + 2 + 60,
  // 12 + 5 + 2 + 40, and 10 + 5 + 2 + 50.
  EXPECT_EQ(prediction.measured.each, (std::vector<Nanoseconds>{67us, 81us, 59us, 67us}));
  EXPECT_EQ(prediction.baseline.each, prediction.measured.each);
  EXPECT_EQ(prediction.measured.step_time, 67us);
  EXPECT_EQ(prediction.predicted.step_time, 67us);
  EXPECT_EQ(prediction.replay_error, 0);
  EXPECT_EQ(prediction.speedup, 1);
  EXPECT_TRUE(prediction.steps.empty());
}

TEST(Predict, AppliesStepsInTheirOrder) {
  const Prediction prediction = predict(
      recorded_as(kFourSteps),
      with({"set_duration:where.kind=kernel,duration=10us", "scale:where.kind=kernel,factor=0.5"}));
  EXPECT_EQ(prediction.predicted.each, (std::vector<Nanoseconds>{22us, 26us, 24us, 22us}));
  EXPECT_EQ(prediction.predicted.step_time, 23us);
  EXPECT_EQ(prediction.baseline.step_time, 67us);
  EXPECT_DOUBLE_EQ(prediction.speedup, 67.0 / 23.0);
  ASSERT_EQ(prediction.steps.size(), 2U);
  EXPECT_EQ(prediction.steps[1].use, "scale:where.kind=kernel,factor=0.5");
}

TEST(Predict, SaysWhenNothingChanged) {
  const Prediction prediction = predict(recorded_as(kFourSteps), with({"scale:factor=1"}));
  ASSERT_EQ(prediction.steps.size(), 1U);
  EXPECT_TRUE(prediction.steps[0].changed_nothing);
  EXPECT_EQ(prediction.notes.count("a step of the scenario changed nothing"), 1);
  EXPECT_EQ(prediction.predicted.each, prediction.baseline.each);
}

TEST(Predict, SaysWhenTheStepTimeStays) {
  const Prediction prediction = predict(recorded_as(R"(
    cpu: slow:host 100
    gpu: fast 10
  )"),
                                        with({"scale:where.kind=kernel,factor=0.5"}));
  EXPECT_FALSE(prediction.steps[0].changed_nothing);
  EXPECT_EQ(prediction.speedup, 1);
  EXPECT_EQ(prediction.notes.count("the step time does not change: steps do not wait for what the "
                                   "scenario speeds up or slows down"),
            1);
}

TEST(Predict, SaysWhichStepIsWrong) {
  EXPECT_EQ(error_of(kFourSteps, with({"scale:where.name=nothing_like_it,factor=2"})).substr(0, 50),
            "scale:where.name=nothing_like_it,factor=2: no task");
}

TEST(Predict, ATraceThatTakesNoTimeIsAnError) {
  EXPECT_EQ(error_of("gpu: a 0", {}), "nothing to simulate: no step of the trace takes any time");
}

TEST(Predict, AScenarioThatLeavesNothingIsAnError) {
  EXPECT_EQ(error_of("gpu: a 10", with({"remove"})),
            "nothing to simulate: the scenario leaves no work in a step");
}

TEST(Predict, StrictRefusesWarnings) {
  EXPECT_EQ(error_of(kFourSteps, with({"scale:factor=1"}), strictly()),
            "refused because of --strict: a step of the scenario changed nothing "
            "(scale:factor=1)");
}

TEST(Predict, ABaselineThatDoesNotReproduceIsNoted) {
  Inference inference = recorded_as(kFourSteps);
  for (Nanoseconds& start : inference.recorded.start) start = start * 11 / 10;
  const Prediction prediction = predict(inference, {});
  EXPECT_GT(prediction.replay_error, 0.01);
  EXPECT_EQ(prediction.notes.all().back().severity, Severity::warning);
}

TEST(Predict, ExplainsWhatTheCriticalPathWaitsFor) {
  const Prediction prediction = predict(recorded_as(kFourSteps), {}, explaining());
  const auto gemm =
      std::find_if(prediction.explained.begin(), prediction.explained.end(),
                   [](const Explained& line) { return line.task == "gemm (4 times)"; });
  ASSERT_NE(gemm, prediction.explained.end());
  EXPECT_EQ(gemm->lane, "gpu");
  EXPECT_EQ(gemm->duration, 200us);
  EXPECT_EQ(gemm->reason, "waits for launch on cpu (launch, measured)");
}

TEST(Predict, AThreadThatIsHandedWorkWaitedForNothing) {
  const Prediction prediction = predict(recorded_as(R"(
    main: forward:host 20, joins:sync 1
    engine: backward:host 30
    forward -> backward [inferred "thread hand-over"]
    backward -> joins [inferred "wait for thread"]
  )"),
                                        {}, explaining());
  std::string waits;
  for (const Explained& line : prediction.explained)
    waits += line.task + ' ' + to_text(line.waited) + ", ";
  EXPECT_EQ(waits, "forward 0 ns, backward 0 ns, joins 30 us, ");
}

TEST(Predict, MemoryFollowsTheReplay) {
  const Prediction prediction = predict(recorded_as(R"(
    gpu: a 10, b 10, c 10
    @alloc 100MB: a .. c
    @alloc 50MB: b .. c
  )"),
                                        {});
  ASSERT_EQ(prediction.predicted_memory.size(), 1U);
  EXPECT_EQ(prediction.predicted_memory[0].device, 0);
  EXPECT_EQ(prediction.predicted_memory[0].peak_allocated, Bytes{150'000'000});
}

TEST(Predict, WhatDoesNotFitIsSaid) {
  const auto said = [](Bytes limit) {
    Scenario scenario;
    scenario.allocator.limit = limit;
    const Prediction prediction = predict(recorded_as(R"(
      gpu: a 10, b 10
      @alloc 20GB: a .. b
    )"),
                                          scenario);
    return prediction.notes.count(
        "out of memory on device 0; times are those of a device with enough memory");
  };
  EXPECT_EQ(said({16LL << 30}), 1);
  EXPECT_EQ(said({32LL << 30}), 0);
}

TEST(Predict, EveryReportCanBeWritten) {
  const Prediction prediction =
      predict(recorded_as(kFourSteps), with({"scale:where.kind=kernel,factor=0.5"}));
  EXPECT_EQ(to_json(prediction)["scenario"]["transforms"][0]["use"], "scale");
}

}  // namespace
}  // namespace foretrace

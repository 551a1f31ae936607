#include "analysis/doubt/interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/doubt/inputs.h"
#include "analysis/doubt/resample.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "question/predict/baseline.h"
#include "question/recorded.h"
#include "support/ranks.h"

namespace foretrace {
namespace {

Scenario asking(const std::vector<std::string>& steps) {
  Scenario scenario;
  for (const std::string& step : steps) {
    scenario.transforms.push_back(read_transform_text(step));
    scenario.uses.push_back(step);
  }
  return scenario;
}

Nanoseconds width(const Interval& interval) { return interval.upper - interval.lower; }
Nanoseconds width(const Prediction& prediction) { return prediction.upper - prediction.lower; }

const IntervalPart* part(const Prediction& prediction, std::string_view source) {
  for (const IntervalPart& one : prediction.interval_parts) {
    if (one.source == source) return &one;
  }
  return nullptr;
}

// Six steps that compute for 100 us and `slow` in turn on a device that is never idle.
std::string six_steps(int slow) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    text += "@step ProfilerStep#" + number + "\n";
    const std::string comma = i == 0 ? "" : ", ";
    cpu += comma + "l" + number + "=launch:launch 1 {step=" + number + "}";
    gpu += comma + "k" + number + "=gemm " + std::to_string(i % 2 == 0 ? 100 : slow) +
           " {step=" + number + "}";
    waits += "l" + number + " -> k" + number + " [measured launch]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

// Eight steps at the pace of a busy device: the host would be fast in the first half, and slower in
// the second.
TEST(Interval, HoldsBothPacesOfAReplay) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i), comma = i == 0 ? "" : ", ";
    text += "@step ProfilerStep#" + number + "\n";
    cpu +=
        comma + "l" + number + "=launch:launch " + (i < 4 ? "10" : "90") + " {step=" + number + "}";
    gpu += comma + "k" + number + "=gemm 100 {step=" + number + "}";
    waits += "l" + number + " -> k" + number + " [measured launch]\n";
  }
  const Inference inference = recorded_as(text + cpu + "\n" + gpu + "\n" + waits);
  const Prediction prediction = predict(inference, asking({"scale:where.kind=kernel,factor=0.01"}));
  EXPECT_EQ(prediction.baseline.spread, 0);
  ASSERT_NE(part(prediction, "paces"), nullptr);
  EXPECT_LE(prediction.lower, 10us);
  EXPECT_GE(prediction.upper, 90us);
  EXPECT_EQ(part(predict(inference, asking({"scale:where.kind=kernel,factor=0.95"})), "paces"),
            nullptr);
}

TEST(Resample, StepsTakeOverTheWorkOfOthers) {
  const Inference inference = recorded_as(six_steps(140));
  const StepVariation variation(inference);
  EXPECT_EQ(std::vector<std::size_t>(variation.donors().begin(), variation.donors().end()),
            (std::vector<std::size_t>{1, 2, 3, 4, 5}));
  const Resampled found = resample(variation, inference.graph, inference.graph, {});
  EXPECT_EQ(found.resamples, 200U);
  ASSERT_EQ(found.times.size(), 5 * 200U);
  const auto slow = std::count(found.times.begin(), found.times.end(), 140us);
  EXPECT_EQ(slow + std::count(found.times.begin(), found.times.end(), 100us), 5 * 200);
  EXPECT_NEAR(static_cast<double>(slow), 1000 * 3 / 5.0, 75);
}

TEST(Resample, EachStepIsDrawnByItself) {
  const Inference inference = recorded_as(six_steps(140));
  const Resampled found = resample(StepVariation(inference), inference.graph, inference.graph, {});
  const auto steps = static_cast<std::ptrdiff_t>(found.steps);
  ASSERT_GE(steps, 4);
  std::size_t mixed = 0;
  for (auto draw = found.times.begin(); draw != found.times.end(); draw += steps)
    mixed += std::count(draw, draw + steps, 140us) % steps == 0 ? 0 : 1;
  // Four steps are all of one kind with a probability of 0.4^4 + 0.6^4; more steps with a lower
  // one.
  EXPECT_GT(mixed, 140U);
}

/// Six steps of a rank that computes for 100 and 140 us in turn and then meets the other rank. The
/// rank that arrives first waits for 40 us; the transfer takes 20 us.
std::string six_steps_with_a_collective(bool begins_fast) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i), step = " {step=" + number + "}";
    const std::string comma = i == 0 ? "" : ", ";
    const bool is_fast = (i % 2 == 0) == begins_fast;
    text += "@step ProfilerStep#" + number + "\n";
    cpu += comma + "l" + number + "=launch:launch 1" + step;
    gpu += comma + "k" + number + "=gemm " + (is_fast ? "100" : "140") + step +
           ", allreduce:" + "collective " + (is_fast ? "60" : "20") + step;
    waits += "l" + number + " -> k" + number + " [measured launch]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

TEST(Resample, AllRanksDrawTheSameStep) {
  std::vector<Inference> ranks;
  const std::string texts[] = {six_steps_with_a_collective(true),
                               six_steps_with_a_collective(false)};
  for (std::int32_t i = 0; i < 2; ++i) ranks.push_back(rank_of({.graph = texts[i], .number = i}));
  const JobRanks job = job_of(std::move(ranks));
  ASSERT_EQ(job.join.collectives.size(), 6U);
  const JointReplay replayed =
      replay(job, graphs_of(job), {.memory = false, .most_rows_kept = 1'000'000});
  const ResampledJob resampled(job, replayed, 0, [&](std::size_t i) -> const Graph& {
    return job.ranks[i].inference.graph;
  });
  ASSERT_NE(resampled.joint_ranks(), nullptr);
  const JointRanks& joint_ranks = *resampled.joint_ranks();
  const Resampled found = resample(joint_ranks.all, joint_ranks.shown, joint_ranks.rows, {});
  ASSERT_EQ(found.times.size(), 5 * 200U);
  // Whichever step is drawn, one of the two ranks computes for 140 us.
  EXPECT_EQ(std::count(found.times.begin(), found.times.end(), 160us), 5 * 200);
}

TEST(Resample, AStepThatIsLeftOutGivesNothing) {
  const Inference inference = recorded_as(six_steps(140));
  const StepVariation variation(inference);
  ResampleSettings settings;
  settings.leave_out = {1};
  const Resampled found = resample(variation, inference.graph, inference.graph, settings);
  EXPECT_EQ(found.donors, 4U);
  EXPECT_EQ(found.times.size(), 4 * 200U);
}

// Halved work varies by half as much; work whose time is set varies in proportion to that time.
TEST(Resample, VariationFollowsTheWhatIf) {
  const Inference inference = recorded_as(six_steps(140));
  const StepVariation variation(inference);
  const auto times_after = [&](const char* step) {
    Graph changed = inference.graph.clone();
    read_transform_text(step)->apply(changed, {});
    std::vector<Nanoseconds> times = resample(variation, inference.graph, changed, {}).times;
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
  };
  EXPECT_EQ(times_after("scale:where.kind=kernel,factor=0.5"),
            (std::vector<Nanoseconds>{50us, 70us}));
  EXPECT_EQ(times_after("scale:where.kind=kernel,factor=2"),
            (std::vector<Nanoseconds>{200us, 280us}));
}

// A thread that was stalled for 900 us stalls as long when its own work is ten times as much.
TEST(Resample, AStallIsAddedToWhatGrew) {
  const Inference inference = recorded_as(six_steps(1000));
  const StepVariation variation(inference);
  Graph changed = inference.graph.clone();
  read_transform_text("scale:where.kind=kernel,factor=10")->apply(changed, {});
  const Resampled found = resample(variation, inference.graph, changed, {});
  // 100 us became 1 ms. With the work of a slow step that is 2 ms, plus 800 us of the stall.
  EXPECT_NE(std::find(found.times.begin(), found.times.end(), 2800us), found.times.end());
}

// Two alternating steps, of which the second waits 50 us longer whatever the work is. That is a
// property of the step, not variation.
TEST(Resample, WhatAStepOwesToItsPlaceIsNoVariation) {
  const Resampled found{
      .times = {100us, 150us, 110us, 160us, 90us, 140us}, .steps = 2, .resamples = 3, .donors = 3};
  EXPECT_EQ(recentered(found, 120us),
            (std::vector<Nanoseconds>{120us, 120us, 130us, 130us, 110us, 110us}));
}

TEST(Resample, StepsThatDifferAreNotDrawnFrom) {
  const Inference inference = recorded_as(R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    gpu: a 5 {step=0}, b 5 {step=1}, c 5 {step=2}
  )");
  const StepVariation variation(inference);
  EXPECT_TRUE(variation.donors().empty());
  EXPECT_TRUE(resample(variation, inference.graph, inference.graph, {}).times.empty());
}

TEST(Interval, HoldsThePoint) {
  for (const int slow : {100, 101, 140, 400}) {
    const Inference inference = recorded_as(six_steps(slow));
    for (const char* step : {"scale:factor=1", "scale:factor=0.5", "amp", "cuda_graphs"}) {
      SCOPED_TRACE(std::string(step) + " " + std::to_string(slow));
      const Prediction prediction = predict(inference, asking({step}));
      EXPECT_LE(prediction.lower, prediction.predicted.step_time);
      EXPECT_GE(prediction.upper, prediction.predicted.step_time);
      for (const IntervalPart& one : prediction.interval_parts) {
        EXPECT_LE(one.lower, prediction.predicted.step_time);
        EXPECT_GE(one.upper, prediction.predicted.step_time);
      }
    }
  }
}

TEST(Interval, IsWiderWhereStepsVaryMore) {
  Nanoseconds before{-1};
  for (const int slow : {100, 110, 140, 200}) {
    const Prediction prediction = predict(recorded_as(six_steps(slow)), {});
    EXPECT_GT(width(prediction), before) << slow;
    before = width(prediction);
  }
}

/// Steps of a kernel each, of these lengths in us.
std::string steps_of(const std::vector<int>& lengths) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::string n = std::to_string(i), comma = i == 0 ? "" : ", ", step = " {step=" + n + "}";
    text += "@step ProfilerStep#" + n + "\n";
    cpu += comma + "l" + n + "=launch:launch 1" + step;
    gpu += comma + "k" + n + "=gemm " + std::to_string(lengths[i]) + step;
    waits += "l" + n + " -> k" + n + " [measured launch]\n";
  }
  return text + cpu + "\n" + gpu + "\n" + waits;
}

TEST(Interval, AStepOfAnotherKindIsNoVariation) {
  const Prediction found = predict(recorded_as(steps_of({100, 102, 300, 101, 100, 103})), {});
  ASSERT_EQ(found.step_kinds.size(), 2U);
  EXPECT_EQ(found.step_kinds[0].steps, 4U);  // The last step has no distance to a next one.
  EXPECT_TRUE(found.step_kinds[0].is_typical);
  EXPECT_EQ(found.step_kinds[0].measured, found.measured.step_time);
  EXPECT_EQ(found.step_kinds[1].steps, 1U);
  EXPECT_EQ(found.step_kinds[1].measured, 300us);
  EXPECT_GT(found.lower, 90us);
  EXPECT_LT(found.upper, 115us);
}

TEST(Interval, KindsOfStepsArePredictedEach) {
  const Prediction found = predict(recorded_as(steps_of({100, 102, 300, 101, 100, 103})),
                                   asking({"scale:where.name=gemm,factor=0.5"}));
  ASSERT_EQ(found.step_kinds.size(), 2U);
  EXPECT_EQ(found.step_kinds[0].predicted, found.predicted.step_time);
  EXPECT_EQ(found.step_kinds[1].predicted, 150us);
}

TEST(Interval, OneStepOfAKindSaysNothingOfItsVariation) {
  const Prediction found = predict(recorded_as(steps_of({100, 200, 400})), {});
  ASSERT_EQ(found.step_kinds.size(), 3U);
  EXPECT_TRUE(found.step_kinds[1].is_typical);
  EXPECT_EQ(found.interval_source,
            "only one recorded step is like the typical one: 5.0 % either way is assumed");
}

TEST(Interval, BetweenTwoKindsReachesOverBoth) {
  const Prediction found = predict(recorded_as(steps_of({100, 300})), {});
  EXPECT_EQ(found.predicted.step_time, 200'500ns);
  EXPECT_EQ(found.lower, 101us);
  EXPECT_EQ(found.upper, 300us);
}

TEST(Interval, StepsThatSpreadEvenlyAreOfOneKind) {
  EXPECT_TRUE(predict(recorded_as(steps_of({100, 120, 140, 160, 180})), {}).step_kinds.empty());
  EXPECT_TRUE(
      predict(recorded_as(steps_of({100, 200, 300, 400, 600, 1000})), {}).step_kinds.empty());
}

TEST(Interval, IsTheSameEveryTime) {
  const Inference inference = recorded_as(six_steps(140));
  const Prediction a = predict(inference, asking({"amp"}));
  const Prediction b = predict(inference, asking({"amp"}));
  EXPECT_EQ(a.lower, b.lower);
  EXPECT_EQ(a.upper, b.upper);
}

TEST(Interval, OfAChangeOfNothingIsThatOfTheRecording) {
  const Inference inference = recorded_as(six_steps(140));
  const Prediction recorded = predict(inference, {});
  const Prediction same = predict(inference, asking({"scale:factor=1"}));
  EXPECT_EQ(same.lower, recorded.lower);
  EXPECT_EQ(same.upper, recorded.upper);
  ASSERT_EQ(recorded.interval_parts.size(), 1U);
  EXPECT_EQ(recorded.interval_parts[0].source, "steps");
  EXPECT_EQ(recorded.resamples, 200);
}

TEST(Interval, FewStepsMeanAnAssumedOne) {
  const Prediction prediction = predict(recorded_as("gpu: a 10, b 10"), {});
  EXPECT_FALSE(prediction.has_steps);
  EXPECT_EQ(prediction.predicted.step_time, 20us);
  EXPECT_NEAR(static_cast<double>(prediction.lower.count()), 19'000, 60);
  EXPECT_NEAR(static_cast<double>(prediction.upper.count()), 21'000, 60);
  EXPECT_EQ(prediction.resamples, 0);
  EXPECT_EQ(prediction.interval_source,
            "too few steps in the trace to know how much they vary: 5.0 % either way is assumed");
}

TEST(Interval, LanesThatShareAreNotReplayed) {
  const Inference inference =
      recorded_as(six_steps(110) + "disk [link shared=1GB/s]: r:transfer 0 {bytes=1KB}\n");
  const Prediction prediction = predict(inference, {});
  EXPECT_EQ(prediction.resamples, 0);
  EXPECT_NE(prediction.interval_source.find("not replayed"), std::string::npos)
      << prediction.interval_source;
  EXPECT_LT(prediction.lower, prediction.upper);
}

TEST(Interval, UnexplainedTimeIsOpenTowardsMoreOfTheChange) {
  Inference sure = recorded_as(kFourSteps);
  Inference unsure = recorded_as(kFourSteps);
  unsure.graph.unexplained().lag = unsure.graph.unexplained().window / 4;
  const Scenario half = asking({"scale:where.kind=kernel,factor=0.5"});
  const Prediction a = predict(sure, half);
  const Prediction b = predict(unsure, half);
  EXPECT_EQ(a.predicted.step_time, b.predicted.step_time);
  EXPECT_EQ(part(a, "unexplained"), nullptr);
  ASSERT_NE(part(b, "unexplained"), nullptr);
  EXPECT_LT(part(b, "unexplained")->lower, b.predicted.step_time);
  EXPECT_EQ(part(b, "unexplained")->upper, b.predicted.step_time);
}

TEST(Interval, TransfersThatNothingHidesAreAsUnsureAsTheirPrice) {
  const Interval interval =
      interval_of({.point = 100us, .transfers = {{40us, {.faster = 1.25, .slower = 2}, "text"}}});
  ASSERT_EQ(interval.parts.size(), 2U);
  EXPECT_EQ(interval.parts[1].source, "transfers");
  EXPECT_NEAR(static_cast<double>(interval.parts[1].lower.count()), 92'000, 500);
  EXPECT_NEAR(static_cast<double>(interval.parts[1].upper.count()), 140'000, 2'000);
}

// The second stream waits for the first only because times suggest so. With kernels of the first
// at a tenth, the second starts earlier if the wait is there and no earlier than before if not.
TEST(Interval, InferredWaitsAreReplayedWithout) {
  const auto asked = [](const char* provenance) {
    const Inference inference = recorded_as(std::string(R"(
    @step ProfilerStep#1
    gpu: a=copy 50 {step=0}
    other: b=gemm 20 {step=0}
    a -> b [)") + provenance + " \"other stream\"]\n");
    return predict(inference, asking({"scale:where.name=copy,factor=0.1"}));
  };
  EXPECT_EQ(part(asked("measured"), "inferred"), nullptr);
  const Prediction open = asked("inferred");
  EXPECT_EQ(open.predicted.step_time, 25us);
  ASSERT_NE(part(open, "inferred"), nullptr);
  EXPECT_GT(part(open, "inferred")->upper, 25us);
}

TEST(Interval, WhatIfsAreAsUnsureAsTheyWereFound) {
  const Inference inference = recorded_as(kFourSteps);
  const Prediction exact = predict(inference, asking({"scale:where.kind=kernel,factor=0.5"}));
  const Prediction modelled = predict(inference, asking({"amp"}));
  EXPECT_EQ(part(exact, "model"), nullptr);
  ASSERT_NE(part(modelled, "model"), nullptr);
  EXPECT_EQ(part(modelled, "model")->text.substr(0, 30), "amp was typically off by 17.0 ");
  EXPECT_LT(part(modelled, "model")->lower, modelled.predicted.step_time);
}

TEST(Interval, WhatWasNeverComparedIsSaidAndAsWideAsAllKinds) {
  const ErrorScale never = error_scale("recompute:share=0.5", {});
  EXPECT_EQ(never.text.substr(0, 48), "recompute was never compared with an outcome: it");
  EXPECT_DOUBLE_EQ(never.scale, pooled_error());
  EXPECT_EQ(never.outcomes, 2);
  EXPECT_EQ(error_scale("scale:factor=2", {}).scale, 0);
  const IntervalInputs inputs = {.point = 100us,
                                 .times = {100us, 100us},
                                 .recorded_steps = 2,
                                 .models = {never},
                                 .changed_work = 50us};
  // The 90 % quantile of Student's distribution for two outcomes is 1.886.
  EXPECT_NEAR(static_cast<double>(interval_of(inputs).upper.count()),
              100'000 * (1 + 1.886 * pooled_error()), 2'000);
}

// Ten steps of 95 and 105: one of 10 upper ends is behind 5 x sqrt(10 / 9 x 11 / 10) x 1.293, the
// 80 % quantile of the square root of 9 / chi square with 9 degrees of freedom.
TEST(Interval, StepsVaryMoreThanAFewRecordedOnesShow) {
  const Interval interval =
      interval_of({.point = 100us, .times = {95us, 105us}, .recorded_steps = 10});
  EXPECT_NEAR(static_cast<double>(interval.upper.count()), 107'150, 250);
  EXPECT_NEAR(static_cast<double>(interval.lower.count()), 100'000 / 1.0715, 250);
}

// Two unlike steps may mean that a step takes ten times as long, but none takes no time.
TEST(Interval, NoStepTakesNoTime) {
  const Interval interval =
      interval_of({.point = 100us, .times = {30us, 170us}, .recorded_steps = 2});
  EXPECT_GT(interval.upper, 300us);
  EXPECT_GT(interval.lower, 10us);
  EXPECT_LT(interval.lower, 50us);
}

TEST(Interval, TheErrorOfTheReplayMayBeEitherWay) {
  const Interval interval = interval_of(
      {.point = 100us, .times = {100us, 100us}, .recorded_steps = 2, .replay_error = 0.1});
  // Times are spread evenly from 90 to 110 us, so four fifths of them are within 8 us.
  EXPECT_NEAR(static_cast<double>(interval.lower.count()), 92'000, 500);
  EXPECT_NEAR(static_cast<double>(interval.upper.count()), 108'000, 500);
}

// Steps alternate between 95 and 105 us. The widths come from Student's distribution: with three
// steps the spread is hardly known (1.886 deviations for four fifths), with thirty it nearly is
// (1.311).
TEST(Interval, FewStepsOfTheSameSpreadSayLess) {
  const auto seen = [](std::size_t steps) {
    std::vector<Nanoseconds> times;
    for (std::size_t i = 0; i < 4000; ++i) times.push_back(i % 2 == 0 ? 95us : 105us);
    return width(interval_of({.point = 100us, .times = std::move(times), .recorded_steps = steps}));
  };
  EXPECT_GT(seen(3), seen(30) * 13 / 10);
  EXPECT_GT(seen(30), 9us);
  EXPECT_GT(seen(2), seen(3));
}

TEST(Interval, AWhatIfIsNoFurtherOffThanWhatItTouched) {
  const IntervalInputs inputs = {.point = 100us,
                                 .times = {100us, 100us},
                                 .recorded_steps = 2,
                                 .models = {error_scale("cuda_graphs", {})},
                                 .changed_work = 1us};
  const Interval interval = interval_of(inputs);
  EXPECT_EQ(interval.lower, 99us);
  EXPECT_EQ(interval.upper, 101us);
}

// A model that may be off by half of the step, of a change that cannot lead below 90 us nor above
// 105 us; each end is 10 % further, for what it does not model.
TEST(Interval, AWhatIfLeadsNeitherBelowWhatItLeavesNorAboveWhatWas) {
  IntervalInputs inputs = {.point = 100us,
                           .times = {100us, 100us},
                           .recorded_steps = 2,
                           .models = {{.scale = 0.5, .outcomes = 30, .text = "half"}},
                           .changed_work = 90us,
                           .least = 90us,
                           .greatest = 105us};
  EXPECT_EQ(interval_of(inputs).lower, 81us);
  EXPECT_EQ(interval_of(inputs).upper, Nanoseconds(115'500));
  inputs.least = inputs.greatest = 0us;
  EXPECT_LT(interval_of(inputs).lower, 70us);
  EXPECT_GT(interval_of(inputs).upper, 140us);
}

// The host launches for 4, the kernels take 30: however wrong amp is, 26 of them may be gone, and
// at worst nothing is.
TEST(Interval, TheBoundsOfAWhatIfAreThoseOfItsGraph) {
  std::string text, cpu = "cpu: ", gpu = "gpu: ", waits;
  for (int i = 0; i < 6; ++i) {
    const std::string n = std::to_string(i), step = " {step=" + n + "}";
    text += "@step ProfilerStep#" + n + "\n";
    cpu += (i == 0 ? "L" : ", L") + n + ":launch 4" + step;
    gpu += (i == 0 ? "k" : ", k") + n + "=gemm 30" + step;
    waits += "L" + n + " -> k" + n + "\n";
  }
  const Inference inference = recorded_as(text + cpu + "\n" + gpu + "\n" + waits);
  const auto inputs_of = [&](const char* use) {
    Prediction answer = predict(clone(inference), asking({use}));
    Graph changed = inference.graph.clone();
    read_transform_text(use)->apply(changed, {});
    return interval_inputs({.inference = inference, .changed = changed, .prediction = answer});
  };
  EXPECT_EQ(inputs_of("amp").least, 4us);
  EXPECT_EQ(inputs_of("amp").greatest, 30us);
  EXPECT_EQ(inputs_of("faster_device:from=a100-sxm4-40gb,to=t4").greatest, 0us)
      << "kernels get longer";
  EXPECT_EQ(inputs_of("faster_device:from=a100-sxm4-40gb,to=t4").least, 30us);
  EXPECT_EQ(inputs_of("scale:where.kind=kernel,factor=0.5").least, 0us) << "no model";
}

TEST(Interval, OwnOutcomesWeighMore) {
  const auto inputs_with = [](const std::vector<KnownOutcome>& own) {
    return IntervalInputs{.point = 100us,
                          .times = {100us, 100us},
                          .recorded_steps = 2,
                          .models = {error_scale("amp", own)},
                          .changed_work = 100us};
  };
  const std::vector<KnownOutcome> right(3, {.transforms = {"amp"}, .error = 0.01});
  const std::vector<KnownOutcome> wrong(3, {.transforms = {"amp:dtype=bf16"}, .error = -0.4});
  EXPECT_LT(width(interval_of(inputs_with(right))), width(interval_of(inputs_with({}))));
  EXPECT_GT(width(interval_of(inputs_with(wrong))), 1.4 * width(interval_of(inputs_with({}))));
  EXPECT_NE(error_scale("amp", right).text.find("1.0 % in 3 outcomes of the ledger given"),
            std::string::npos);
}

// Without a variation, the spread of the recorded steps is scaled; with one, steps are replayed.
TEST(Interval, OfManyWhatIfsIsReplayedOnlyIfAsked) {
  const Inference inference = recorded_as(six_steps(140));
  Baseline baseline = baseline_of(inference);
  const Scenario half = asking({"scale:where.kind=kernel,factor=0.5"});
  EXPECT_EQ(predict_on(baseline, inference, half).resamples, 0);
  EXPECT_LT(predict_on(baseline, inference, half).lower, 60us);
  baseline.variation.emplace(inference);
  const Prediction replayed = predict_on(baseline, inference, half);
  EXPECT_EQ(replayed.resamples, 200);
  EXPECT_EQ(replayed.lower, predict(inference, half).lower);
}

// The result is the same as if each outcome were listed by itself.
TEST(Ledger, AnErrorWeighsAsManyOutcomesAsItIsOf) {
  std::vector<double> squares;
  for (const LedgerEntry& entry : ledger())
    squares.insert(squares.end(), static_cast<std::size_t>(entry.outcomes),
                   entry.error * entry.error);
  const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
  EXPECT_NEAR(pooled_error(), std::sqrt(sum / static_cast<double>(squares.size())), 1e-12);
}

// The ledger names only transforms that exist, each once and sorted.
TEST(Ledger, IsAboutTransforms) {
  for (std::size_t i = 0; i < ledger().size(); ++i) {
    SCOPED_TRACE(ledger()[i].transform);
    EXPECT_TRUE(std::any_of(
        transforms().begin(), transforms().end(),
        [&](const TransformEntry& entry) { return entry.name == ledger()[i].transform; }));
    EXPECT_EQ(ledger()[i].error > 0, !ledger()[i].source.empty());
    EXPECT_EQ(ledger()[i].error > 0, ledger()[i].outcomes > 0);
    if (i > 0) {
      EXPECT_LT(ledger()[i - 1].transform, ledger()[i].transform);
    }
  }
}

}  // namespace
}  // namespace foretrace

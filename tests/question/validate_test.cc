#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/question/predict.h"
#include "question/recorded.h"

namespace foretrace {
namespace {

TEST(Validate, CausesThatWereFoundPredictOtherSteps) {
  const Validation validation = validate(recorded_as(kFourSteps));
  EXPECT_EQ(validation.alike_steps, 4);
  ASSERT_TRUE(validation.cross_step_error);
  EXPECT_LT(*validation.cross_step_error, 1e-9);
  EXPECT_LT(*validation.worst_cross_step_error, 1e-9);
  // Steps take 67, 81, 59 and 67 us: the median error of guessing 67 for the others.
  ASSERT_TRUE(validation.same_as_first_error);
  EXPECT_NEAR(*validation.same_as_first_error, 8.0 / 59, 1e-9);
}

// The same recording with its waits copied into lags: it replays as well, but does not predict
// other steps.
TEST(Validate, CopiedTimesDoNotPredictOtherSteps) {
  const Validation validation = validate(recorded_as(R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    @step ProfilerStep#4
    cpu: l1=launch:launch 5 {step=0}, l2=launch:launch 5 {step=1}, l3=launch:launch 5 {step=2}, l4=launch:launch 5 {step=3}
    gpu: k1=gemm 50 {step=0}, k2=gemm 60 {step=1}, k3=gemm 40 {step=2}, k4=gemm 50 {step=3}
    l1 -> k1 [measured launch]
    l2 ->+66 k2 [measured launch]
    l3 ->+140 k3 [measured launch]
    l4 ->+192 k4 [measured launch]
  )"));
  EXPECT_EQ(validation.replay_error, 0);
  ASSERT_TRUE(validation.cross_step_error);
  EXPECT_GT(*validation.cross_step_error, 0.1);
  EXPECT_GT(*validation.worst_cross_step_error, *validation.cross_step_error);
}

TEST(Validate, StepsThatDifferAreNotCompared) {
  const Validation validation = validate(recorded_as(R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    @step ProfilerStep#4
    gpu: a 5 {step=0}, b 5 {step=1}, c 5 {step=2}, d 5 {step=3}
  )"));
  EXPECT_EQ(validation.alike_steps, 0);
  EXPECT_FALSE(validation.cross_step_error);
  EXPECT_FALSE(validation.same_as_first_error);
}

TEST(Validate, MetamorphicRelationsHold) {
  const Validation validation = validate(recorded_as(kFourSteps));
  EXPECT_TRUE(validation.scale_holds);
  EXPECT_TRUE(validation.neutral_holds);
  EXPECT_TRUE(validation.shrink_holds);
  EXPECT_TRUE(validation.export_holds);
}

// The host waits for k1 and k2. A graph that records this waiting as work replays as well, but
// without the device the host would take as long as with it; and vice versa.
TEST(Validate, TimeInWhichBothSidesWorkIsOfNeitherAlone) {
  const Validation beside = validate(recorded_as(R"(
    cpu: l=launch:launch 5, work:host 100
    gpu: k=gemm 90
    l -> k [measured launch]
  )"));
  EXPECT_EQ(beside.without.device.alone, 0us);
  EXPECT_EQ(beside.without.host.alone, 15us);
  EXPECT_TRUE(beside.without.device.holds());
  EXPECT_TRUE(beside.without.host.holds());
}

TEST(Validate, TimeOfOneSideThatIsTakenForTimeOfTheOtherShows) {
  const Validation right = validate(recorded_as(R"(
    cpu: l1=launch:launch 5, s1=wait:sync 0, l2=launch:launch 5, s2=wait:sync 0, end:host 5
    gpu: k1=gemm 100, k2=gemm 100
    l1 -> k1 [measured launch]
    k1 -> s1 [measured "device sync"]
    l2 -> k2 [measured launch]
    k2 -> s2 [measured "device sync"]
  )"));
  EXPECT_EQ(right.without.device.recorded, 215us);
  EXPECT_EQ(right.without.device.alone, 200us);
  EXPECT_EQ(right.without.device.remaining, 15us);
  EXPECT_TRUE(right.without.device.holds());
  EXPECT_TRUE(right.without.host.holds());
  const Validation wrong = validate(recorded_as(R"(
    cpu: l1=launch:launch 5, s1=cudaMemcpyAsync:host 100, l2=launch:launch 5, s2=cudaMemcpyAsync:host 100, end:host 5
    gpu: k1=gemm 100, k2=gemm 100
    l1 -> k1 [measured launch]
    l2 -> k2 [measured launch]
  )"));
  EXPECT_EQ(wrong.replay_error, 0);
  EXPECT_EQ(wrong.without.device.remaining, 215us);
  EXPECT_FALSE(wrong.without.device.holds());
  EXPECT_TRUE(wrong.without.host.holds());
  // The host's own time is recorded as lags of the device.
  const Validation lags = validate(recorded_as(R"(
    cpu: l1=launch:launch 5, work:host 100, l2=launch:launch 5
    gpu: k1=gemm 10, k2=gemm 10
    l1 -> k1 [measured launch]
    k1 ->+95 k2 [inferred "event wait"]
  )"));
  EXPECT_EQ(lags.replay_error, 0);
  EXPECT_TRUE(lags.without.device.holds());
  EXPECT_FALSE(lags.without.host.holds());
}

TEST(Validate, TwoRepeatsOfAJobPredictEachOther) {
  std::string slower(kFourSteps);
  for (const char* name : {"gemm 50", "gemm 60", "gemm 40"}) {
    for (std::size_t at = 0; (at = slower.find(name, at)) != std::string::npos; ++at)
      slower[at + 5] += 2;
  }
  const Validation validation = validate_against(recorded_as(kFourSteps), recorded_as(slower));
  ASSERT_TRUE(validation.cross_step_error);
  EXPECT_LT(*validation.worst_cross_step_error, 1e-9);
}

TEST(Validate, RecordingsOfDifferentJobsAreAnError) {
  EXPECT_THROW(validate_against(recorded_as(kFourSteps), recorded_as("gpu: a 5")), Error);
}

TEST(Validate, JsonHasEveryFigure) {
  const nlohmann::json json = to_json(validate(recorded_as(kFourSteps)));
  EXPECT_EQ(json["schema"], "foretrace.validation/1");
  EXPECT_EQ(json["measured_step_time_ns"], 67000);
  EXPECT_EQ(json["replay_error"], 0);
  EXPECT_EQ(json["alike_steps"], 4);
  EXPECT_TRUE(json["cross_step_error"].is_number());
  EXPECT_TRUE(json["worst_cross_step_error"].is_number());
  EXPECT_TRUE(json["same_as_first_error"].is_number());
  EXPECT_EQ(
      json["metamorphic"],
      nlohmann::json::parse(R"({"scale": true, "neutral": true, "shrink": true, "export": true,
                                "without_device": true, "without_host": true})"));
  EXPECT_EQ(json["without_device"]["alone_ns"], 150000);
}

}  // namespace
}  // namespace foretrace

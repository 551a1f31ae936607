#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ask/recorded.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"
#include "scenario/setting.h"

namespace foretrace {
namespace {

// One kernel that the step waits for, and two blocks that live at the same time.
constexpr auto kOneKernel = R"(
    cpu: l:launch 1, s:sync 1
    gpu: k=gemm 100
    l -> k
    k -> s
    @memory 100MiB device=0
    @alloc 40MiB device=0 use=activation made=0: l .. s
    @alloc 30MiB device=0 use=activation made=1: l .. s
)";

Scenario with(std::initializer_list<const char*> steps) {
  Scenario scenario;
  for (const char* step : steps) {
    scenario.transforms.push_back(read_transform_text(step));
    scenario.uses.push_back(step);
  }
  return scenario;
}

Curve curve(std::string_view graph, const Scenario& scenario, const Vary& question) {
  std::vector<Inference> ranks;
  ranks.push_back(recorded_as(graph));
  return vary(ranks, scenario, question);
}

std::string times(const Curve& curve) {
  std::string text;
  for (const SweepPoint& point : curve.points)
    text += (text.empty() ? "" : " ") + plain_value(point.values[0]) + ":" +
            (point.refused.empty() ? to_exact_text(point.step_time) : "refused");
  return text;
}

std::string answer_of(const Curve& curve) {
  return plain_value(curve.points[*curve.answer].values[0]);
}

std::string error_of(const Scenario& scenario, const Vary& question) {
  try {
    return times(curve(kOneKernel, scenario, question));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Vary, PredictsForEachValueInTheirOrder) {
  EXPECT_EQ(
      times(curve(kOneKernel, with({"scale:where.kind=kernel"}), {"scale.factor", "2,0.5", ""})),
      "2:202us 0.5:52us");
}

TEST(Vary, IsTheSameWithAnyOtherNameOfTheSetting) {
  const Scenario scenario = with({"amp", "scale:where.kind=kernel"});
  EXPECT_EQ(times(curve(kOneKernel, scenario, {"transforms[1].factor", "2", ""})),
            times(curve(kOneKernel, scenario, {"scale.factor", "2", ""})));
}

TEST(Vary, ABatchHasWholeSamples) {
  constexpr auto kPass = R"(
    cpu: l:launch 1 {phase=forward}, s:sync 1 {phase=forward}
    gpu: t=tiny 1 {phase=forward}, k=gemm 100 {phase=forward}
    l -> k
    k -> s
    @memory 100MiB device=0
    @alloc 70MiB device=0 use=activation made=0: l .. s
  )";
  Scenario scenario = with({"batch_size"});
  const Vary question{"batch_size.factor", "1..8", "peak_memory <= 300MiB"};
  const Curve unknown = curve(kPass, scenario, question);
  EXPECT_EQ(unknown.notes.count("give --samples-per-step, or from and to instead of factor, to see "
                                "how many samples that is"),
            1);
  scenario.samples_per_step = 8;
  const Curve found = curve(kPass, scenario, question);
  EXPECT_TRUE(found.answer_text.starts_with("holds up to 2.85")) << found.answer_text;
  EXPECT_TRUE(found.answer_text.ends_with(", 22 samples a step")) << found.answer_text;
}

TEST(Vary, FindsTheLastValueThatHolds) {
  const Curve found = curve(kOneKernel, with({"scale:where.kind=kernel"}),
                            {"scale.factor", "0..10", "step_time <= 502us"});
  ASSERT_TRUE(found.answer);
  EXPECT_NEAR(std::stod(answer_of(found)), 5.0, 0.01);
  EXPECT_EQ(found.answer_text, "holds up to " + answer_of(found));
}

TEST(Vary, FindsTheFirstValueFromWhichItHolds) {
  const Curve found = curve(kOneKernel, with({"scale:where.kind=kernel,by=0us"}),
                            {"scale.by", "0us..64us/2", "step_time >= 142us"});
  ASSERT_TRUE(found.answer);
  EXPECT_NEAR(std::stod(answer_of(found)), 40.0, 0.1);
}

TEST(Vary, SaysThatNothingHolds) {
  const Curve none = curve(kOneKernel, with({"scale:where.kind=kernel"}),
                           {"scale.factor", "1..2", "step_time < 1us"});
  EXPECT_FALSE(none.answer);
  EXPECT_EQ(none.answer_text, "holds for no value tried");
}

TEST(Vary, TellsFromWhichLimitOnItFits) {
  const Curve found =
      curve(kOneKernel, {}, {"memory.limit", "120MiB,160MiB,200MiB,240MiB", "out_of_memory < 1"});
  ASSERT_TRUE(found.answer);
  // 100 MiB that were there, and segments of 40 and 30 MiB.
  EXPECT_EQ(answer_of(found), "200MiB");
  EXPECT_EQ(found.points[1].fits, false);
  EXPECT_EQ(found.points[2].peak_reserved, Bytes{170LL << 20});
}

TEST(Vary, TheFullestRankFitsOrNotHoweverFastItIs) {
  std::vector<Inference> ranks;
  ranks.push_back(recorded_as(kOneKernel));
  ranks.push_back(recorded_as("cpu: l:launch 1\ngpu: k=gemm 500\nl -> k\n"));
  const Curve found = vary(ranks, {}, {"memory.limit", "160MiB,240MiB", ""});
  EXPECT_EQ(found.points[0].fits, false);
  EXPECT_EQ(found.points[1].fits, true);
  EXPECT_EQ(found.points[1].peak_reserved, Bytes{170LL << 20});
  EXPECT_EQ(found.points[1].on_front, false);
}

TEST(Vary, TheFrontIsWhatNoOtherPointBeatsInTimeAndMemory) {
  const Curve all =
      curve(kOneKernel, with({"scale:where.kind=kernel"}), {"scale.factor", "2,1,3", ""});
  EXPECT_EQ(all.points[0].on_front, false);
  EXPECT_EQ(all.points[1].on_front, true);
  EXPECT_EQ(all.points[2].on_front, false);
}

TEST(Vary, AValueThatIsRefusedIsPartOfTheAnswer) {
  const Curve found =
      curve(kOneKernel, with({"scale:where.name=gemm"}), {"scale.where.name", "gemm,gem,conv", ""});
  EXPECT_EQ(found.points[2].refused,
            "scale:where.name=conv: no task matches \"where\" (name \"conv\")");
  EXPECT_TRUE(found.points[1].refused.empty());
}

TEST(Vary, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(with({"amp"}), {"scale.factor", "1,2", ""}),
            "--vary: no step uses \"scale\": add it with --with scale, or vary one of memory, amp");
  EXPECT_EQ(error_of(with({"scale", "scale"}), {"scale.factor", "1,2", ""}),
            "--vary: several steps are \"scale\"; name one as transforms[0] or transforms[1]");
  EXPECT_EQ(error_of(with({"scale"}), {"factor", "1,2", ""}),
            "--vary: must be a setting such as \"loader.workers\" or \"transforms[0].workers\", "
            "got \"factor\"");
  EXPECT_EQ(error_of(with({"scale"}), {"scale.factr", "1,2", ""}),
            "--vary scale.factr: there is no setting \"factr\"; the settings are by, factor, where "
            "(did you mean \"factor\"?)");
  EXPECT_EQ(error_of(with({"scale"}), {"scale.factor", "1,x", ""}),
            "--vary scale.factor: factor: must be a number");
  EXPECT_EQ(error_of(with({"scale"}), {"scale.factor", "1,2", "step_time"}),
            "--until: step_time: must be a comparison such as \"<= 120ms\", got \"\"");
}

}  // namespace
}  // namespace foretrace

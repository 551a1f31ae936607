#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "job/job.h"
#include "question/recorded.h"
#include "scenario/setting.h"
#include "support/folder.h"
#include "support/random_steps.h"

namespace foretrace {
namespace {

// One kernel that the step waits for, and two blocks that live at the same time.
constexpr auto kOneGemm = R"(
    cpu: l:launch 1, s:sync 1
    gpu: k=gemm 100
    l -> k
    k -> s
    @memory 100MiB device=0
    @alloc 40MiB device=0 use=activation made=0: l .. s
    @alloc 30MiB device=0 use=activation made=1: l .. s
)";

Scenario scenario_with(std::initializer_list<const char*> steps) {
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
  return vary(std::move(ranks), scenario, question);
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
    return times(curve(kOneGemm, scenario, question));
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Vary, PredictsForEachValueInTheirOrder) {
  EXPECT_EQ(times(curve(kOneGemm, scenario_with({"scale:where.kind=kernel"}),
                        {"scale.factor", "2,0.5", ""})),
            "2:202us 0.5:52us");
}

TEST(Vary, SaysWhichDeviceIsCheapest) {
  const Folder folder;
  const Job job(FORETRACE_SOURCE_DIR "/traces/gpt-a100-gpu-bound.pt.trace.json.gz");
  PredictOptions options;
  options.training.steps = "36k";
  options.training.prices =
      folder.write("p.json", R"({"prices": {"h100": "9 EUR/h", "rtx": "1 EUR/h"}})");
  const Curve curve =
      vary(job, scenario_with({"faster_device:to=rtx-4090"}),
           {"faster_device.to", "h100-sxm5-80gb,rtx-4090,rtx-3080,l40s", ""}, options);
  ASSERT_EQ(curve.points.size(), 4U);
  const auto price_of = [&](std::size_t i) {
    const auto& figures = curve.points[i].figures;
    const auto found = std::ranges::find(figures, "training.price_EUR", &SweepFigure::name);
    return found == figures.end() ? 0 : std::stod(found->value);
  };
  // 36,000 steps of a second are ten hours.
  const auto hours_of = [&](std::size_t i) {
    return static_cast<double>(curve.points[i].step_time.count()) * 1e-8;
  };
  EXPECT_NEAR(price_of(0), 9 * hours_of(0), 1e-9);
  EXPECT_NEAR(price_of(1), hours_of(1), 1e-9);
  EXPECT_EQ(price_of(3), 0) << "has no price";
  std::string notes;
  for (const Note& note : curve.notes.all()) notes += note.text + '\n';
  EXPECT_NE(notes.find("prices: must have l40s"), std::string::npos) << notes;
  const std::string cheapest = hours_of(1) < 9 * hours_of(0) ? "rtx-4090" : "h100-sxm5-80gb";
  EXPECT_NE(notes.find("the cheapest that fits is " + cheapest), std::string::npos) << notes;
}

TEST(Vary, IsTheSameWithAnyOtherNameOfTheSetting) {
  const Scenario scenario = scenario_with({"amp", "scale:where.kind=kernel"});
  EXPECT_EQ(times(curve(kOneGemm, scenario, {"transforms[1].factor", "2", ""})),
            times(curve(kOneGemm, scenario, {"scale.factor", "2", ""})));
}

/// Random recordings in which some time has no known cause or belongs to other ranks.
Inference partly_open_recording(std::mt19937& random) {
  Inference inference;
  inference.graph = random_steps(random);
  inference.recorded = simulate(inference.graph);
  for (std::uint32_t i = 0; i < inference.graph.task_count(); ++i) {
    if (random() % 4 != 0) continue;
    const Nanoseconds time = inference.graph.task(TaskId{i}).duration / 2;
    inference.open.push_back({.task = TaskId{i}, .time = time, .of_peers = random() % 2 == 0});
  }
  return inference;
}

std::string reasons(const Trust& trust) {
  std::string text;
  for (const TrustReason& reason : trust.reasons) text += reason.text + "\n";
  return text;
}

// Values that share a structure are answered together. The value 1 changes nothing, which affects
// the trust.
TEST(Vary, AnswersAndGradesEachValueAsPredictDoes) {
  std::mt19937 random(23);
  int compared = 0;
  for (int run = 0; run < 40; ++run) {
    SCOPED_TRACE(run);
    const Inference recording = partly_open_recording(random);
    if (step_times(recording.graph, recording.recorded).step_time <= 0ns) continue;
    for (const char* value : {"0.5", "1", "3"}) {
      const auto found = [&](const std::string& values) {
        std::vector<Inference> ranks;
        ranks.push_back(clone(recording));
        return vary(std::move(ranks), scenario_with({"scale:where.kind=device"}),
                    {"scale.factor", values, ""});
      };
      const std::string use = "scale:where.kind=device,factor=" + std::string(value);
      try {
        const Prediction expected = predict(recording, scenario_with({use.c_str()}));
        const Curve alone = found(value), all = found("2,0.5,1,3");
        EXPECT_EQ(alone.points[0].step_time, expected.predicted.step_time);
        EXPECT_EQ(reasons(alone.trust), reasons(expected.trust));
        const auto same = std::ranges::find_if(all.points, [&](const SweepPoint& point) {
          return plain_value(point.values[0]) == value;
        });
        EXPECT_EQ(same->step_time, expected.predicted.step_time);
        EXPECT_EQ(same->trust, expected.trust.grade());
        ++compared;
      } catch (const Error&) {
        continue;  // Some recordings have no device, or no device work in a step.
      }
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(Vary, ARefusedValueHasEmptyCells) {
  const Curve found = curve(kOneGemm, scenario_with({"scale:where.name=gemm"}),
                            {"scale.where.name", "gemm,conv", ""});
  std::ostringstream out;
  write_csv(found, out);
  EXPECT_EQ(out.str(),
            "point,scale.where.name,step_time_ns,speedup,peak_allocated_bytes,"
            "peak_reserved_bytes,fits,trust,on_front,figures,refused\n"
            "0,gemm,102000,1,178257920,178257920,true,fair,true,,\n"
            "1,conv,,,,,,,,,\"scale:where.name=conv: no task matches \"\"where\"\" "
            "(name \"\"conv\"\")\"\n");
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
  Scenario scenario = scenario_with({"batch_size"});
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
  const Curve found = curve(kOneGemm, scenario_with({"scale:where.kind=kernel"}),
                            {"scale.factor", "0..10", "step_time <= 502us"});
  ASSERT_TRUE(found.answer);
  EXPECT_NEAR(std::stod(answer_of(found)), 5.0, 0.01);
  EXPECT_EQ(found.answer_text, "holds up to " + answer_of(found));
}

TEST(Vary, FindsTheFirstValueFromWhichItHolds) {
  const Curve found = curve(kOneGemm, scenario_with({"scale:where.kind=kernel,by=0us"}),
                            {"scale.by", "0us..64us/2", "step_time >= 142us"});
  ASSERT_TRUE(found.answer);
  EXPECT_NEAR(std::stod(answer_of(found)), 40.0, 0.1);
}

TEST(Vary, SaysThatNothingHolds) {
  const Curve none = curve(kOneGemm, scenario_with({"scale:where.kind=kernel"}),
                           {"scale.factor", "1..2", "step_time < 1us"});
  EXPECT_FALSE(none.answer);
  EXPECT_EQ(none.answer_text, "holds for no value tried");
}

TEST(Vary, TellsFromWhichLimitOnItFits) {
  const Curve found =
      curve(kOneGemm, {}, {"memory.limit", "120MiB,160MiB,200MiB,240MiB", "out_of_memory < 1"});
  ASSERT_TRUE(found.answer);
  // 100 MiB were in use before, plus segments of 40 and 30 MiB.
  EXPECT_EQ(answer_of(found), "200MiB");
  EXPECT_EQ(found.points[1].fits, false);
  EXPECT_EQ(found.points[2].peak_reserved, Bytes{170LL << 20});
}

TEST(Vary, TheFullestRankFitsOrNotHoweverFastItIs) {
  std::vector<Inference> ranks;
  ranks.push_back(recorded_as(kOneGemm));
  ranks.push_back(recorded_as("cpu: l:launch 1\ngpu: k=gemm 500\nl -> k\n"));
  const Curve found = vary(std::move(ranks), {}, {"memory.limit", "160MiB,240MiB", ""});
  EXPECT_EQ(found.points[0].fits, false);
  EXPECT_EQ(found.points[1].fits, true);
  EXPECT_EQ(found.points[1].peak_reserved, Bytes{170LL << 20});
  EXPECT_EQ(found.points[1].on_front, false);
}

TEST(Vary, TheFrontIsWhatNoOtherPointBeatsInTimeAndMemory) {
  const Curve all =
      curve(kOneGemm, scenario_with({"scale:where.kind=kernel"}), {"scale.factor", "2,1,3", ""});
  EXPECT_EQ(all.points[0].on_front, false);
  EXPECT_EQ(all.points[1].on_front, true);
  EXPECT_EQ(all.points[2].on_front, false);
}

TEST(Vary, AValueThatIsRefusedIsPartOfTheAnswer) {
  const Curve found = curve(kOneGemm, scenario_with({"scale:where.name=gemm"}),
                            {"scale.where.name", "gemm,gem,conv", ""});
  EXPECT_EQ(found.points[2].refused,
            "scale:where.name=conv: no task matches \"where\" (name \"conv\")");
  EXPECT_TRUE(found.points[1].refused.empty());
}

TEST(Vary, SaysWhatIsWrong) {
  EXPECT_EQ(error_of(scenario_with({"amp"}), {"scale.factor", "1,2", ""}),
            "--vary: no step uses \"scale\": add it with --with scale, or vary one of memory, amp");
  EXPECT_EQ(error_of(scenario_with({"scale", "scale"}), {"scale.factor", "1,2", ""}),
            "--vary: several steps are \"scale\"; name one as transforms[0] or transforms[1]");
  EXPECT_EQ(error_of(scenario_with({"scale"}), {"factor", "1,2", ""}),
            "--vary: must be a setting such as \"loader.workers\" or \"transforms[0].workers\", "
            "got \"factor\"");
  EXPECT_EQ(error_of(scenario_with({"scale"}), {"scale.factr", "1,2", ""}),
            "--vary scale.factr: there is no setting \"factr\"; the settings are by, factor, where "
            "(did you mean \"factor\"?)");
  EXPECT_EQ(error_of(scenario_with({"scale"}), {"scale.factor", "1,x", ""}),
            "--vary scale.factor: factor: must be a number");
  EXPECT_EQ(error_of(scenario_with({"scale"}), {"scale.factor", "1,2", "step_time"}),
            "--until: step_time: must be a comparison such as \"<= 120ms\", got \"\"");
}

}  // namespace
}  // namespace foretrace

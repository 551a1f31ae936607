#include "foretrace/question/pipeline.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string shown_plan(const std::string& plan, const std::string& file = "") {
  std::ostringstream out;
  try {
    write_text(document_of(show_pipeline({plan, file})), out);
  } catch (const Error& error) {
    return error.what();
  }
  return "\n" + out.str();
}

nlohmann::json plan_json(const std::string& plan) { return to_json(show_pipeline({plan, ""})); }

TEST(PlanShow, DrawsPassesInCells) {
  EXPECT_EQ(shown_plan("zb_h1:stages=2,micro_batches=3,forward=1ms,backward=1ms,weight=1ms"), R"(
zb_h1: 2 ranks, 3 micro-batches
makespan 10 ms, bubble rate 0.1000

rank 0 |F0 F1 ...I0 W0 F2 I1 W1 I2 W2 |
rank 1 |...F0 I0 F1 I1 W0 F2 I2 W1 W2 |

F forward, I input gradient, W weight gradient

rank  busy   span    idle  in flight
0     9 ms  10 ms  10.0 %          2
1     9 ms   9 ms   0.0 %          1
)");
}

TEST(PlanShow, WritesTheOtherDirectionSmall) {
  EXPECT_EQ(shown_plan("chimera:stages=2,micro_batches=2"), R"(
chimera: 2 ranks, 2 micro-batches
makespan 6 ms, bubble rate 0.0000

rank 0 |F0 f1 b1--- B0--- |
rank 1 |f1 F0 B0--- b1--- |

F forward, B backward; small letters: the pipeline that goes up the ranks

rank  busy  span   idle  in flight
0     6 ms  6 ms  0.0 %          2
1     6 ms  6 ms  0.0 %          2

assumed:
  - a backward pass takes twice as long as a forward pass
)");
}

TEST(PlanShow, BackwardIsTheWholePassUnlessWeightIsGiven) {
  const auto makespan = [](const std::string& times) {
    return plan_json("1f1b:stages=1,micro_batches=1" + times).at("makespan_ns");
  };
  EXPECT_EQ(makespan(",forward=1ms,backward=3ms"), 4'000'000);
  EXPECT_EQ(makespan(",forward=1ms,backward=3ms,weight=2ms"), 6'000'000);
  EXPECT_EQ(makespan(",forward=1ms"), 3'000'000);
  EXPECT_EQ(makespan(",forward=1ms,weight=2ms"), 4'000'000);
  const auto split = plan_json("zb_h1:stages=1,micro_batches=1,forward=1ms,backward=3ms");
  EXPECT_EQ(split.at("ranks")[0].at("actions")[2].at("start_ns"), 2'500'000);
}

TEST(PlanShow, JsonHasTheRowsOfThePaper) {
  const nlohmann::json json = plan_json(
      "zb_h2:stages=8,micro_batches=24,forward=18.522ms,backward=18.086ms,weight=9.337ms,"
      "communication=0.601ms");
  EXPECT_NEAR(json.at("bubble_rate").get<double>(), 0.1083, 1e-4);
  EXPECT_EQ(json.at("peak_in_flight"), nlohmann::json({15, 13, 11, 9, 7, 5, 3, 1}));
  EXPECT_EQ(json.at("settings").at("forward"), "18522us");
  EXPECT_EQ(json.at("schema"), "foretrace.pipeline/1");
  EXPECT_EQ(plan_json("chimera").at("ranks")[0].at("actions")[2].at("pipeline"), 1);
  const nlohmann::json flushed = plan_json("dapple:stages=4,micro_batches=8");
  EXPECT_EQ(flushed.at("schedule"), "1f1b");
  EXPECT_EQ(flushed.at("peak_in_flight"), nlohmann::json({4, 3, 2, 1}));
}

TEST(PlanShow, StagesMayBeUneven) {
  const nlohmann::json json =
      plan_json("1f1b:stages=2,micro_batches=1,forward=2ms,layers_per_stage=3+1");
  EXPECT_EQ(json.at("ranks")[0].at("busy_ns"), 9'000'000);
  EXPECT_EQ(json.at("ranks")[1].at("busy_ns"), 3'000'000);
  EXPECT_EQ(shown_plan("1f1b:stages=4,layers=26"),
            "1f1b: layers: must be a multiple of the 4 stages of the model, got 26; "
            "layers_per_stage=7+7+6+6 makes uneven stages");
  EXPECT_EQ(
      shown_plan("1f1b:stages=2,layers_per_stage=3+x"),
      "1f1b: layers_per_stage: must be whole numbers of at least 1, as in 7+7+6+6, got '3+x'");
  EXPECT_EQ(shown_plan("interleaved:stages=2,layers_per_stage=3+1"),
            "interleaved: layers_per_stage: must have 4 numbers, got 2");
  EXPECT_EQ(shown_plan("1f1b:stages=2,layers=5,layers_per_stage=3+1"),
            "1f1b: layers_per_stage: must have 5 layers in all, got 4");
}

TEST(PlanShow, RefusesWhatCannotBe) {
  EXPECT_EQ(shown_plan("chimera:stages=3"),
            "chimera: stages: must be even for chimera, as half of the pipelines go the other way, "
            "got 3");
  EXPECT_EQ(shown_plan("1f1b:stages=10000,micro_batches=1000").substr(0, 36),
            "1f1b: micro_batches: must be fewer, ");
  EXPECT_EQ(shown_plan("1f1b:activations=1GB,activations_for_weight=2GB"),
            "1f1b: activations_for_weight: must not be more than activations, got 2 GB of 1 GB");
  EXPECT_EQ(shown_plan("1f1b:forward=1"),
            "1f1b: forward: must be a time with its unit (ns, us, ms, s, min or h), got \"1\"");
}

TEST(PlanShow, ReadsAndWritesTheCsvOfPyTorch) {
  const Folder folder;
  const std::string path =
      folder.write("schedule.csv", pipeline_csv({"1f1b:stages=2,micro_batches=3", ""}));
  EXPECT_EQ(pipeline_csv({"", path}), "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n");
  EXPECT_EQ(show_pipeline({"forward=2ms,backward=4ms", path}).makespan, 24ms);
  EXPECT_EQ(show_pipeline({"csv:forward=2ms,backward=4ms", path}).makespan, 24ms);
  folder.write("schedule.csv", "0F0,0F1\n");
  EXPECT_EQ(shown_plan("", path),
            path + ": rank 0, slot 0: no rank runs 0B0 or 0I0, which 0F0 needs");
  EXPECT_EQ(shown_plan("", folder / "none.csv"), "cannot open '" + (folder / "none.csv") + "'");
}

TEST(PlanShow, ThePageHasAllPasses) {
  std::ostringstream out;
  write_html(document_of(show_pipeline({"zb_v:stages=2,micro_batches=4", ""})), out);
  for (const char* const action : {"0F0", "3I3", "2W1"})
    EXPECT_NE(out.str().find(std::string("<title>") + action), std::string::npos) << action;
}

TEST(PlanShow, EveryScheduleHasHelp) {
  std::ostringstream out;
  EXPECT_TRUE(write_schedule_help("chimera", out));
  EXPECT_NE(out.str().find("pairs"), std::string::npos);
  EXPECT_NE(out.str().find("communication"), std::string::npos);
  EXPECT_FALSE(write_schedule_help("none", out));
}

}  // namespace
}  // namespace foretrace

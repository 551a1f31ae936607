// The explorer's questions, as its page asks them. explorer_test.py checks that answers are those
// of the program to the byte.

#include "explorer/questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "foretrace/question.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr const char* kTrace =
    FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";

constexpr const char* kLater =
    FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader4.pt.trace.json.gz";

/// An explorer with an open job.
class ExplorerQuestions : public testing::Test {
 protected:
  ExplorerQuestions() { ask({{"ask", "open"}, {"path", kTrace}}); }

  Json ask(const Json& question) { return Json::parse(explorer_.answer(question.dump())); }
  Json predict(const Json& transforms, std::size_t tasks) {
    return ask({{"ask", "predict"}, {"scenario", {{"transforms", transforms}}}, {"tasks", tasks}});
  }

  Explorer explorer_;
};

const Json kWorkers = {{{"use", "loader"}, {"workers", 2}}};

TEST_F(ExplorerQuestions, TheQuickAnswerHasTheStepTimeAndMemoryOfTheWholeOne) {
  const Json quick = ask({{"ask", "quick"}, {"scenario", {{"transforms", kWorkers}}}}).at("json");
  const Json whole = Json::parse(predict(kWorkers, 0).at("json").get<std::string>());
  EXPECT_EQ(quick.at("predicted").at("step_time_ns"), whole.at("predicted").at("step_time_ns"));
  EXPECT_EQ(quick.at("predicted").at("memory"), whole.at("predicted").at("memory"));
  EXPECT_EQ(quick.at("baseline").at("step_time_ns"), whole.at("baseline").at("step_time_ns"));
  EXPECT_EQ(quick.at("speedup"), whole.at("speedup"));
}

TEST_F(ExplorerQuestions, PartsAreThoseOfThePageWithoutItsReactions) {
  const Json parts = predict(kWorkers, 1000).at("parts");
  std::vector<std::string> ids;
  for (const Json& section : parts.at("sections")) ids.push_back(section.at("id"));
  EXPECT_EQ(ids, (std::vector<std::string>{"time", "steps", "timelines", "critical-path",
                                           "schedule", "certainty", "grounds"}));
  EXPECT_EQ(parts.at("heading"), "What if: loader:workers=2");
  const Json timelines = Json::parse(parts.at("timelines").get<std::string>());
  ASSERT_EQ(timelines.at("runs").size(), 2U);
  std::size_t drawn = 0;
  for (const Json& run : timelines.at("runs")) {
    for (const Json& lane : run.at("lanes")) drawn += lane.at(2).get<std::size_t>();
  }
  EXPECT_GT(drawn, 500U);
  EXPECT_LE(drawn, 1000U);
  EXPECT_FALSE(predict(kWorkers, 0).contains("parts"));
}

TEST_F(ExplorerQuestions, TheCommandAsksTheSame) {
  const Json transforms = {
      {{"use", "scale"}, {"factor", 0.5}, {"where", {{"name", "/conv|it's/"}}}}};
  const std::string command =
      ask({{"ask", "predict"}, {"scenario", {{"transforms", kWorkers}, {"machine", "h100-sxm"}}}})
          .at("command");
  EXPECT_EQ(command, std::string("foretrace predict ") + kTrace +
                         " --with loader:workers=2 --machine h100-sxm");
  EXPECT_EQ(predict(transforms, 0).at("command"),
            std::string("foretrace predict ") + kTrace +
                " --with 'scale:factor=0.5,where.name=/conv|it'\\''s/'");
}

TEST_F(ExplorerQuestions, StepsAreReadAsTheCommandLineReadsThem) {
  const Json read = ask({{"ask", "read"}, {"steps", "bf16,loader:workers=2"}}).at("transforms");
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].at("use"), "amp");
  EXPECT_EQ(read[1].at("workers"), 2);
  EXPECT_NE(ask({{"ask", "read"}, {"steps", "lader"}})
                .at("error")
                .get<std::string>()
                .find("did you mean \"loader\""),
            std::string::npos);
}

TEST_F(ExplorerQuestions, AQuestionThatCannotBeAnsweredLeavesTheJobOpen) {
  EXPECT_NE(explorer_.answer("{").find("error"), std::string::npos);
  EXPECT_EQ(ask({{"ask", "sing"}}).at("error").get<std::string>().substr(0, 22),
            "ask: must be transform");
  EXPECT_NE(predict({{{"use", "loader"}, {"workers", -1}}}, 0)
                .at("error")
                .get<std::string>()
                .find("must be at least 0"),
            std::string::npos);
  EXPECT_TRUE(predict(kWorkers, 0).contains("json"));
}

TEST_F(ExplorerQuestions, EveryQuestionHasAFormAndAnAnswer) {
  const Json all = ask({{"ask", "questions"}}).at("questions");
  EXPECT_EQ(all.size(), questions().size());
  for (const Json& one : all)
    EXPECT_EQ(one.at("order").size(), one.at("settings").size()) << one.at("name");
  const Json answer =
      ask({{"ask", "question"}, {"name", "info"}, {"settings", {{"trace", kTrace}}}});
  EXPECT_EQ(Json::parse(answer.at("json").get<std::string>()).at("format"), "kineto");
  EXPECT_NE(answer.at("text").get<std::string>().find("V100"), std::string::npos);
  EXPECT_FALSE(answer.at("parts").at("sections").empty());
}

TEST_F(ExplorerQuestions, SettingsThatNameFilesAreSaid) {
  for (const Json& one : ask({{"ask", "questions"}}).at("questions")) {
    if (one.at("name") == "check") {
      const auto files = one.at("files").get<std::vector<std::string>>();
      EXPECT_NE(std::ranges::find(files, "baseline"), files.end());
      EXPECT_NE(std::ranges::find(files, "trace"), files.end());
      EXPECT_EQ(std::ranges::find(files, "undecided"), files.end());
    }
  }
}

TEST_F(ExplorerQuestions, OneSettingIsVaried) {
  const Json curve = ask({{"ask", "vary"},
                          {"scenario", {{"transforms", kWorkers}}},
                          {"setting", "loader.workers"},
                          {"values", "1,2"}});
  const Json points = Json::parse(curve.at("json").get<std::string>()).at("points");
  ASSERT_EQ(points.size(), 2U);
  const Json whole = Json::parse(predict(kWorkers, 0).at("json").get<std::string>());
  EXPECT_EQ(points[1].at("step_time_ns"), whole.at("predicted").at("step_time_ns"));
  EXPECT_NE(curve.at("parts").at("sections")[0].at("html").get<std::string>().find("<svg"),
            std::string::npos);
}

TEST_F(ExplorerQuestions, TwoRecordingsAreTwoTimelinesOnOneAxis) {
  const Json answer =
      ask({{"ask", "compare"}, {"before", kTrace}, {"after", kLater}, {"tasks", 1000}});
  const Json& parts = answer.at("parts");
  EXPECT_EQ(parts.at("sections")[0].at("id"), "timelines");
  EXPECT_GT(parts.at("sections").size(), 1U);
  const Json timelines = Json::parse(parts.at("timelines").get<std::string>());
  std::vector<std::string> titles;
  for (const Json& run : timelines.at("runs")) titles.push_back(run.at("title"));
  EXPECT_EQ(titles, (std::vector<std::string>{"A", "B"}));
  EXPECT_GT(timelines.at("runs")[0].at("length"), timelines.at("runs")[1].at("length"));
  EXPECT_TRUE(ask({{"ask", "compare"}, {"before", kTrace}, {"after", "/nowhere"}, {"tasks", 1}})
                  .contains("error"));
}

TEST(Explorer, SaysThatNoJobIsOpen) {
  Explorer explorer;
  EXPECT_EQ(explorer.answer(R"({"ask": "quick", "scenario": {}})"),
            R"({"error":"no job is open"})");
  const Json missing = Json::parse(explorer.answer(R"({"ask": "open", "path": "/nowhere"})"));
  EXPECT_NE(missing.at("error").get<std::string>().find("/nowhere"), std::string::npos);
}

// Everything that the form needs: each setting has a kind, and the order has each setting once.
TEST(Explorer, DescribesEverySettingOfEveryTransform) {
  Explorer explorer;
  const Json all = Json::parse(explorer.answer(R"({"ask": "transforms"})")).at("transforms");
  EXPECT_GT(all.size(), 40U);
  for (const Json& one : all) {
    EXPECT_EQ(one.at("order").size(), one.at("settings").size()) << one.at("name");
    for (const Json& name : one.at("order")) {
      const Json& setting = one.at("settings").at(name.get<std::string>());
      EXPECT_TRUE(setting.contains("type")) << name;
      EXPECT_TRUE(setting.contains("description")) << name;
    }
  }
}

}  // namespace
}  // namespace foretrace

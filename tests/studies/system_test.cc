#include "studies/system/system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

TEST(Systems, ExamplesHold) {
  for (const auto& [folder, least] : {std::pair{"systems", 8U}, {"claims", 4U}}) {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(
             std::string(FORETRACE_SOURCE_DIR "/scenarios/") + folder)) {
      if (entry.path().extension() != ".json") continue;
      ++files;
      SCOPED_TRACE(entry.path().filename());
      const SystemReport report = run_system(entry.path().string(), {});
      std::ostringstream text;
      write_text(document_of(report), text);
      EXPECT_TRUE(report.holds()) << text.str();
    }
    EXPECT_GE(files, least);
  }
}

/// An all-reduce by a ring of four takes twice three quarters of its bytes at 1 GB/s.
constexpr const char* kAsking = R"({"settings": {"size": 8},
  "asks": [{"question": "collective", "settings": {"name": "all_reduce", "algorithm": "ring",
            "ranks": 4, "latency": "0us", "bandwidth": "1GB/s", "bytes": "{2 * size}MB"},
            "take": {"sum": "/rows/0/time_ns"}}],
  "figures": ["ms = sum * 1e-6"], "rows": [{"size": 4}, {"size": 16}],
  "assumed": ["a ring"],
  "published": [{"figure": "ms", "value": 12.5, "within": 0.05, "why": "size"}]})";

TEST(Systems, NumbersComeFromOtherQuestions) {
  const Folder folder;
  const SystemReport report = run_system(folder.write("ask.json", kAsking), {});
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(report.rows[0].figures.front().second, 1.5 * 8);
  EXPECT_DOUBLE_EQ(report.rows[1].figures.front().second, 1.5 * 32);
  EXPECT_EQ(report.assumptions.front(), "a ring");
  const nlohmann::json published = to_json(report)["published"][0];
  EXPECT_EQ(published["in_range"], 1);  // 12 is 4 % from 12.5, 48 is not.
  EXPECT_EQ(published["found"].size(), 2U);
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find("1 of 2 rows"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("ms: size"), std::string::npos);
  EXPECT_EQ(text.str().find("time"), std::string::npos);  // There are no tasks.
}

TEST(Systems, QuestionsReadFilesBesideTheirsAndWriteNone) {
  const Folder folder;
  folder.write("pair.json", R"({"hosts": 4, "device": "a100-sxm4-80gb",
      "host": {"devices": ["gpu"]}, "network": {"use": "switch", "bandwidth": "2GB/s"}})");
  const auto run = [&](const std::string& settings, const AskOptions& options = {}) -> std::string {
    try {
      run_system(folder.write("ask.json", R"({"asks": [{"question": "collective", "take":
          {"t": "/rows/0/time_ns"}, "settings": {"name": "all_reduce", "bytes": "1MB", )" +
                                              settings + "}}]}"),
                 {}, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(run(R"("machine": "pair.json")"), "");
  EXPECT_NE(run(R"("machine": "dgx-a100", "save_calibration": "new.json")")
                .find("no file may be written here"),
            std::string::npos);
  const Folder other;
  const std::string apart = other.write("apart.json", "{}");
  EXPECT_NE(run(R"("machine": ")" + apart + R"(")", {.root = folder.path()}).find("must be in"),
            std::string::npos);
}

TEST(Systems, ManyRowsAreReadInOnePass) {
  // Each row once walked through all rows before it.
  constexpr int kRows = 200'000;
  std::string rows = "{}";
  for (int i = 1; i < kRows; ++i) rows += ",{}";
  const Folder folder;
  const std::string path = folder.write(
      "system.json", R"({"tasks": [{"name": "a", "time": "1 +"}], "rows": [)" + rows + "]}");
  EXPECT_THROW(run_system(path, {}), Error);
}

/// Four cases of 2 s on two lanes after a start of 1 s, and then an end of 3 s; all of it twice.
constexpr const char* kFarm = R"({"settings": {"N": 4, "M": 2},
  "tasks": [{"name": "start", "time": "1"},
            {"name": "case", "lanes": "M", "count": "N", "time": "2", "after": ["start"]},
            {"name": "end", "time": "3", "after": ["case"]}],
  "repeat": "2", "figures": ["rate = 2 * N / time"])";

TEST(Systems, TasksShareLanesInTurn) {
  const Folder folder;
  const std::string path = folder.write("farm.json", std::string(kFarm) + "}");
  EXPECT_DOUBLE_EQ(run_system(path, {}).rows.front().seconds, 16);
  EXPECT_DOUBLE_EQ(run_system(path, {{"N", 5}}).rows.front().seconds, 20);
  EXPECT_DOUBLE_EQ(run_system(path, {{"M", 8}}).rows.front().seconds, 12);
  EXPECT_DOUBLE_EQ(run_system(path, {}).rows.front().figures.front().second, .5);
}

TEST(Systems, SearchesTheBestThatIsAllowed) {
  const Folder folder;
  const std::string path = folder.write(
      "farm.json", std::string(kFarm) + R"(, "search": {"M": "1..8"}, "subject_to": ["M < 4"]})");
  const SystemRow row = run_system(path, {}).rows.front();
  EXPECT_EQ(row.tried, 3U);
  EXPECT_EQ(row.settings.at("M"), 2);  // Two lanes are as fast as three.
  EXPECT_DOUBLE_EQ(row.seconds, 16);
}

TEST(Systems, AssertionsMayFail) {
  const Folder folder;
  const std::string path = folder.write(
      "farm.json", std::string(kFarm) + R"(, "rows": [{"N": 4}, {"N": 40}], "assert": ["N < 9"],
        "means": ["mean = N"], "assert_means": ["mean < 1"]})");
  const SystemReport report = run_system(path, {});
  EXPECT_FALSE(report.holds());
  EXPECT_TRUE(report.rows[0].failed.empty());
  EXPECT_EQ(report.rows[1].failed, std::vector<std::string>{"N < 9"});
  EXPECT_NEAR(report.means.front().second, std::sqrt(160.), 1e-9);
  EXPECT_EQ(report.failed, std::vector<std::string>{"mean < 1"});
  EXPECT_EQ(to_json(report)["holds"], false);
}

TEST(Systems, SaysWhatIsWrong) {
  const Folder folder;
  const auto refusal = [&](const std::string& text) -> std::string {
    const std::string path = folder.write("system.json", text);
    try {
      run_system(path, {});
    } catch (const Error& error) {
      return std::string(error.what()).substr(path.size() + 2);
    }
    return "";
  };
  EXPECT_EQ(refusal(R"({"settings": {}})"), "must have \"tasks\" or \"asks\"");
  EXPECT_EQ(refusal(R"({"asks": [{"question": "doctor"}]})"),
            "asks[0]: must have question, settings and take, and nothing else");
  EXPECT_EQ(refusal(R"({"asks": [{"question": "plan_system", "settings": {}, "take": {}}]})"),
            "asks[0]: question: must be another one than plan_system, which could ask itself");
  EXPECT_EQ(refusal(R"({"asks": [{"question": "colective", "settings": {}, "take": {}}]})"),
            "asks[0]: colective: there is no question 'colective' (did you mean \"collective\"?)");
  EXPECT_EQ(refusal(R"({"asks": [{"question": "doctor", "settings": {"a": "{n"}, "take": {}}]})"),
            "asks[0]: doctor: a: must close its brace, got \"{n\"");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a"}], "published": [{"figure": "x"}]})"),
            "published[0]: figure: must be one of the figures, got \"x\"");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a", "time": "x"}]})"),
            "task a: \"x\": must be a formula of numbers, but cannot be read at \"x\"");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a", "after": ["b"]}]})"),
            "tasks[0]: after: must be tasks listed before it, got \"b\"");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a", "time": "0-1"}]})"),
            "task a: time: must be from 0 to 1000000000, got -1");
  EXPECT_EQ(refusal(R"({"settings": {"n": 0}, "tasks": [{"name": "a", "time": "1/n"}]})"),
            "task a: \"1/n\": must be a finite number");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a", "count": "1e6"}], "repeat": "9"})"),
            "must have at most 1,000,000 tasks, has 9000018");
  for (const char* const range : {"", "5", "1..", "..5", "4..1", "1..nan", "1..2x", "1. .2"}) {
    const std::string said =
        refusal(fmt::format(R"({{"tasks": [{{"name": "a"}}], "search": {{"n": "{}"}}}})", range));
    EXPECT_EQ(said.substr(0, 16), "search: n: must ") << range << ": " << said;
  }
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a"}], "search": {"n": "1..1e9"}})"),
            "search: n: must be at most 10000 values");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a"}], "search": {"n": [1]}, "subject_to": ["n > 1"]})"),
            "subject_to: leaves no point of the search");
  EXPECT_EQ(refusal(R"({"tasks": [{"name": "a"}], "figures": ["time"]})"),
            "must be \"name = formula\", got \"time\"");
}

}  // namespace
}  // namespace foretrace

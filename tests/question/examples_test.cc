// The examples in scenarios/: each is asked as users would ask it, and its assertions must hold.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "foretrace/question/sweep.h"
#include "scenario/plan.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolders[] = {FORETRACE_SOURCE_DIR "/scenarios",
                                    FORETRACE_SOURCE_DIR "/scenarios/daydream",
                                    FORETRACE_SOURCE_DIR "/scenarios/packets"};

std::vector<fs::path> examples() {
  std::vector<fs::path> found;
  for (const char* const folder : kFolders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".json" && path.stem().extension() != ".schema")
        found.push_back(path);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string text_of(const fs::path& path);

/// The examples that ask many questions, or those that ask one.
std::vector<fs::path> examples_that(bool ask_many) {
  std::vector<fs::path> found = examples();
  std::erase_if(found, [&](const fs::path& path) {
    return asks_many(nlohmann::json::parse(text_of(path))) != ask_many;
  });
  return found;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// "a*c" matches everything that begins with "a" and ends with "c".
bool is_named(const std::string& name, std::string_view listed) {
  const std::size_t star = listed.find('*');
  if (star == listed.npos) return name == listed;
  const std::string_view begin = listed.substr(0, star), end = listed.substr(star + 1);
  return name.size() >= begin.size() + end.size() && name.starts_with(begin) && name.ends_with(end);
}

/// The texts between backquotes.
std::vector<std::string> listed_in(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('`'); at != text.npos;) {
    const std::size_t end = text.find('`', at + 1);
    if (end == text.npos) break;
    names.push_back(text.substr(at + 1, end - at - 1));
    at = text.find('`', end + 1);
  }
  return names;
}

TEST(Examples, WhatTheyAssertHolds) {
  EXPECT_GE(examples().size(), 40U);
  for (const fs::path& path : examples_that(false)) {
    SCOPED_TRACE(path.filename());
    const Scenario scenario = read_scenario(path.string());
    EXPECT_FALSE(scenario.asserts.empty());
    const Prediction prediction = predict(Job(scenario.trace), scenario);
    for (const CheckedAssert& broken : check_asserts(scenario, prediction)) {
      ADD_FAILURE() << broken.text << (broken.verdict == Verdict::undecided ? " is undecided" : "")
                    << ", found " << broken.found;
    }
  }
}

TEST(Examples, WithoutTheirTransformsTheyFail) {
  // Bounds so wide that they hold for the recorded job, too, would prove nothing.
  for (const fs::path& path : examples_that(false)) {
    SCOPED_TRACE(path.filename());
    Scenario scenario = read_scenario(path.string());
    if (scenario.transforms.empty()) continue;
    scenario.transforms.clear();
    scenario.uses.clear();
    // Figures come from transforms, which are removed here; all other assertions can be judged.
    std::erase_if(scenario.asserts, [](const std::string& text) {
      return text.substr(0, text.find_first_of(" <>")).find('.') != text.npos;
    });
    if (scenario.asserts.empty()) continue;
    EXPECT_FALSE(check_asserts(scenario, predict(Job(scenario.trace), scenario)).empty());
  }
}

TEST(Examples, SweepsHaveAnswersThatSatisfyThemAndAnswersThatDoNot) {
  EXPECT_GE(examples_that(true).size(), 3U);
  for (const fs::path& path : examples_that(true)) {
    SCOPED_TRACE(path.filename());
    const Sweep sweep(path.string());
    ASSERT_FALSE(sweep.header().asserts.empty());
    SweepReport report{.header = sweep.header(), .points = {}};
    const std::atomic<bool> stop = false;
    sweep.run(0, report.header.points,
              {.take = [&](SweepPoint&& point) { report.points.push_back(std::move(point)); },
               .flush = [] {}},
              stop);
    const SweepSummary summary = summarize(report);
    EXPECT_EQ(summary.refused, 0U);
    EXPECT_TRUE(summary.best.has_value());
    EXPECT_GT(summary.failed, 0U);
    EXPECT_LT(summary.failed, summary.answered);
    EXPECT_FALSE(summary.effects.empty());
  }
}

TEST(Examples, EachSaysWhatItTeaches) {
  for (const fs::path& path : examples()) {
    SCOPED_TRACE(path.filename());
    const nlohmann::json json = nlohmann::json::parse(text_of(path));
    EXPECT_GE(json.value("$comment", "").size(), 40U);
    const fs::path schema = path.parent_path() / json.value("$schema", "");
    EXPECT_TRUE(fs::equivalent(schema, FORETRACE_SOURCE_DIR "/scenarios/scenario.schema.json"));
  }
}

TEST(Examples, EachIsInTheListOfItsFolderAndNothingElseIs) {
  for (const fs::path folder : kFolders) {
    std::vector<std::string> listed = listed_in(text_of(folder / "README.md"));
    std::erase_if(listed, [](const std::string& name) {
      return !name.ends_with(".json") || name.ends_with(".schema.json") ||
             name.find(' ') != name.npos;
    });
    std::vector<fs::path> all = examples();
    std::erase_if(all, [&](const fs::path& path) { return path.parent_path() != folder; });
    EXPECT_FALSE(all.empty());
    for (const fs::path& path : all) {
      const std::string name = path.filename().string();
      EXPECT_TRUE(std::any_of(listed.begin(), listed.end(),
                              [&](const std::string& one) { return is_named(name, one); }))
          << path << " is not in the README.md of its folder";
    }
    for (const std::string& one : listed) {
      EXPECT_TRUE(std::any_of(
          all.begin(), all.end(),
          [&](const fs::path& path) { return is_named(path.filename().string(), one); }))
          << folder << " lists " << one << ", which is not there";
    }
  }
}

}  // namespace
}  // namespace foretrace

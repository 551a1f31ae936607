#include "foretrace/answer/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/validation.h"
#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/question/pairs.h"
#include "job/job.h"
#include "question/recorded.h"
#include "support/corpus.h"
#include "support/folder.h"

namespace foretrace {
namespace {

const std::string kSamples = FORETRACE_SOURCE_DIR "/traces";

class Pairs : public testing::Test {
 protected:
  PairList list(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_pairs(path_, kSamples);
  }

  std::string error_of(const std::string& text) const {
    try {
      list(text);
      return "no error";
    } catch (const Error& error) {
      return std::string(error.what()).substr(path_.size() + 2);
    }
  }

  Folder folder_;
  std::string path_ = folder_ / "pairs.json";
};

std::string of_pair(const std::string& pair) {
  return R"({"schema": "foretrace.pairs/1", "pairs": [)" + pair + "]}";
}

const std::string kLoader = R"({"name": "workers", "before": "resnet18-v100-loader0.pt.trace.json",
  "after": "resnet18-v100-loader4.pt.trace.json.gz", "with": ["loader:workers=4"])";

TEST_F(Pairs, ShippedOnesAreCompared) {
  const PairsReport report = compare_pairs({read_pairs(kSamples + "/pairs.json")});
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_TRUE(report.rows[0].synthetic);
  EXPECT_LT(std::abs(report.rows[0].error), 0.01);
  EXPECT_EQ(report.rows[0].inside, true);
  // Synthetic pairs say nothing about an error, as nobody recorded them.
  EXPECT_TRUE(outcomes_of(report).empty());
}

TEST_F(Pairs, ThePublicListIsRight) {
  EXPECT_GE(read_pairs(kSamples + "/public_pairs.json").pairs.size(), 17U);
}

TEST_F(Pairs, APackedRecordingIsFoundAndTheKindIsTheTransform) {
  const PairList read = list(of_pair(kLoader + "}"));
  ASSERT_EQ(read.pairs.size(), 1U);
  EXPECT_TRUE(read.pairs[0].before.ends_with("loader0.pt.trace.json.gz")) << read.pairs[0].before;
  EXPECT_EQ(read.pairs[0].kind, "loader");
  const std::vector<KnownOutcome> outcomes = outcomes_of(compare_pairs({read}));
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].transforms, std::vector<std::string>{"loader:workers=4"});
}

TEST_F(Pairs, FittedOnesAreNoOutcomes) {
  EXPECT_TRUE(
      outcomes_of(compare_pairs({list(of_pair(kLoader + R"(, "fitted": true})"))})).empty());
}

TEST_F(Pairs, WhatCannotBeComparedIsSaid) {
  const PairsReport report =
      compare_pairs({list(of_pair(kLoader + "}, " + kLoader + R"(, "compare": "peak_allocated"},
      {"name": "gone", "before": "no.json", "after": "no.json", "with": ["amp"]})"))});
  EXPECT_EQ(report.missing, 1U);
  EXPECT_EQ(report.refused, 1U);
  EXPECT_EQ(report.rows[1].problem, "the recording does not record memory");
  EXPECT_NE(report.rows[2].problem.find("there is no "), std::string::npos);
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find("1 pair compared; step times are off by"), std::string::npos);
  std::string unwrapped = text.str();
  std::ranges::replace(unwrapped, '\n', ' ');
  EXPECT_NE(unwrapped.find("; 1 has no recording; 1 has no answer"), std::string::npos);
}

TEST_F(Pairs, NoneAtAllIsAnError) {
  EXPECT_THROW(compare_pairs({list(of_pair(
                   R"({"name": "gone", "before": "no.json", "after": "no", "with": ["amp"]})"))}),
               Error);
}

// Two errors of one kind, one of them outside its interval, and a separate kind for memory.
TEST_F(Pairs, KindsAreSummedUp) {
  PairsReport report;
  const auto add = [&](Compared compared, double error, std::optional<bool> inside) {
    PairRow row;
    row.kind = "amp";
    row.compared = compared;
    row.error = error;
    row.inside = inside;
    report.rows.push_back(row);
  };
  add(Compared::step_time, -0.1, true);
  add(Compared::step_time, 0.3, false);
  add(Compared::peak_allocated, 0.02, std::nullopt);
  sum_up(report);
  ASSERT_EQ(report.kinds.size(), 4U);
  EXPECT_EQ(report.kinds[0].count, 2U);
  EXPECT_DOUBLE_EQ(report.kinds[0].median_error, 0.2);
  EXPECT_DOUBLE_EQ(report.kinds[0].worst_error, 0.3);
  EXPECT_EQ(report.kinds[0].inside, 1U);
  EXPECT_EQ(report.kinds[1].intervals, 0U);
  EXPECT_EQ(report.kinds[2].kind, "all");
}

TEST_F(Pairs, GroundTruthIsReadAsPairs) {
  const PairList read = list(R"({"schema": "foretrace.ground_truth/1", "dry_run": true, "cases": [
    {"id": "m/amp", "status": "done", "predict": ["amp"],
     "before": {"traces": {"kineto": {"path": "gpt-a100-gpu-bound.pt.trace.json.gz"},
                           "ftrace": {"path": "x.json"}, "snapshot": {"path": "s.pickle"}}},
     "after": {"step_time_ns": 100, "profiled_step_time_ns": 110,
               "memory": {"peak_allocated_bytes": 7}}},
    {"id": "m/tf32", "status": "done", "predict": null},
    {"id": "m/failed", "status": "failed", "predict": ["amp"]}]})");
  ASSERT_EQ(read.pairs.size(), 3U);
  EXPECT_EQ(read.pairs[0].name, "m/amp (kineto)");
  EXPECT_EQ(read.pairs[0].recorded, 110);
  EXPECT_EQ(read.pairs[1].recorded, 100);
  EXPECT_EQ(read.pairs[2].recorded, 7);
  EXPECT_EQ(read.pairs[2].compared, Compared::peak_allocated);
  EXPECT_EQ(read.notes.count("cases that no transform stands for"), 1);
  EXPECT_EQ(read.notes.count("cases that are not done"), 1);
  EXPECT_EQ(read.notes.count("times of a dry run are made up: errors mean nothing"), 1);
}

TEST_F(Pairs, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]",
       "must be an object with \"schema\": \"foretrace.pairs/1\" or \"foretrace.ground_truth/1\""},
      {R"({"schema": 3})",
       "schema: must be \"foretrace.pairs/1\" or \"foretrace.ground_truth/1\", got 3"},
      {R"({"schema": "foretrace.pairs/1"})", "pairs: must be a list of at least one"},
      {of_pair("{}"), "pairs[0]: name: must be given"},
      {of_pair(kLoader + R"(, "compare": "memory"})"),
       "pairs[0]: compare: must be one of step_time, peak_allocated, peak_reserved, got "
       "\"memory\""},
      {of_pair(R"({"name": "x", "before": "a", "after": "b", "with": ["apm"]})"),
       "pairs[0]: with: apm: there is no transform \"apm\" (did you mean \"amp\"?); `foretrace "
       "list "
       "transforms` shows all"},
      {R"({"schema": "foretrace.ground_truth/1", "cases": [{}]})",
       "cases[0]: must have the keys of a case as in traces/README.md"},
      {R"({"schema": "foretrace.ground_truth/1", "cases": [{"id": "m/amp", "status": "done",
        "predict": ["amp"], "before": {"traces": {"kineto": {"path": "a.json"}}},
        "after": {"step_time_ns": 8e33}}]})",
       "cases[0]: step_time_ns: must be a whole number"},
      {R"({"schema": "foretrace.ground_truth/1", "cases": []})",
       "cases: none is done and has transforms to predict with"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

TEST(LeftOut, StepsThatAreAllTheSameAreHeld) {
  std::string text, gpu = "gpu: ";
  for (int i = 0; i < 6; ++i) {
    text += "@step ProfilerStep#" + std::to_string(i) + "\n";
    gpu += std::string(i == 0 ? "" : ", ") + "gemm 50 {step=" + std::to_string(i) + "}";
  }
  const LeftOutSteps found = left_out_steps(recorded_as(text + gpu + "\n"));
  EXPECT_EQ(found.steps, 4U);
  EXPECT_EQ(found.inside, 4U);
}

// Four of five are expected inside; with clearly fewer, the intervals are too narrow.
TEST(LeftOut, FourOfFiveRecordedStepsAreHeld) {
  std::vector<std::string> files =
      corpus_files({"_sync.json", "_nonblocking.json", "_overlap.json", ".sqlite"});
  const std::vector<std::string> samples = sample_files();
  files.insert(files.end(), samples.begin(), samples.end());
  LeftOutSteps all;
  for (const std::string& file : files) {
    for (const Rank& rank : read_job(file).ranks) {
      const LeftOutSteps found = left_out_steps(rank.inference);
      all.steps += found.steps;
      all.inside += found.inside;
    }
  }
  ASSERT_GT(all.steps, 0U);
  const double share = static_cast<double>(all.inside) / static_cast<double>(all.steps);
  EXPECT_GT(share, 0.65) << all.inside << " of " << all.steps;
}

}  // namespace
}  // namespace foretrace

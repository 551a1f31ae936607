#include "studies/size/size.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string refusal_of_size(const SizeQuestion& question) {
  try {
    size_job(question);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

SizeQuestion alexnet() {
  SizeQuestion question{.compute = 1s, .overhead = 100ms};
  question.gpus = {1, 4, 8}, question.model = Bytes{244'000'000}, question.server = {1.25e9};
  return question;
}

TEST(SizeJob, AnswersFromNumbers) {
  SizeQuestion question = alexnet();
  question.speedup = 3, question.efficiency = .75;
  const SizingReport report = size_job(question);
  EXPECT_DOUBLE_EQ(report.overhead_share(), .1);
  ASSERT_EQ(report.counts.size(), 3U);
  EXPECT_DOUBLE_EQ(report.counts[0].speedup, 1);
  EXPECT_FALSE(report.counts[0].overhead_allowed);
  EXPECT_NEAR(report.counts[1].efficiency, .7857, 5e-5);
  EXPECT_DOUBLE_EQ(*report.counts[1].overhead_allowed, .125);
  EXPECT_EQ(report.counts[2].servers, 4);
  EXPECT_DOUBLE_EQ(*report.speedup_limit, 11);
  EXPECT_NEAR(*report.gpus_for_speedup, 3.75, 1e-9);
  EXPECT_EQ(to_json(report)["counts"][2]["servers"], 4);
}

TEST(SizeJob, TakesOverheadFromATrace) {
  const SizingReport report = size_job(
      {.trace = FORETRACE_SOURCE_DIR "/traces/gpt-a100-gpu-bound.pt.trace.json.gz", .gpus = {4}});
  Nanoseconds sum{0};
  for (const auto& [name, time] : report.parts) sum += time;
  EXPECT_EQ(sum, *report.overhead);
  EXPECT_GT(*report.compute, 0ns);
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find(": R = "), std::string::npos);
}

constexpr const char* kLayers = R"({"samples": 3600, "batches": [
  {"size": 1, "epochs": 1, "feature_maps": "1MB", "parameters": "1MB", "classifier": "1MB",
   "layers": [
    {"name": "one", "algorithms": [{"time": "5ms", "memory": "1MB"},
                                   {"name": "fft", "time": "3ms", "memory": "4MB"}]},
    {"algorithms": [{"time": "6ms", "memory": "1MB"}, {"time": "2ms", "memory": "6MB"}]}]},
  {"size": 2, "epochs": 1.5, "feature_maps": "2MB", "parameters": "1MB", "classifier": "1MB",
   "layers": [{"algorithms": [{"time": "12ms", "memory": "5MB"}]}]}]})";

TEST(SizeJob, ChoosesBatchAndAlgorithms) {
  const Folder folder;
  SizeQuestion question{.layers = folder.write("layers.json", kLayers)};
  for (const char* solver : {"exact", "milp"}) {
    question.solver = solver;
    question.memory = Bytes{8'000'000};
    SizingReport report = size_job(question);
    ASSERT_EQ(report.batches.size(), 2U);
    EXPECT_EQ(report.batches[0].bound, Bytes{5'000'000});
    EXPECT_EQ(report.batches[0].time, 9ms);
    EXPECT_EQ(report.batches[0].layers[0].algorithm, "fft");
    EXPECT_EQ(report.batches[0].layers[1].name, "layer 2");
    EXPECT_NEAR(report.batches[0].total_hours, .009, 1e-12);
    EXPECT_FALSE(report.batches[1].fits);
    EXPECT_EQ(report.best, 0U);
    question.memory = Bytes{9'000'000};
    report = size_job(question);  // 1.5 epochs of half the steps, 12 ms each: as long as 9 ms.
    EXPECT_TRUE(report.batches[1].fits);
    EXPECT_EQ(report.best, 0U);
  }
}

TEST(SizeJob, SaysWhatIsWrong) {
  const Folder folder;
  SizeQuestion question = alexnet();
  question.speedup = 12;
  EXPECT_EQ(refusal_of_size(question),
            "--speedup: must be below 11.00, the limit of any number of GPUs, got 12");
  question = alexnet(), question.model.reset();
  EXPECT_EQ(refusal_of_size(question),
            "--model-bytes: must be given with --server-bandwidth where there is no trace");
  question = alexnet(), question.compute.reset();
  EXPECT_EQ(refusal_of_size(question),
            "--compute: must be above 0, the time of a step's kernels on one GPU");
  EXPECT_EQ(refusal_of_size({}),
            "plan size: which TRACE? Without one, give --compute and --overhead, or --layers");
  question = {.layers = folder.write("layers.json", kLayers)};
  EXPECT_EQ(refusal_of_size(question),
            "--memory: must be given with --layers, the memory of a GPU");
  question.memory = Bytes{4'000'000};
  EXPECT_EQ(refusal_of_size(question), "--memory: no batch of " + question.layers +
                                           " fits in 4 MB, whatever algorithms its layers use");
  question.layers = folder.write("bad.json", R"({"batches": [{"layers": [{"algorithms": []}]}]})");
  EXPECT_EQ(refusal_of_size(question),
            question.layers +
                ": batches[0]: layers[0]: must have a list \"algorithms\" that is not empty");
  question.layers =
      folder.write("unit.json", R"({"batches": [{"layers": [{"algorithms": [{"time": 5}]}]}]})");
  EXPECT_NE(refusal_of_size(question).find(": batches[0]: layers[0]: algorithms[0]: time: must be"),
            std::string::npos);
}

}  // namespace
}  // namespace foretrace

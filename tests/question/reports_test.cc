#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json_text.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/question.h"
#include "question/sample.h"
#include "support/against_schema.h"

namespace foretrace {
namespace {

std::string written(std::string_view name, const Prediction& prediction) {
  std::ostringstream out;
  if (name == "json") out << indented_json(to_json(prediction));
  if (name == "csv") write_csv(prediction, out);
  for (const DocumentForm& form : document_forms()) {
    if (form.name == name) form.write(document_of(prediction), out);
  }
  return out.str();
}

/// Sentences as they were before wrapping.
std::string unwrapped(std::string text) {
  const std::string end = "\n              ";  // The continuation of a sentence after a heading.
  for (std::size_t at = text.find(end); at != text.npos; at = text.find(end, at + 1)) {
    if (text[at + end.size()] != ' ') text.replace(at, end.size(), " ");
  }
  return text;
}

TEST(Reports, TextSaysWhatHowMuchAndHowSureFirst) {
  EXPECT_EQ(written("text", sample_prediction()), R"(What if       amp
How much      100 ms -> 50 ms a step (-50.0 %), 2.000 times as fast
How sure      between 45 ms and 55 ms; the unmodified replay is 0.010 % off; see the warning in the notes

              now    share  predicted    share   change
step       100 ms  100.0 %      50 ms  100.0 %  -50.0 %
  compute   80 ms   80.0 %      30 ms   60.0 %  -62.5 %
  copy       5 ms    5.0 %       5 ms   10.0 %    0.0 %
  host      15 ms   15.0 %      15 ms   30.0 %    0.0 %

peak memory                          now  predicted   change
  device 0, allocated               2 GB       1 GB  -50.0 %
  device 0, reserved                3 GB     1.2 GB  -60.0 %
  device 0, reserved as recorded  3.1 GB

Changed in the whole recording
  - amp: 412 kernels faster

Figures
  - amp: saved bytes 1 GB

Based on
  replay        100 ms measured, 100 ms replayed over 2 steps
  steps         2 steps, mean 100 ms, slowest 100 ms, spread 0.0 %
  pinned        1 of 53,021 tasks held at their recorded start
  unexplained   5 ms, 1.00 % of the recording, kept as delays without a known cause
  dependencies  10 measured, 0 structural, 2 inferred, 0 assumed
  interval      four of five steps are expected inside: steps in the trace vary by -1.0 % to +1.0 %

Assumes
  - kernels gain as in the paper

Notes
  - warning: odd records (3 times, first: record 7)
)");
}

TEST(Reports, TextWithoutWhatIfShowsOneColumn) {
  Prediction prediction = sample_prediction();
  prediction.steps.clear();
  prediction.predicted = prediction.baseline;
  prediction.predicted_memory = prediction.baseline_memory;
  const std::string text = written("text", prediction);
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "What          the job as it was recorded\nHow much      100 ms a step\nHow sure      "
            "between 45 ms and 55 ms; the unmodified replay is 0.010 % off; see the warning in the "
            "notes");
  EXPECT_EQ(text.find("predicted"), std::string::npos);
}

TEST(Reports, ALimitIsAnsweredByWhoWasRefused) {
  Prediction prediction = sample_prediction();
  prediction.memory_limit = Bytes{1'000'000'000};
  Refusal refusal;
  refusal.op = "aten::convolution";
  refusal.stack = "train.py:88 step;main.py:3 <module>";
  refusal.phase = "backward";
  refusal.step = 2;
  refusal.time = 31ms;
  refusal.requested = Bytes{200'000'000};
  refusal.allocated = Bytes{700'000'000};
  refusal.reserved = Bytes{900'000'000};
  refusal.limit = prediction.memory_limit;
  prediction.predicted_memory[0].out_of_memory = refusal;
  const std::string text = unwrapped(written("text", prediction));
  EXPECT_NE(text.find("Does it fit   no: aten::convolution (train.py:88 step) for 200 MB in the "
                      "backward phase of step 2 is refused at 31 ms, with 900 MB of 1 GB reserved "
                      "and 700 MB allocated; about 1.2 GB would be enough\n"),
            std::string::npos)
      << text;
  prediction.predicted_memory[0].out_of_memory.reset();
  prediction.memory_limit = Bytes{2'000'000'000};
  EXPECT_NE(written("text", prediction)
                .find("Does it fit   yes: 1.2 GB of 2 GB reserved at the peak, 1 GB allocated\n"),
            std::string::npos);
}

TEST(Reports, WhatWasThereBeforeMayBeMoreThanTheLimitByItself) {
  Prediction prediction = sample_prediction();
  prediction.memory_limit = Bytes{100'000'000};
  Refusal refusal;
  refusal.requested = refusal.allocated = refusal.reserved = Bytes{900'000'000};
  refusal.limit = prediction.memory_limit;
  prediction.predicted_memory[0].out_of_memory = refusal;
  EXPECT_NE(written("text", prediction)
                .find("Does it fit   no: memory in use before the recording, 900 MB, is more than "
                      "100 MB; about 1.2 GB would be enough\n"),
            std::string::npos);
}

TEST(Reports, MoreReservedWhenRecordedThanReplayedIsSaidBesideTheAnswer) {
  Prediction prediction = sample_prediction();
  prediction.memory_limit = Bytes{2'000'000'000};
  prediction.baseline_memory[0].peak_reserved = Bytes{1'000'000'000};
  const auto says = [&](std::int64_t recorded) {
    prediction.baseline_memory[0].recorded_reserved = Bytes{recorded};
    return unwrapped(written("text", prediction))
               .find(
                   "1 GB allocated; the replay starts with an empty cache, while 3 GB were "
                   "reserved when recorded, of which the recording explains 1 GB\n") !=
           std::string::npos;
  };
  EXPECT_FALSE(says(1'040'000'000));
  EXPECT_TRUE(says(3'000'000'000));
}

TEST(Reports, OfASnapshotOnlyMemoryIsTold) {
  Prediction prediction = sample_prediction();
  prediction.has_times = false;
  const std::string text = written("text", prediction);
  EXPECT_NE(text.find("How sure      a memory snapshot has no step times"), std::string::npos);
  EXPECT_EQ(text.find(" ms"), std::string::npos) << text;
}

TEST(Reports, ABaselineThatDoesNotReproduceIsMarked) {
  Prediction prediction = sample_prediction();
  prediction.replay_error = 0.02;
  EXPECT_NE(
      written("text", prediction).find("NOT TO BE TRUSTED: the unmodified replay is 2.000 % off"),
      std::string::npos);
}

TEST(Reports, AStepThatChangedNothingIsMarked) {
  Prediction prediction = sample_prediction();
  prediction.steps = {{"scale:factor=1", "0 tasks", true}};
  prediction.predicted = prediction.baseline;
  const std::string text = written("text", prediction);
  EXPECT_NE(text.find("scale:factor=1 (changed nothing)"), std::string::npos);
  EXPECT_NE(text.find("100 ms -> 100 ms a step: no change"), std::string::npos);
}

TEST(Reports, TimeThatOnlyOtherRanksExplainIsShownWhereThereIsAny) {
  Prediction prediction = sample_prediction();
  EXPECT_EQ(written("text", prediction).find("other ranks"), std::string::npos);
  prediction.unexplained.peers = 50ms;
  EXPECT_NE(written("text", prediction).find("other ranks   50 ms, 10.00 % of the recording"),
            std::string::npos);
}

TEST(Reports, ExplanationsShowWaitsAndWork) {
  Prediction prediction = sample_prediction();
  prediction.explained = {{"gemm", "stream 7",
                           "waits for launch on cpu (launch, measured, 4 us later)", 1ms, 30ms,
                           7ms}};
  const std::string text = written("text", prediction);
  EXPECT_NE(text.find(R"(Longest waits on the critical path
  waited  first at  task  lane      because
    7 ms      1 ms  gemm  stream 7  waits for launch on cpu (launch, measured, 4 us later)

Longest work on the critical path
  worked  first at  task  lane
   30 ms      1 ms  gemm  stream 7
)"),
            std::string::npos)
      << text;
}

TEST(Reports, TheSchemaKnowsAllOfAnAnswer) {
  const auto schema = answer_schema(*find_question("predict")->make());
  EXPECT_EQ(against_schema(to_json(sample_prediction()), schema), std::vector<std::string>{});
}

TEST(Reports, JsonKeepsTheContract) {
  const auto json = nlohmann::json::parse(written("json", sample_prediction()));
  EXPECT_EQ(json["schema"], "foretrace.prediction/1");
  EXPECT_EQ(json["tool"]["version"], "0.2.0");
  EXPECT_EQ(
      json["inputs"][0],
      nlohmann::json::parse(R"({"path": "job.json.gz", "format": "kineto", "sha256": "ab12"})"));
  EXPECT_EQ(json["scenario"]["transforms"][0]["use"], "amp");
  EXPECT_EQ(json["measured"]["step_time_ns"], 100'000'000);
  EXPECT_EQ(json["measured"]["steps"], nlohmann::json::parse("[110000000, 100000000, 100000000]"));
  EXPECT_EQ(json["measured"]["window_ns"], 500'000'000);
  const auto& baseline = json["baseline"];
  EXPECT_EQ(baseline["step_time_ns"], 100'000'000);
  EXPECT_EQ(baseline["replay_error"], 0.0001);
  EXPECT_EQ(baseline["pinned_tasks"], 1);
  EXPECT_EQ(baseline["unexplained_ns"], 5'000'000);
  EXPECT_EQ(baseline["tasks"], 53021);
  EXPECT_EQ(
      baseline["dependencies"],
      nlohmann::json::parse(R"({"measured": 10, "structural": 0, "inferred": 2, "assumed": 0})"));
  EXPECT_EQ(baseline["breakdown_ns"]["compute"], 80'000'000);
  EXPECT_EQ(baseline["memory"][0]["peak_allocated_bytes"], 2'000'000'000);
  EXPECT_EQ(baseline["memory"][0]["peak_reserved_bytes"], 3'000'000'000);
  const auto& predicted = json["predicted"];
  EXPECT_EQ(predicted["step_time_ns"], 50'000'000);
  EXPECT_EQ(predicted["lower_ns"], 45'000'000);
  EXPECT_EQ(predicted["upper_ns"], 55'000'000);
  EXPECT_EQ(predicted["assumptions"][0], "kernels gain as in the paper");
  EXPECT_EQ(baseline["memory"][0]["recorded_reserved_bytes"], 3'100'000'000);
  EXPECT_EQ(predicted["memory"][0]["peak_reserved_bytes"], 1'200'000'000);
  EXPECT_TRUE(predicted["memory"][0]["recorded_reserved_bytes"].is_null());
  EXPECT_TRUE(predicted["memory"][0]["out_of_memory"].is_null());
  std::set<std::string> parts;
  for (const auto& [key, value] : predicted["breakdown_ns"].items()) parts.insert(key);
  EXPECT_EQ(parts,
            (std::set<std::string>{"communication", "compute", "copy", "host", "idle", "input"}));
  EXPECT_EQ(json["speedup"], 2.0);
  EXPECT_EQ(json["steps"][0]["use"], "amp");
  EXPECT_EQ(json["steps"][0]["summary"], "412 kernels faster");
  EXPECT_EQ(
      json["notes"][0],
      nlohmann::json::parse(
          R"({"severity": "warning", "text": "odd records", "count": 3, "example": "record 7"})"));
}

TEST(Reports, NamesThatAreNotUtf8DoNotBreakJson) {
  Prediction prediction = sample_prediction();
  prediction.notes.add(Severity::info, "kernel \xff\xfe");
  EXPECT_TRUE(nlohmann::json::accept(written("json", prediction)));
}

TEST(Reports, CsvIsAHeadingAndOneLine) {
  const std::string text = written("csv", sample_prediction());
  std::istringstream lines(text);
  std::string heading, line, rest;
  std::getline(lines, heading);
  std::getline(lines, line);
  EXPECT_FALSE(std::getline(lines, rest));
  EXPECT_EQ(line.substr(0, line.find(",80000000")),
            R"("job.json.gz","amp",100000000,100000000,0.0001,50000000,45000000,55000000,2)");
  EXPECT_EQ(std::count(heading.begin(), heading.end(), ','),
            std::count(line.begin(), line.end(), ','));
}

// 15.6 TFLOP in 100 ms are half of 312 TFLOP/s.
Prediction with_rates() {
  Prediction prediction = sample_prediction();
  prediction.baseline_rates = {.flops = 15.6e12,
                               .known_share = 1,
                               .peak_flops = 312e12,
                               .peak_of = "a100",
                               .samples = 8,
                               .tokens = 8192};
  prediction.predicted_rates = prediction.baseline_rates;
  prediction.baseline_breakdown = {.compute = 80ms, .communication = 20ms};
  return prediction;
}

TEST(Reports, RatesStandInEveryForm) {
  const Prediction prediction = with_rates();
  EXPECT_NE(written("text", prediction).find(R"(
rates                       now  predicted
  samples a second         80.0      160.0
  tokens a second        81,920    163,840
  MFU                    50.0 %    100.0 %
  exposed communication  20.0 %      0.0 %
)"),
            std::string::npos)
      << written("text", prediction);
  EXPECT_NE(written("markdown", prediction).find("|   MFU | 50.0 % | 100.0 % |"),
            std::string::npos);
  EXPECT_NE(written("csv", prediction).find(",0.5,1,80,160,81920,163840,0.2,0\n"),
            std::string::npos)
      << written("csv", prediction);
  const nlohmann::json rates = to_json(prediction).at("baseline").at("rates");
  EXPECT_EQ(rates.at("mfu"), 0.5);
  EXPECT_EQ(rates.at("samples_per_second"), 80);
  EXPECT_EQ(rates.at("exposed_communication"), 0.2);
}

TEST(Reports, AUtilizationOfWhichLittleIsKnownIsNotTold) {
  Prediction prediction = with_rates();
  prediction.baseline_rates.known_share = prediction.predicted_rates.known_share = 0.8;
  EXPECT_NE(written("text", prediction).find("at least 50.0 %"), std::string::npos);
  prediction.baseline_rates.known_share = prediction.predicted_rates.known_share = 0.3;
  EXPECT_EQ(written("text", prediction).find("MFU"), std::string::npos);
  EXPECT_TRUE(to_json(prediction).at("baseline").at("rates").at("mfu").is_null());
}

TEST(Reports, MarkdownEscapesNamesOfKernels) {
  Prediction prediction = sample_prediction();
  prediction.explained = {{"void f<float*>(a|b)", "stream 7", "next on its lane", 0ms, 1ms, 0ms}};
  EXPECT_NE(written("markdown", prediction).find(R"(| void f&lt;float\*>(a\|b) | stream 7 |)"),
            std::string::npos)
      << written("markdown", prediction);
}

}  // namespace
}  // namespace foretrace

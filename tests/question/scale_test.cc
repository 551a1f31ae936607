#include "foretrace/answer/scale.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/question/scale.h"
#include "question/recorded.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string counts(const std::string& text) {
  std::string all;
  try {
    for (const std::int64_t count : read_counts(text)) all += std::to_string(count) + " ";
  } catch (const Error& error) {
    return error.what();
  }
  return all;
}

TEST(Scale, CountsAreDoubledSteppedOrListed) {
  EXPECT_EQ(counts("1..16"), "1 2 4 8 16 ");
  EXPECT_EQ(counts("3..20"), "3 6 12 ");
  EXPECT_EQ(counts("8..32/+8"), "8 16 24 32 ");
  EXPECT_EQ(counts("8,1,8,2..4"), "1 2 4 8 ");
  EXPECT_EQ(counts("1..64/x4"), "1 4 16 64 ");
  EXPECT_EQ(counts("8..64/8"), "must be 8..64/+8 to add 8, or 8..64/x2 to double, got \"8..64/8\"");
  EXPECT_EQ(
      counts("0"),
      "must be counts such as 1..1024, 8..64/+8 or 1,8,16, each from 1 to 1000000, got \"0\"");
  EXPECT_EQ(counts("8..4"), "must go up, got \"8..4\"");
  EXPECT_NE(counts("1..1000000/+1").find("at most 1000"), std::string::npos);
  EXPECT_NE(counts("4x").find("got \"4x\""), std::string::npos);
}

ScaleQuestion question(const std::string& scheme) {
  ScaleQuestion question;
  question.trace = FORETRACE_SOURCE_DIR "/traces/gpt-a100-gpu-bound.pt.trace.json.gz";
  question.gpus = {1, 8, 64};
  question.schemes = {scheme};
  return question;
}

TEST(Scale, EachCountIsThePredictionOfItsScheme) {
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB");
  asked.machine = "dgx-a100";
  asked.scenario.samples_per_step = 16;
  const ScaleReport report = scale(asked);
  ASSERT_EQ(report.points.size(), 3U);
  EXPECT_EQ(report.points[0].step_time, report.recorded);
  EXPECT_DOUBLE_EQ(report.points[0].efficiency, 1);
  Scenario scenario;
  add_steps("data_parallel:gradient_bytes=500MB,gpus=64,machine=dgx-a100", scenario);
  const Prediction alone = predict(Job(asked.trace), scenario);
  EXPECT_EQ(report.points[2].step_time, alone.predicted.step_time);
  EXPECT_EQ(report.points[2].upper, alone.upper);
  EXPECT_NEAR(report.points[2].throughput, 64 * report.points[2].efficiency, 1e-9);
  EXPECT_NEAR(*report.points[2].rate,
              64 * 16 * 1e9 / static_cast<double>(report.points[2].step_time.count()), 1e-6);
  ASSERT_EQ(report.limits.size(), 1U);
  EXPECT_NE(report.limits.front().find("64 GPUs"), std::string::npos);
}

TEST(Scale, LayersWithoutKernelsAreNotDivided) {
  ScaleQuestion asked;
  asked.step_time = 100ms, asked.gpus = {8}, asked.machine = "dgx-a100";
  asked.schemes = {"tensor_parallel:activation_bytes=64MB"};
  try {
    scale(asked);
    FAIL() << "a step without kernels was divided";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("needs kernels to divide"), std::string::npos)
        << error.what();
  }
}

TEST(Scale, ASlowNetworkIsSaidToStopIt) {
  const ScaleReport report =
      scale(question("data_parallel:gradient_bytes=2GB,bandwidth=1GB/s,latency=10us"));
  EXPECT_NE(report.limits.front().find("from 8 GPUs on, communication limits it"),
            std::string::npos)
      << report.limits.front();
  EXPECT_GT(report.points[1].exposed, 2s);
  EXPECT_LT(report.points[2].efficiency, report.points[1].efficiency);
}

TEST(Scale, WhatCannotBeAskedIsSaidOnce) {
  ScaleQuestion asked = question("data_parallel");
  asked.machine = "dgx-a100";
  asked.gpus = {8};
  const std::string shows_sizes = asked.trace;
  const Folder folder;
  asked.trace = without_optimizer(folder / "silent.ftrace");
  EXPECT_THROW(scale(asked), Error);
  asked.trace = shows_sizes;
  asked.schemes = {"data_parallel:gradient_bytes=500MB"};
  asked.machine = "dgx-a100:hosts=2";
  asked.gpus = {8, 64};
  const ScaleReport report = scale(asked);
  EXPECT_EQ(report.points[0].refused, "");
  EXPECT_NE(report.points[1].refused.find("16"), std::string::npos) << report.points[1].refused;
}

TEST(Scale, WorkersOfSeveralGpusAreCountedByTheirGpus) {
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB");
  asked.machine = "dgx-a100";
  add_steps("tensor_parallel:gpus=8,machine=dgx-a100,activation_bytes=1MB", asked.scenario);
  asked.gpus = {8, 64};
  const ScaleReport report = scale(asked);
  EXPECT_EQ(report.gpus_per_worker, 8);
  EXPECT_NEAR(report.points[0].throughput, 1, 1e-9);
  EXPECT_LT(report.points[1].throughput, 8);
  EXPECT_GT(report.points[1].throughput, 4);
  EXPECT_NEAR(report.points[1].efficiency, report.points[1].throughput / 8, 1e-9);
  // Each of the eight groups of a host sends through one NIC; over NVLink it would take 4 ms.
  EXPECT_GT(report.points[1].transfer - report.points[0].transfer, 20ms);
  asked.gpus = {12};
  EXPECT_THROW(scale(asked), Error);
}

TEST(Scale, ATraceWithoutADeviceNameHasThatOfTheMachine) {
  const Folder folder;
  Trace unnamed = import_trace(question("").trace);
  unnamed.properties.clear();
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB,copies=true");
  asked.trace = folder / "unnamed.ftrace";
  export_trace(unnamed, asked.trace);
  asked.machine = "dgx-a100";
  const ScaleReport report = scale(asked);
  EXPECT_EQ(report.points.back().refused, "");
  EXPECT_NE(std::ranges::find(report.assumptions,
                              "the trace does not name its device; it is taken for "
                              "a100-sxm4-80gb, that of --machine"),
            report.assumptions.end());
}

TEST(Scale, AWholeTrainingHasTheSameSamplesOnAnyNumber) {
  const Folder folder;
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB");
  asked.machine = "dgx-a100";
  asked.training.steps = "100k";
  asked.training.prices = folder.write("p.json", R"({"prices": {"a100": "2 EUR/h"}})");
  const ScaleReport report = scale(asked);
  for (const ScalePoint& point : report.points) {
    // Each GPU has a worker's samples in a step.
    const double seconds =
        1e5 / static_cast<double>(point.gpus) * static_cast<double>(point.step_time.count()) * 1e-9;
    EXPECT_NEAR(point.training->seconds.point, seconds, 1e-6 * seconds);
    EXPECT_NEAR(point.training->price->point, seconds * 2 * static_cast<double>(point.gpus) / 3600,
                1e-6 * seconds);
    EXPECT_LE(point.training->seconds.lower, point.training->seconds.point);
  }
  std::ostringstream csv;
  write_csv(report, csv);
  EXPECT_NE(csv.str().find(",refused,training_s,training_lower_s,training_upper_s,price,"),
            std::string::npos)
      << csv.str();
  asked.training.steps.clear();  // Then the price is that of 1,000 steps.
  EXPECT_NEAR(scale(asked).points.back().training->price->point,
              report.points.back().training->price->point / 100, 1e-9);
}

TEST(Scale, KernelsOfAnotherDeviceThanThatOfTheMachineAreSaid) {
  const Folder folder;
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB,machine=dgx-a100");
  asked.training.steps = "100k";
  asked.training.prices = folder.write("p.json", R"({"prices": {"a100": "2 EUR/h"}})");
  const auto says = [&](const ScaleReport& report) {
    return std::ranges::any_of(report.assumptions, [](const std::string& one) {
      return one.starts_with("kernels take as long as on a100-sxm4-40gb, not as on the h100");
    });
  };
  // Without a machine, the recorded device has the price.
  const ScaleReport recorded = scale(asked);
  EXPECT_TRUE(recorded.points.back().training->price);
  EXPECT_FALSE(says(recorded));
  asked.training = {};
  asked.machine = "dgx-h100";
  EXPECT_TRUE(says(scale(asked)));
  asked.scenario = parse_scenario(nlohmann::json::parse(
      R"({"transforms": [{"use": "faster_device", "to": "h100-sxm5-80gb"}]})"));
  EXPECT_FALSE(says(scale(asked)));
}

TEST(Scale, AllFormsHaveAllPoints) {
  ScaleQuestion asked = question("data_parallel:gradient_bytes=500MB");
  asked.machine = "dgx-a100";
  const ScaleReport report = scale(asked);
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["schema"], "foretrace.scale/1");
  EXPECT_EQ(json["points"][2]["step_time_ns"], report.points[2].step_time.count());
  std::ostringstream csv, page, text;
  write_csv(report, csv);
  write_html(document_of(report), page);
  write_text(document_of(report), text);
  EXPECT_NE(csv.str().find("\ndata_parallel:gradient_bytes=500MB,64,"), std::string::npos)
      << csv.str();
  EXPECT_NE(page.str().find("<polyline"), std::string::npos);
  EXPECT_NE(text.str().find("trust: "), std::string::npos);
}

}  // namespace
}  // namespace foretrace

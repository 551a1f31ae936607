// The published cases of "Analyzing and Mitigating Data Stalls in DNN Training" (VLDB'21), as
// scenarios. Their assertions are tested together with all other examples.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "foretrace/job.h"
#include "foretrace/question/predict.h"

namespace foretrace {
namespace {

std::vector<std::string> published() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(FORETRACE_SOURCE_DIR "/scenarios")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("data_stalls_") && name.ends_with(".json")) {
      found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

const Figure* figure(const Prediction& prediction, std::string_view name) {
  for (const AppliedStep& step : prediction.steps) {
    for (const Figure& figure : step.figures) {
      if (figure.name == name) return &figure;
    }
  }
  return nullptr;
}

TEST(DataStalls, TheReplayedStepIsThatOfTheSlowestStage) {
  // The figures are closed forms; the step time comes from tasks on lanes.
  const std::vector<std::string> files = published();
  EXPECT_GE(files.size(), 18U);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const Scenario scenario = read_scenario(file);
    const Prediction prediction = predict(Job(scenario.trace), scenario);
    const Figure* rate = figure(prediction, "samples_per_second");
    ASSERT_NE(rate, nullptr);
    const double expected = 512e9 / std::get<double>(rate->value);
    const auto found = static_cast<double>(prediction.predicted.step_time.count());
    const bool reads = figure(prediction, "fetch_rate") != nullptr &&
                       std::get<double>(figure(prediction, "fetch_stall")->value) > 0;
    EXPECT_NEAR(found, expected, (reads ? 1e-3 : 0.02) * expected);
  }
}

}  // namespace
}  // namespace foretrace

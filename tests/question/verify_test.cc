#include "foretrace/question/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/ledger.h"
#include "foretrace/question/predict.h"
#include "support/folder.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

const std::string kBefore = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz";
const std::string kAfter = FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader4.pt.trace.json.gz";

/// A temporary folder with a prediction of the job with four workers.
class Verify : public testing::Test {
 protected:
  Verify() {
    Scenario scenario;
    scenario.trace = kBefore;
    scenario.uses = {"loader:workers=4"};
    scenario.transforms.push_back(read_transform_text(scenario.uses[0]));
    json_ = to_json(predict(Job(kBefore), scenario));
  }

  Verification verified(const VerifyOptions& options = {}) const {
    const std::string path = folder_ / "prediction.json";
    std::ofstream(path) << json_.dump();
    return verify(path, kAfter, options);
  }
  std::string error_of() const {
    try {
      verified();
    } catch (const Error& error) {
      return std::string(error.what()).substr(folder_.path().size() + 1);
    }
    return "no error";
  }

  Folder folder_;
  nlohmann::json json_;
};

TEST_F(Verify, AMeasuredStepInsideTheIntervalAgrees) {
  const Verification result = verified();
  EXPECT_EQ(result.agreement, Agreement::inside);
  EXPECT_LT(std::abs(result.error), 0.07);
  EXPECT_TRUE(result.notes.empty());
  ASSERT_TRUE(result.residual);
  EXPECT_EQ(result.repeated, result.predicted.step_time);
  Nanoseconds sum = result.residual->before.step_time;
  for (const DiffCause& cause : result.residual->causes) sum += cause.effect;
  EXPECT_EQ(sum, result.measured.step_time);
  EXPECT_EQ(result.residual->before.step_time, result.predicted.step_time);
}

TEST_F(Verify, OutsideTheIntervalOfWhichSomeStepsAreInsideIsNear) {
  json_["predicted"]["lower_ns"] = 1'000'000;
  json_["predicted"]["upper_ns"] = verified().measured.step_time.count() - 1;
  EXPECT_EQ(verified().agreement, Agreement::near);
  json_["predicted"]["upper_ns"] = 2'000'000;
  EXPECT_EQ(verified().agreement, Agreement::outside);
}

TEST_F(Verify, AStepFasterThanTheIntervalIsOutsideToo) {
  const std::int64_t measured = verified().measured.step_time.count();
  json_["predicted"]["step_time_ns"] = 2 * measured;
  json_["predicted"]["lower_ns"] = measured * 3 / 2;
  json_["predicted"]["upper_ns"] = measured * 3;
  const Verification result = verified();
  EXPECT_EQ(result.agreement, Agreement::outside);
  EXPECT_DOUBLE_EQ(result.error, 1);
}

TEST_F(Verify, AnotherInputIsSaidAndAnotherOutcomeToo) {
  json_["inputs"][0]["sha256"] = "0";
  json_["predicted"]["step_time_ns"] = 50'000'000;
  const Verification result = verified();
  ASSERT_EQ(result.notes.all().size(), 2u);
  EXPECT_NE(result.notes.all()[0].text.find("SHA-256"), std::string::npos);
  EXPECT_NE(result.notes.all()[1].text.find("differs when it is repeated"), std::string::npos);
}

TEST_F(Verify, WithoutItsInputTheStepTimesAreComparedAllTheSame) {
  json_["scenario"]["trace"] = "gone.json";
  const Verification result = verified();
  EXPECT_FALSE(result.residual);
  EXPECT_EQ(result.agreement, Agreement::inside);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_EQ(result.notes.all()[0].severity, Severity::warning);
  EXPECT_TRUE(verified({.trace = kBefore}).residual);
  EXPECT_THROW(verified({.trace = folder_ / "gone.json"}), Error);
}

TEST_F(Verify, AnInputBesideThePredictionIsFound) {
  fs::copy_file(kBefore, folder_ / "before.json.gz");
  json_["scenario"]["trace"] = "before.json.gz";
  const Verification result = verified();
  EXPECT_TRUE(result.residual);
  EXPECT_TRUE(result.notes.empty());
}

TEST_F(Verify, TheOutcomeGoesToTheLedgerOfTheUser) {
  const std::string ledger = folder_ / "ledger.json";
  verified({.ledger_path = ledger});
  const Verification result = verified({.ledger_path = ledger});
  const std::vector<KnownOutcome> outcomes = read_ledger(ledger);
  ASSERT_EQ(outcomes.size(), 2u);
  EXPECT_EQ(outcomes[1].transforms, result.uses);
  EXPECT_EQ(outcomes[1].predicted, result.predicted.step_time);
  EXPECT_EQ(outcomes[1].measured, result.measured.step_time);
}

TEST_F(Verify, AnOutcomeThatNoLedgerCanHoldIsNotAdded) {
  json_["predicted"]["step_time_ns"] = 1'000'000'000'000'000'000;
  const Verification result = verified({.ledger_path = folder_ / "ledger.json"});
  EXPECT_TRUE(result.ledger.empty());
  EXPECT_FALSE(fs::exists(folder_ / "ledger.json"));
}

TEST_F(Verify, WhatIsNoPredictionIsRefusedWithItsPlace) {
  json_["schema"] = "foretrace.curve/1";
  EXPECT_EQ(error_of(),
            "prediction.json: must be the output of predict --format json, with the schema "
            "\"foretrace.prediction/1\", got \"foretrace.curve/1\"");
  json_["schema"] = "foretrace.prediction/1";
  json_["predicted"].erase("lower_ns");
  EXPECT_EQ(error_of(), "prediction.json: predicted: there is no \"lower_ns\"");
  json_["predicted"]["lower_ns"] = "1ms";
  EXPECT_EQ(error_of(), "prediction.json: predicted: lower_ns: must be a whole number");
  json_["predicted"]["lower_ns"] = 1;
  json_["steps"][0]["changed_nothing"] = "yes";
  EXPECT_EQ(error_of(), "prediction.json: steps: changed_nothing: must be true or false");
  json_ = nlohmann::json::array();
  EXPECT_EQ(error_of().substr(0, 43), "prediction.json: must be the output of pred");
}

}  // namespace
}  // namespace foretrace

#include "foretrace/question/training.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/question/generate.h"
#include "support/folder.h"

namespace foretrace {
namespace {

const RepeatedStep kStep = {
    .time = 2s, .lower = 1s, .upper = 4s, .gpus = 16, .device = "h100-sxm5-80gb", .tokens = 1e6};

std::string error_of(const TrainingQuestion& question, const RepeatedStep& step = kStep) {
  try {
    run_of(question, step);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Training, TokensAreStepsAndTime) {
  TrainingQuestion question;
  EXPECT_FALSE(run_of(question, kStep));
  question.tokens = "1.5B";
  const TrainingRun run = run_of(question, kStep).value();
  EXPECT_EQ(run.steps, 1500);
  EXPECT_EQ(run.seconds.point, 3000);
  EXPECT_EQ(run.seconds.lower, 1500);
  EXPECT_EQ(run.seconds.upper, 6000);
  EXPECT_FALSE(run.price || run.energy || run.failures);
  EXPECT_EQ(sentences_of(run).front().second,
            "50 min, between 25 min and 100 min (80 %) on 16 GPUs: 1.50k steps, 1.50B tokens");
}

TEST(Training, PricesAndPowerAreThoseOfTheLongestName) {
  const Folder folder;
  TrainingQuestion question;
  question.steps = "900k";
  question.prices = folder.write("p.json", R"({"prices": {"h": "9 EUR/h", "h100": "2 EUR/h"}})");
  question.power = folder.write("w.json", R"({"power": {"h100": "0.7 kW"}})");
  const TrainingRun run = run_of(question, kStep).value();
  // 900,000 steps of 2 s are 500 h on each of 16 GPUs.
  EXPECT_DOUBLE_EQ(run.price->point, 500 * 16 * 2);
  EXPECT_DOUBLE_EQ(run.price->upper, 1000 * 16 * 2);
  EXPECT_EQ(run.currency, "EUR");
  EXPECT_DOUBLE_EQ(run.energy->point, 500 * 16 * 700.0);
  const nlohmann::json json = training_json(run);
  EXPECT_EQ(json["gpus"], 16);
  EXPECT_TRUE(json["failures"].is_null());
}

TEST(Training, ANetworkThatIsPaidForApartIsPartOfThePrice) {
  const Folder folder;
  TrainingQuestion question;
  question.steps = "900k";
  question.prices =
      folder.write("p.json", R"({"prices": {"h100": "2 EUR/h"}, "network": {"h": "0.5 EUR/h"}})");
  const TrainingRun run = run_of(question, kStep).value();
  EXPECT_DOUBLE_EQ(run.price->point, 500 * 16 * 2.5);
  EXPECT_EQ(training_json(run)["network_share"], 0.2);
  EXPECT_NE(sentences_of(run)[1].second.find("at 2.5 EUR for a GPU and hour, 20 % of it for the "
                                             "network"),
            std::string::npos)
      << sentences_of(run)[1].second;
  folder.write("p.json", R"({"prices": {"h100": "2 EUR/h"}, "network": {"h": "0.5 USD/h"}})");
  EXPECT_NE(error_of(question).find("network: must be in EUR, as prices are, got USD"),
            std::string::npos);
  folder.write("p.json", R"({"prices": {"h100": "2 EUR/h"}, "network": {"b200": "0.5 EUR/h"}})");
  EXPECT_NE(error_of(question).find("network: must have h100-sxm5-80gb"), std::string::npos);
}

TEST(Training, FilesAreReadOnceForManySteps) {
  const Folder folder;
  TrainingQuestion question;
  question.steps = "900k";
  question.prices = folder.write("p.json", R"({"prices": {"h100": "2 EUR/h"}})");
  question.power = folder.write("w.json", R"({"power": {"h100": "700 W"}})");
  const TrainingRuns runs(question);
  for (const std::string& path : {question.prices, question.power}) std::filesystem::remove(path);
  for (int i = 0; i < 2; ++i) {
    EXPECT_DOUBLE_EQ(runs.of(kStep).price->point, 500 * 16 * 2);
    EXPECT_DOUBLE_EQ(runs.of(kStep).energy->point, 500 * 16 * 700.0);
  }
  EXPECT_THROW(run_of(question, kStep), Error);
}

TEST(Training, APriceNeedsADeviceAndItsName) {
  const Folder folder;
  TrainingQuestion question;
  question.steps = "1k";
  question.prices = folder.write("p.json", R"({"prices": {"a100": "2 EUR/h"}})");
  RepeatedStep step = kStep;
  EXPECT_NE(error_of(question, step)
                .find("prices: must have h100-sxm5-80gb or a beginning of that name, got a100"),
            std::string::npos);
  step.device.clear();
  EXPECT_NE(error_of(question, step).find("name it with --machine"), std::string::npos);
}

/// Share of the time that trains, from many failures drawn one by one.
double drawn_goodput(double between, double checkpoint, double restart, double every) {
  constexpr int kFailures = 400'000;
  double trained = 0, passed = 0;
  // The times between failures are the quantiles of their distribution, in a fixed odd order.
  for (int i = 0; i < kFailures; ++i) {
    const double u = (static_cast<double>((i * 7919LL) % kFailures) + .5) / kFailures;
    const double life = -between * std::log1p(-u);
    passed += life;
    trained += std::max(0.0, std::floor((life - restart) / (every + checkpoint))) * every;
  }
  return trained / passed;
}

TEST(Training, GoodputIsThatOfDrawnFailures) {
  for (const double between : {1800.0, 11'000.0, 300'000.0}) {
    const TrainingRun::Failures found = goodput_with(between, 60, 120);
    // Daly's formula lets a restart fail as well, which the draw does, too.
    EXPECT_NEAR(found.goodput, drawn_goodput(between, 60, 120, found.checkpoint_every), .002)
        << between;
    for (const double factor : {.8, 1.25})
      EXPECT_LE(drawn_goodput(between, 60, 120, found.checkpoint_every * factor),
                found.goodput + .002);
  }
  EXPECT_EQ(goodput_with(100, 300, 10).checkpoint_every, 100);
}

TEST(Training, FailuresAreThoseOfAllGpus) {
  TrainingQuestion question;
  question.steps = "1k";
  question.mtbf_hours = 160;
  const TrainingRun run = run_of(question, kStep).value();
  EXPECT_DOUBLE_EQ(run.failures->between, 36'000);
  EXPECT_DOUBLE_EQ(run.seconds.point, 2000 / run.failures->goodput);
}

TEST(Training, SaysWhatIsWrong) {
  const Folder folder;
  TrainingQuestion question;
  question.mtbf_hours = 5;
  EXPECT_EQ(error_of(question), "--mtbf-hours: needs --tokens or --total-steps");
  question.steps = "1e30";
  EXPECT_EQ(error_of(question),
            "--total-steps: must be a count such as 100k, 1.5M, 300B or 15T, got \"1e30\"");
  question.steps = "10";
  question.mtbf_hours = 1e-6;
  EXPECT_EQ(error_of(question),
            "--mtbf-hours: must be so long that a job on 16 GPUs gets on between failures, every "
            "0.0 s here, got 0.000001");
  question.mtbf_hours = 0;
  EXPECT_EQ(error_of(question), "--mtbf-hours: must be above 0, got 0");
  question.mtbf_hours.reset();
  question.power = folder.write("w.json", R"({"power": {"h100": "700"}})");
  EXPECT_EQ(error_of(question),
            question.power +
                ": power: h100: must be the power of a GPU while it trains, such as "
                "\"700 W\", got \"700\"");
  question.power.clear();
  question.tokens = "1B";
  EXPECT_EQ(error_of(question),
            "--tokens and --total-steps: must not be given together, as each says how long to "
            "train");
  question.steps.clear();
  RepeatedStep unknown = kStep;
  unknown.tokens.reset();
  EXPECT_EQ(error_of(question, unknown),
            "--tokens: must not be given where the tokens of a step are unknown; give "
            "--total-steps");
}

TEST(Training, GenerateKnowsTheTokensOfAStep) {
  GenerateQuestion question{.model = "llama3-8b", .machine = "dgx-h100"};
  question.layout = "dp=16,zero=3,global_batch=128";
  question.training.tokens = "1T";
  const GenerationReport report = generate_step(question);
  // 128 samples of 8,192 tokens.
  EXPECT_EQ(report.training->steps, std::ceil(1e12 / (128 * 8192)));
  EXPECT_EQ(report.training->gpus, 16);
}

}  // namespace
}  // namespace foretrace

#include "foretrace/answer/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/statistics.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/generation.h"
#include "foretrace/error.h"
#include "foretrace/question/generate.h"
#include "foretrace/question/plan.h"
#include "question/recorded.h"
#include "support/folder.h"

namespace foretrace {
namespace {

PlanQuestion small_question() {
  PlanQuestion question{.model = "mpt-1b", .machine = "dgx-h100"};
  question.gpus = {8}, question.global_batch = 64, question.top = 3;
  return question;
}

std::string refusal_of(const PlanQuestion& question) {
  try {
    plan(question);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Plan, RanksWhatItAlwaysShows) {
  PlanQuestion question = small_question();
  question.layout = "tp=8,micro_batch=1,global_batch=64";
  const PlanReport report = plan(question);
  ASSERT_EQ(report.ranked.size(), 5U);
  EXPECT_TRUE(
      std::ranges::is_sorted(report.ranked.begin(), report.ranked.begin() + 3, {}, &PlanRow::time));
  EXPECT_EQ(report.ranked[3].role, "plain data parallelism");
  EXPECT_EQ(report.ranked[4].role, "yours");
  EXPECT_EQ(report.ranked[4].loss, "kernels");  // Its matrix products are small.
  for (const PlanRow& row : report.ranked) {
    EXPECT_LT(row.lower, row.time);
    EXPECT_EQ(row.bubble + row.network + row.kernels, row.time);
  }
  std::size_t shown = 3, lost = 0;
  for (const auto& [loss, count] : report.losses) lost += count;
  for (const PlanRow& row : report.front) {
    shown += std::ranges::none_of(report.ranked.begin(), report.ranked.begin() + 3,
                                  [&](const PlanRow& other) { return other.layout == row.layout; });
  }
  EXPECT_EQ(shown + lost, report.layouts);
}

TEST(Plan, AgreesWithGenerate) {
  const PlanReport report = plan(small_question());
  const GenerationReport one =
      generate_step({.model = "mpt-1b", .machine = "dgx-h100", .layout = report.ranked[0].layout});
  EXPECT_EQ(one.step->time, report.ranked[0].time);
  EXPECT_EQ(one.step->reserved, report.ranked[0].reserved);
}

TEST(Plan, CountsThePriceOfGpus) {
  const Folder folder;
  PlanQuestion question = small_question();
  question.gpus = {4, 8};
  question.training.prices =
      folder.write("prices.json", R"({"prices": {"h": "1 EUR/h", "h100": "3.6 EUR/h"}})");
  const PlanReport report = plan(question);
  EXPECT_EQ(report.currency, "EUR");
  const PlanRow& row = report.ranked[0];
  EXPECT_NEAR(*row.cost, static_cast<double>(row.time.count()) * 1e-9 * 8, 1e-6);
  EXPECT_TRUE(std::ranges::any_of(report.front, [](const PlanRow& one) { return one.gpus == 4; }));
  question.training.prices =
      folder.write("others.json", R"({"prices": {"a100": "3 EUR/h", "v100": "1 EUR/h"}})");
  EXPECT_EQ(refusal_of(question),
            question.training.prices +
                ": prices: must have h100-sxm5-80gb or a beginning of that name, got a100, v100");
  question.training.prices = folder.write("unitless.json", R"({"prices": {"h100": "3"}})");
  EXPECT_EQ(refusal_of(question),
            question.training.prices +
                ": prices: h100: must be the price of a GPU for an hour, such "
                "as \"2.5 USD/h\", got \"3\"");
}

/// Settings of several sections cannot be told apart by their names; the plan is found anyway.
TEST(Plan, SaysWhyItsFileCannotBeChanged) {
  const Folder folder;
  PlanQuestion question{.model = "mpt-125m", .machine = "dgx-h100", .gpus = {4}, .top = 1};
  question.config = folder.write("b.yaml",
                                 "model:\n  tensor_model_parallel_size: 2\ntrain:\n"
                                 "  micro_batch_size: 1\n  global_batch_size: 16\n");
  const PlanReport report = plan(question);
  ASSERT_EQ(report.launches.size(), 1U);
  EXPECT_EQ(report.ranked.front().role, "");
  EXPECT_TRUE(report.launches[0].row);
  EXPECT_EQ(report.launches[0].file, "");
  EXPECT_EQ(report.launches[0].no_file,
            question.config +
                ": pipeline_model_parallel_size: is in none of the file's sections; "
                "add it where it belongs");
}

TEST(Plan, SaysWhatIsMissing) {
  PlanQuestion question = small_question();
  question.global_batch = 0;
  EXPECT_EQ(refusal_of(question),
            "--global-batch: must be given, the samples of a step on all GPUs together");
  question = small_question();
  question.gpus.clear();
  EXPECT_EQ(refusal_of(question), "--gpus: must be given, such as 64 or 8..1024");
  question = small_question();
  question.memory = Bytes{1'000'000};
  EXPECT_EQ(refusal_of(question),
            "--memory-limit: must hold the weights of one layer, 34.6 MB, got 1 MB");
  question = small_question();
  question.fix = "tp=5";
  EXPECT_EQ(refusal_of(question), "no layout is left: tp must be one of 1, 2, 4, 8, got 5");
}

TEST(Plan, SaysFirstWhatItReproduces) {
  const Folder folder;
  PlanQuestion question = small_question();
  question.measured = folder.write("runs.csv",
                                   "gpus,tp,pp,micro_batch,global_batch,iteration_ms\n"
                                   "8,1,1,1,64,1000\n"
                                   "8,1,1,64,512,OOM\n"
                                   "8,8,1,1,64,99000\n");
  const PlanReport report = plan(question);
  ASSERT_TRUE(report.measured);
  ASSERT_EQ(report.measured->rows.size(), 3U);
  EXPECT_TRUE(is_reproduced(report.measured->rows[1]));
  EXPECT_FALSE(is_reproduced(report.measured->rows[2]));
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_LT(text.str().find("3 measured runs reproduced"), text.str().find("mpt-1b on dgx-h100"));
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["schema"], "foretrace.plan/1");
  EXPECT_EQ(json["ranked"].size(), 4U);
}

TEST(Plan, ItsCommandIsFittedAsItWas) {
  const Folder folder;
  PlanQuestion question = small_question();
  EXPECT_EQ(plan(question).command.find("--calibrate"), std::string::npos);
  question.calibrate = folder.write("runs.csv",
                                    "gpus,tp,pp,micro_batch,global_batch,iteration_ms\n"
                                    "8,1,1,1,64,1000\n");
  EXPECT_TRUE(plan(question).command.ends_with(" --calibrate " + question.calibrate));
}

TEST(Plan, StrategiesPlanByTheirOwnModels) {
  for (const char* name : {"chimera", "dapple", "pipedream", "pipedream_2bw"}) {
    SCOPED_TRACE(name);
    PlanQuestion question = small_question();
    question.strategy = name;
    question.layout = "tp=1,dp=2,pp=4,micro_batch=1,global_batch=64";
    const PlanReport report = plan(question);
    ASSERT_TRUE(report.strategy);
    EXPECT_EQ(report.strategy->name, name);
    std::int64_t gpus = 0;
    std::size_t layers = 0;
    for (const PlanStages& one : report.strategy->stages) {
      const auto stages = static_cast<std::int64_t>(one.stages);
      gpus += stages * one.gpus, layers += one.stages * one.layers;
    }
    EXPECT_EQ(gpus, 8);
    EXPECT_EQ(layers, 24U);
    EXPECT_EQ(report.ranked.back().role, "yours");
    std::ostringstream text, markdown;
    write_text(document_of(report), text);
    write_markdown(document_of(report), markdown);
    EXPECT_NE(text.str().find("a step by its own model"), std::string::npos);
    EXPECT_NE(markdown.str().find("a step by its own model"), std::string::npos);
    EXPECT_EQ(to_json(report)["strategy"]["name"], name);
    if (!report.strategy->is_ranked) continue;
    EXPECT_EQ(report.ranked.front().role, name);
    // The strategy's own model and ours agree within a factor.
    const double factor = static_cast<double>(report.strategy->time.count()) /
                          static_cast<double>(report.ranked.front().time.count());
    EXPECT_GT(factor, .5);
    EXPECT_LT(factor, 1.5);
  }
  PlanQuestion question = small_question();
  question.strategy = "alpa";
  EXPECT_EQ(refusal_of(question),
            "--strategy: must be one of exhaustive, chimera, dapple, pipedream, pipedream_2bw, got "
            "alpa");
}

PlanQuestion recorded_question() {
  PlanQuestion question{.model = FORETRACE_SOURCE_DIR "/traces/gpt-a100-gpu-bound.pt.trace.json.gz",
                        .machine = "dgx-a100"};
  question.gpus = {4}, question.gradients = Bytes{500'000'000}, question.top = 5;
  return question;
}

TEST(Plan, PlansFromATrace) {
  const PlanReport report = plan(recorded_question());
  ASSERT_GE(report.ranked.size(), 5U);
  EXPECT_EQ(report.trace, recorded_question().model);
  EXPECT_NE(report.command.find("foretrace predict "), std::string::npos);
  std::size_t plain = 0;
  for (const PlanRow& row : report.ranked) {
    EXPECT_EQ(row.gpus, 4);
    EXPECT_EQ(row.bubble + row.network + row.kernels, row.time);
    EXPECT_LE(report.ranked.front().time, row.time);
    plain += row.role == "plain data parallelism";
  }
  EXPECT_EQ(plain, 1U);
  std::ostringstream page;
  write_html(document_of(report), page);
  EXPECT_NE(page.str().find("Layouts"), std::string::npos);
}

TEST(Plan, OfATraceSearchesOtherSchedulesOnlyIfAsked) {
  PlanQuestion question = recorded_question();
  question.top = 1000;
  const auto has = [&](std::string_view schedule) {
    return std::ranges::any_of(plan(question).ranked, [&](const PlanRow& row) {
      return row.layout.find(schedule) != row.layout.npos;
    });
  };
  EXPECT_TRUE(has("schedule=gpipe"));
  EXPECT_FALSE(has("schedule=zb_h1"));
  question.all_schedules = true;
  EXPECT_TRUE(has("schedule=zb_h1"));
}

TEST(Plan, MoreRecordedBatchesTakeLonger) {
  PlanQuestion question = recorded_question();
  const auto plain = [&](std::int64_t batches) {
    question.global_batch = batches;
    const PlanReport report = plan(question);
    const auto found =
        std::ranges::find(report.ranked, std::string("plain data parallelism"), &PlanRow::role);
    return static_cast<double>(found->time.count());
  };
  EXPECT_NEAR(plain(16) / plain(4), 4, .3);
}

TEST(Plan, OfATraceHasPrices) {
  const Folder folder;
  PlanQuestion question = recorded_question();
  question.training.prices = folder.write("p.json", R"({"prices": {"a100": "2 EUR/h"}})");
  question.training.steps = "10k";
  const PlanReport report = plan(question);
  EXPECT_EQ(report.currency, "EUR");
  for (const PlanRow& row : report.ranked) {
    const double hours = static_cast<double>(row.time.count()) * 1e-9 * 1000 / 3600;
    EXPECT_NEAR(*row.cost, 2 * hours * static_cast<double>(row.gpus), 1e-9);
  }
  EXPECT_NEAR(report.training->price->point, 10 * *report.ranked.front().cost, 1e-9);
  question.training.steps.clear(), question.training.tokens = "1B";
  EXPECT_TRUE(refusal_of(question).starts_with("--tokens: must not be given where"));
}

TEST(Plan, SaysWhatATraceCannotTell) {
  PlanQuestion question = recorded_question();
  question.fix = "tp=2";
  EXPECT_EQ(refusal_of(question),
            "--fix: is for described models, and " + question.model + " is a trace");
  question = recorded_question(), question.strategy = "dapple";
  EXPECT_EQ(refusal_of(question),
            "--strategy: is for described models, and " + question.model + " is a trace");
  question = recorded_question(), question.memory = Bytes{1'000'000};
  EXPECT_TRUE(refusal_of(question).starts_with("no layout is left: memory took the last "));
  question = recorded_question(), question.gradients = Bytes{};
  const Folder folder;
  question.model = without_optimizer(folder / "silent.ftrace");
  EXPECT_EQ(refusal_of(question),
            "--gradient-bytes: must be given, as the trace does not show its gradients");
}

/// Groups of measured layouts of one model on the same number of GPUs: is the layout that is
/// predicted to be fastest among the fastest measured?
TEST(Plan, RegretOnMeasuredGroups) {
  if (std::getenv("FORETRACE_CORPUS") == nullptr) GTEST_SKIP() << "needs FORETRACE_CORPUS";
  const std::string folder = std::string(std::getenv("FORETRACE_CORPUS")) + "/../data/";
  const char* megatron = "precision=fp16,recompute=full,overlap=false,fused_attention=false";
  const char* bloom = "zero=1,overlap=false,fused_attention=false";
  struct Source {
    const char *table, *only, *layout;
  };
  std::size_t groups = 0, close = 0, late = 0, misfits = 0;
  for (const Source& source : {Source{"vtrain/single_node.csv", "", megatron},
                               Source{"vtrain/multi_node.csv", "", megatron},
                               Source{"measured/training.csv", "source=bigscience", bloom},
                               Source{"measured/training.csv", "source=ccl-bench", "zero=1"},
                               Source{"measured/training.csv", "source=llm-foundry", "zero=3"}}) {
    GenerateQuestion question{.machine = source.only[0] == '\0' ? "dgx-a100" : "",
                              .layout = source.layout};
    question.against = question.calibrate = folder + source.table;
    if (source.only[0] != '\0') question.only = {source.only};
    std::map<std::string, std::vector<GeneratedRow>> by_group;
    for (const GeneratedRow& row : generate_step(question).rows) {
      std::string key = row.name.substr(0, row.name.find(' '));
      std::int64_t devices = 1;
      std::istringstream words(row.name);
      for (std::string word; words >> word;) {
        for (const char* name : {"tp", "pp", "dp", "cp"}) {
          if (word.starts_with(name)) devices *= std::atoll(word.c_str() + 2);
        }
        if (word.starts_with("gb")) key += " " + word;
      }
      if (!row.was_fitted) by_group[key + " on " + std::to_string(devices)].push_back(row);
    }
    for (const auto& [name, rows] : by_group) {
      // Rows with the same prediction are one layout that was measured several times.
      std::map<Nanoseconds, std::vector<double>> layouts;
      for (const GeneratedRow& row : rows) {
        std::vector<double>& measured = layouts[row.runs_out ? Nanoseconds::max() : row.time];
        if (row.measured) measured.push_back(static_cast<double>(row.measured->count()));
      }
      if (layouts.size() < 2) continue;
      ++groups;
      if (layouts.begin()->second.empty()) {
        ++misfits;
        continue;
      }
      const double chosen = median(layouts.begin()->second);
      double best = chosen;
      for (const auto& [predicted, measured] : layouts) {
        if (!measured.empty()) best = std::min(best, median(measured));
      }
      close += chosen <= 1.03 * best, late += chosen > 1.1 * best;
      if (chosen > 1.1 * best)
        std::cout << name << ": " << chosen / best - 1 << " behind the best of " << rows.size()
                  << " rows\n";
    }
  }
  EXPECT_EQ(misfits, 0U);
  EXPECT_GE(close * 10, groups * 8);
  // The groups that are more than 10 % off: V100s of BLOOM's first runs, which their authors call
  // accurate to 40 %; a run of torchtitan timed under a profiler, where launches take most of the
  // time; and two of vTrain's, perhaps because of waves of larger tiles than the price assumes.
  EXPECT_LE(late * 30, groups);
}

}  // namespace
}  // namespace foretrace

#include "foretrace/question/serve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/core.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "support/folder.h"
#include "support/page.h"

namespace foretrace {
namespace {

ServeQuestion llama_question() {
  ServeQuestion question;
  question.model = "llama3-8b", question.machine = "dgx-h100";
  question.load = "concurrency=8,requests=40,input=512,output=64";
  return question;
}

std::string serve_failure(const ServeQuestion& question) {
  try {
    serve_model(question);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ServeModel, PointsAreThoseOfQuestionsOfTheirOwn) {
  ServeQuestion question = llama_question();
  question.vary = "concurrency=1,8,32";
  const ServingReport report = serve_model(question);
  ASSERT_EQ(report.points.size(), 3U);
  question.vary.clear();
  const ServingReport alone = serve_model(question);
  EXPECT_EQ(report.points[1].latency("ttft")->mean, alone.points[0].latency("ttft")->mean);
  EXPECT_EQ(report.points[1].steps, alone.points[0].steps);
  EXPECT_LT(report.points[0].output_tokens_per_second, report.points[2].output_tokens_per_second);
}

TEST(ServeModel, APageDrawsLatencyOverThroughput) {
  ServeQuestion question = llama_question();
  question.vary = "concurrency=1,8,32";
  const std::string html = html_of(serve_model(question));
  const auto line = [&](const std::string& name) {
    const std::size_t end = html.find("\"><title>" + name + "</title></polyline>");
    const std::size_t begin = html.rfind("points=\"", end) + std::string("points=\"").size();
    return end == std::string::npos ? "" : html.substr(begin, end - begin);
  };
  // More requests at a time: more tokens, and each of them later. The first is at the left.
  for (const char* name : {"TTFT", "TTFT p99", "TPOT", "TPOT p99"}) {
    std::istringstream points(line(name));
    double x = 0, y = 0, before = -1;
    char comma = 0;
    int count = 0;
    for (; points >> x >> comma >> y; ++count) {
      EXPECT_GT(x, before) << name;
      before = x;
    }
    EXPECT_EQ(count, 3) << name;
  }
}

TEST(ServeModel, PointsThatOneThingBoundsAreOneLine) {
  ServeQuestion question = llama_question();
  question.vary = "concurrency=1..12/+1";
  ServingReport report = serve_model(question);
  ASSERT_EQ(report.points.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) {
    report.points[i].bound =
        fmt::format("{} takes {} % of the time", i < 9 ? "this" : "that", 90 - i);
    report.points[i].is_covered = i != 11;
  }
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(
      text.str().find("bound by:\n"
                      "  - concurrency=1 to concurrency=9: this takes 90 to 82 % of the time "
                      "(covered)\n"
                      "  - concurrency=10 to concurrency=11: that takes 81 to 80 % of the time "
                      "(covered)\n"
                      "  - concurrency=12: that takes 79 % of the time (extrapolated)\n"),
      std::string::npos)
      << text.str();
}

// The ends of the interval decide: at the upper end it still holds, below the typical it does not.
TEST(ServeModel, AnSloIsMetTypicallyOrMissed) {
  ServeQuestion question = llama_question();
  const LatencyFigure first = *serve_model(question).points[0].latency("ttft");
  const auto asked = [&](Nanoseconds limit) {
    question.slo = fmt::format("tpot_p99=10s,ttft_mean={}ns", limit.count());
    const ServingPoint point = serve_model(question).points[0];
    EXPECT_EQ(point.slo.size(), 2U);
    EXPECT_EQ(point.slo[0].name, "ttft_mean");
    EXPECT_EQ(point.slo[0].typical, first.mean);
    EXPECT_EQ(point.slo[0].interval, *first.interval);
    const nlohmann::json json = to_json(serve_model(question))["points"][0]["slo"];
    EXPECT_EQ(json["figures"]["ttft_mean"]["limit_ns"], limit.count());
    EXPECT_EQ(json["verdict"], to_text(verdict_of(point.slo)));
    return verdict_of(point.slo);
  };
  EXPECT_EQ(asked(first.interval->second), SloVerdict::meets);
  EXPECT_EQ(asked(first.interval->second - 1ns), SloVerdict::typically);
  EXPECT_EQ(asked(first.mean), SloVerdict::typically);
  EXPECT_EQ(asked(first.mean - 1ns), SloVerdict::misses);
  question.slo = "ttft=1s";
  EXPECT_NE(serve_failure(question).find("ttft_mean"), std::string::npos)
      << serve_failure(question);
}

TEST(ServeModel, AnUpperEndCanBeUnbounded) {
  ServeQuestion question = llama_question();
  question.load = "rate=18,input=1500,output=200,requests=200", question.slo = "ttft_mean=3s";
  const ServingReport report = serve_model(question);
  EXPECT_EQ(verdict_of(report.points[0].slo), SloVerdict::typically);
  const nlohmann::json json = to_json(report)["points"][0];
  EXPECT_TRUE(json["ttft"]["upper_ns"].is_null());
  EXPECT_TRUE(json["slo"]["figures"]["ttft_mean"]["upper_ns"].is_null());
  EXPECT_GT(json["ttft"]["lower_ns"], 0);
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find("to unbounded, of 3 s"), std::string::npos) << text.str();
}

TEST(ServeModel, AnswersOfOneTokenHaveNoTimePerFurtherToken) {
  ServeQuestion question = llama_question();
  question.load = "concurrency=8,requests=40,input=512,output=1";
  const ServingReport report = serve_model(question);
  const nlohmann::json json = to_json(report)["points"][0];
  EXPECT_FALSE(json["tpot"].contains("mean_ns"));
  EXPECT_TRUE(json["ttft"].contains("mean_ns"));
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find("per further token          - "), std::string::npos) << text.str();
  question.slo = "ttft_p99=1s,tpot_p99=1ms";
  EXPECT_EQ(serve_failure(question),
            "--slo: must not have tpot_p99, as all answers have one token");
}

TEST(ServeModel, EnginesDiffer) {
  ServeQuestion question = llama_question();
  std::set<Nanoseconds> means;
  for (const char* engine : {"vllm", "sglang", "trtllm"}) {
    question.engine = engine;
    means.insert(serve_model(question).points[0].latency("tpot")->mean);
  }
  EXPECT_EQ(means.size(), 3U);
}

TEST(ServeModel, ComparesWithMeasuredDeployments) {
  const std::string path = testing::TempDir() + "deployments.csv";
  std::ofstream(path)
      << "id,model,system,backend,version,mode,isl,osl,concurrency,weights,moe,tp,dp,"
         "moe_ep,ttft_ms,tpot_ms,flags\n"
         "a,Llama-3.1-8B-Instruct,h100_sxm,vllm,,agg,512,64,8,bf16,,1,1,1,50,8,\n"
         "b,Llama-3.1-8B-Instruct,h100_sxm,vllm,,disagg,512,64,8,bf16,,1,1,1,50,8,\n"
         "c,Unheard-of,h100_sxm,vllm,,agg,512,64,8,bf16,,1,1,1,50,8,\n";
  ServeQuestion question;
  question.against = path;
  const ServingReport report = serve_model(question);
  ASSERT_EQ(report.rows.size(), 1U);
  EXPECT_EQ(report.errors.size(), 2U);
  EXPECT_LT(report.errors[0].per_token, .5);
  question = llama_question();
  question.calibrate = path;
  EXPECT_NE(serve_model(question).points[0].latency("tpot")->mean,
            serve_model(llama_question()).points[0].latency("tpot")->mean);
}

TEST(ServeModel, SaysWhichReleasesItDoesNotTellApart) {
  const Folder folder;
  const auto row = [](const char* id, const char* version, int concurrency, int tpot) {
    return fmt::format(
        "{},Llama-3.1-8B-Instruct,h100_sxm,vllm,{},agg,512,64,{},bf16,,1,1,1,50,{},\n", id, version,
        concurrency, tpot);
  };
  ServeQuestion question;
  question.against = folder.write(
      "deployments.csv",
      "id,model,system,backend,version,mode,isl,osl,concurrency,weights,moe,tp,dp,moe_ep,ttft_ms,"
      "tpot_ms,flags\n" +
          row("a", "0.9", 8, 10) + row("b", "0.11", 8, 8) + row("c", "0.9", 16, 9) +
          row("d", "0.9", 16, 12) + row("e", "", 8, 20));
  const ServingReleases found = serve_model(question).releases;
  EXPECT_EQ(found.cells, 1U);
  EXPECT_EQ(found.alike, 1U);
  EXPECT_DOUBLE_EQ(found.apart, .25);
  EXPECT_EQ(found.example, "a and b");
}

TEST(ServeModel, TheBatchOverTimeHasTheMeanOfItsFigures) {
  const ServingPoint point = serve_model(llama_question()).points[0];
  double requests = 0;
  for (const BatchSample& sample : point.batch) {
    EXPECT_GE(sample.waiting, 0);
    EXPECT_LE(sample.running + sample.waiting, 8);
    requests += static_cast<double>(sample.running + sample.waiting);
  }
  EXPECT_NEAR(requests / static_cast<double>(point.batch.size()), point.concurrency, .3);
  EXPECT_EQ(point.batch.back().running, 0);
}

TEST(ServeModel, RangesHaveTheGrammarOfAllRanges) {
  ServeQuestion question = llama_question();
  question.vary = "concurrency=2..8/x2";
  const ServingReport report = serve_model(question);
  std::vector<std::string> points;
  for (const ServingPoint& point : report.points) points.push_back(point.changed);
  EXPECT_EQ(points, (std::vector<std::string>{"concurrency=2", "concurrency=4", "concurrency=8"}));
  question.vary = "concurrency=8..2";
  EXPECT_EQ(serve_failure(question), "vary: must have the smaller end first");
}

TEST(ServeModel, TokensCostWhatTheirShareOfAnHourDoes) {
  const Folder folder;
  ServeQuestion question = llama_question();
  question.load += ",range=1";
  question.prices = folder.write("p.json", R"({"prices": {"h100": "3.6 EUR/h"}})");
  const ServingPoint point = serve_model(question).points[0];
  ASSERT_TRUE(point.price);
  EXPECT_EQ(point.price->currency, "EUR");
  EXPECT_EQ(point.price->of_hour, 3.6);
  // An hour costs 3.6, a second .001, so a million tokens 1000 over the tokens of a second.
  EXPECT_DOUBLE_EQ(point.price->output.point, 1000 / point.output_tokens_per_second);
  EXPECT_DOUBLE_EQ(point.price->output.lower, 1000 / point.upper_output_tokens);
  EXPECT_DOUBLE_EQ(point.price->output.upper, 1000 / point.lower_output_tokens);
  EXPECT_DOUBLE_EQ(point.price->all.point, 1000 / point.all_tokens_per_second);
  // Prompts of 512 tokens and answers of 64.
  EXPECT_NEAR(point.price->output.upper / point.price->all.upper, 576.0 / 64, 1e-9);
  question.prices = folder.write("other.json", R"({"prices": {"b200": "3.6 EUR/h"}})");
  EXPECT_NE(serve_failure(question).find("prices: must have h100"), std::string::npos);
  question.against = "x.csv";
  EXPECT_EQ(serve_failure(question), "--prices: must not be given with --against");
}

TEST(ServeModel, EachMachineHasItsPriceInEveryForm) {
  const Folder folder;
  ServeQuestion question = llama_question();
  question.vary = "machine=dgx-h100,dgx-a100,dgx-b200";
  question.prices =
      folder.write("p.json", R"({"prices": {"h100": "4 USD/h", "a100": "1.5 EUR/h"}})");
  const ServingReport report = serve_model(question);
  EXPECT_EQ(report.points[0].price->of_hour, 4);
  EXPECT_EQ(report.points[1].price->of_hour, 1.5);
  EXPECT_FALSE(report.points[2].price);
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["points"][1]["price"]["of_a_million_output_tokens"]["point"],
            report.points[1].price->output.point);
  EXPECT_TRUE(json["points"][2]["price"].is_null());
  std::ostringstream csv, text;
  write_csv(report, csv);
  std::istringstream lines(csv.str());
  std::string line;
  for (std::int64_t heading_commas = -1; std::getline(lines, line);) {
    const auto commas = std::ranges::count(line, ',');
    if (heading_commas < 0) heading_commas = commas;
    EXPECT_EQ(commas, heading_commas) << line;
  }
  EXPECT_NE(csv.str().find(",,,,,\n"), std::string::npos) << "no price of the third";
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find(" EUR"), std::string::npos);
  EXPECT_NE(text.str().find("machine=dgx-b200 has no price"), std::string::npos) << text.str();
}

TEST(ServeModel, RefusesInOneSentence) {
  ServeQuestion question = llama_question();
  question.vary = "max_num_seq=1,2";
  EXPECT_EQ(serve_failure(question).substr(0, 42), "vary: there is no setting \"max_num_seq\"; t");
  question = llama_question(), question.engine = "vlm";
  EXPECT_EQ(serve_failure(question), "scheduler: must be one of sglang, trtllm, vllm, got \"vlm\"");
  question = llama_question(), question.model.clear();
  EXPECT_EQ(serve_failure(question),
            "serve: must have a model and a machine, such as serve llama3-8b --machine dgx-h100");
  question = llama_question(), question.load = "rate=5,burst=true";
  EXPECT_EQ(serve_failure(question), "load: must be one of rate, burst and file");
}

}  // namespace
}  // namespace foretrace

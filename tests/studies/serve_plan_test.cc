#include "studies/serve/serve_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "document/document.h"
#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// Half of the 80 % interval of TTFT and TPOT by vLLM, as logarithms (errors.def), half as wide
/// again for loads that are not closed.
constexpr double kFirstError = .396 * 1.5, kTokenError = .148 * 1.5;

ServePlanQuestion llama8b_plan() {
  ServePlanQuestion question;
  question.served.model = "llama3-8b", question.served.machine = "dgx-h100:hosts=1";
  question.served.load = "rate=20,requests=60,input=1000,output=200";
  question.served.cache = "bf16";
  question.slo = "ttft_p99=10s";
  return question;
}

std::string refusal_of_plan(const ServePlanQuestion& question) {
  try {
    plan_serve(question);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

double seconds(Nanoseconds time) { return static_cast<double>(time.count()) * 1e-9; }

std::string in_seconds(Nanoseconds time) {
  return std::to_string(time.count() / 1'000'000'000) + "." +
         std::to_string(1'000'000'000 + time.count() % 1'000'000'000).substr(1) + "s";
}

std::size_t left_out(const ServePlanReport& report, const std::string& why) {
  for (const auto& one : report.left_out) {
    if (one.why.starts_with(why)) return one.count;
  }
  return 0;
}

TEST(PlanServe, LeavesOutPlacementsWhoseWeightsAreLargerThanMemory) {
  ServePlanQuestion question = llama8b_plan();
  question.served.model = "llama3-70b", question.slo = "ttft_p99=100s";
  question.served.load = "rate=1,requests=40,input=500,output=50";
  // 70,553,706,496 parameters of 2 bytes, divided by 1, 2, 4 and 8, in 92 % of 85.9 GB.
  std::size_t too_large = 0;
  for (const double tensor : {1, 2, 4, 8})
    too_large += 70'553'706'496. * 2 / tensor > .92 * 85.9e9 ? 1U : 0U;
  const ServePlanReport report = plan_serve(question);
  EXPECT_EQ(report.placements, 4U);
  EXPECT_EQ(left_out(report, "do not fit"), too_large);
  EXPECT_EQ(report.ranked.front().gpus, 2);
  question.served.cache = "any";
  EXPECT_EQ(plan_serve(question).placements, 8U);
  EXPECT_EQ(left_out(plan_serve(question), "do not fit"), 2 * too_large);
}

/// The largest share of its limits that a point's p99 takes.
double share_of(const ServingPoint& point, double first, double per_token) {
  return std::max(seconds(point.latency("ttft")->p99) / first,
                  seconds(point.latency("tpot")->p99) / per_token);
}

/// All ways to serve llama3-8b on so many GPUs, one after the other, whose typical times are within
/// limits: "tensor,replicas,prefill".
std::set<std::string> within_limits(ServeQuestion asked, std::int64_t gpus, double first,
                                    double per_token) {
  std::set<std::string> layouts;
  const auto try_limits = [&] {
    for (const int sequences : {8, 16, 32, 64, 128, 256, 512, 1024}) {
      for (const int tokens : {1024, 2048, 4096, 8192, 16384}) {
        asked.engine = "vllm:max_num_seqs=" + std::to_string(sequences) +
                       ",max_num_batched_tokens=" + std::to_string(tokens);
        try {
          if (share_of(serve_model(asked).points.front(), first, per_token) <= 1) return true;
        } catch (const Error&) {
        }
      }
    }
    return false;
  };
  for (const std::int64_t tensor : {1, 2, 4, 8}) {
    for (std::int64_t prefill = 0; tensor <= gpus && prefill < gpus / tensor; ++prefill) {
      if (gpus % tensor != 0) continue;
      asked.tensor = tensor, asked.prefill_replicas = prefill;
      asked.replicas = gpus / tensor - prefill;
      if (try_limits())
        layouts.insert(std::to_string(tensor) + "," + std::to_string(asked.replicas) + "," +
                       std::to_string(prefill));
    }
  }
  return layouts;
}

TEST(PlanServe, NothingCheaperIsWithinTheLimits) {
  ServePlanQuestion question = llama8b_plan();
  question.slo = "ttft_p99=1s,tpot_p99=9ms", question.top = 100;
  const ServePlanReport report = plan_serve(question);
  ASSERT_EQ(report.ranked.front().verdict, SloVerdict::meets);
  ASSERT_EQ(report.ranked.front().gpus, 4);
  std::set<std::string> found, expected;
  for (const ServePlanRow& row : report.ranked) {
    if (row.gpus >= 4) continue;
    EXPECT_EQ(row.verdict, SloVerdict::typically);
    found.insert(std::to_string(row.asked.tensor) + "," + std::to_string(row.asked.replicas) + "," +
                 std::to_string(row.asked.prefill_replicas));
  }
  for (std::int64_t gpus = 1; gpus < 4; ++gpus)
    expected.merge(within_limits(question.served, gpus, 1, .009));
  EXPECT_EQ(found, expected);
  EXPECT_FALSE(expected.empty());
}

TEST(PlanServe, ChangesLimitsOfTheEngineWhereItsOwnMiss) {
  ServePlanQuestion question = llama8b_plan();
  question.gpus = {1}, question.slo = "tpot_p99=12.8ms";
  const ServePlanRow row = plan_serve(question).ranked.front();
  EXPECT_LT(row.max_tokens, 8192);
  ServeQuestion own = row.asked;
  own.engine = "vllm";
  EXPECT_GT(serve_model(own).points.front().latency("tpot")->p99, row.figures[0].limit);
  EXPECT_LE(row.figures[0].typical, row.figures[0].limit);
}

TEST(PlanServe, ServeAnswersTheSameForTheFirst) {
  ServePlanQuestion question = llama8b_plan();
  question.slo = "tpot_p90=20ms,ttft_mean=5s";
  const ServePlanRow row = plan_serve(question).ranked.front();
  const ServingPoint point = serve_model(row.asked).points.front();
  EXPECT_EQ(row.figures[0].name, "ttft_mean");
  EXPECT_EQ(row.figures[0].typical, point.latency("ttft")->mean);
  EXPECT_EQ(row.figures[0].interval, *point.latency("ttft")->interval);
  EXPECT_EQ(row.figures[1].typical, point.latency("tpot")->p90);
  EXPECT_EQ(row.point.lower_output_tokens, point.lower_output_tokens);
  EXPECT_EQ(point.gpus, row.gpus);
}

TEST(PlanServe, VerdictsFollowTheUpperEnd) {
  ServePlanQuestion question = llama8b_plan();
  question.served.load = "rate=2,requests=60,input=1000,output=200";
  question.gpus = {1}, question.tensor = {1};
  question.served.engine = "vllm:max_num_seqs=256,max_num_batched_tokens=8192";
  question.slo = "tpot_p99=1s,ttft_p99=10s";
  const ServePlanRow loose = plan_serve(question).ranked.front();
  const SloFigure first = loose.figures[0], per_token = loose.figures[1];
  EXPECT_GE(seconds(first.interval.second), seconds(first.typical) * std::exp(kFirstError) - 1e-6);
  EXPECT_LE(seconds(first.interval.first), seconds(first.typical) / std::exp(kFirstError) + 1e-6);
  EXPECT_GE(seconds(per_token.interval.second),
            seconds(per_token.typical) * std::exp(kTokenError) - 1e-6);
  const auto verdict_with = [&](Nanoseconds limit) {
    question.slo = "tpot_p99=" + in_seconds(limit);
    return plan_serve(question).ranked.front().verdict;
  };
  EXPECT_EQ(verdict_with(per_token.interval.second), SloVerdict::meets);
  EXPECT_EQ(verdict_with(per_token.interval.second - 1ns), SloVerdict::typically);
  EXPECT_EQ(verdict_with(per_token.typical), SloVerdict::typically);
  question.slo = "tpot_p99=" + in_seconds(per_token.typical - 1ns);
  EXPECT_NE(refusal_of_plan(question).find("1.00 times its limit"), std::string::npos);
}

TEST(PlanServe, PriceIsThatOfTheGpusForTheOfferedTokens) {
  Folder folder;
  ServePlanQuestion question = llama8b_plan();
  question.served.load = "rate=2,requests=60,input=1000,output=100,range=1";
  question.served.prices = folder.write("p.json", R"({"prices": {"h100": "2 EUR/h"}})");
  const ServePlanReport report = plan_serve(question);
  ASSERT_EQ(report.ranked.front().gpus, 1);
  EXPECT_NEAR(*report.ranked.front().price, 2. / 3600 / (2 * 100) * 1e6, 1e-9);
  EXPECT_EQ(report.currency, "EUR");
}

TEST(PlanServe, ANarrowerCacheIsTakenOnlyWhereItHelps) {
  ServePlanQuestion question = llama8b_plan();
  question.served.load = "concurrency=32,requests=80,input=4000,output=200";
  question.served.engine = "vllm:max_num_seqs=256,max_num_batched_tokens=8192";
  question.gpus = {1}, question.slo = "tpot_p99=1s";
  const auto end_with = [&](const char* cache) {
    question.served.cache = cache;
    return plan_serve(question).ranked.front().figures.front().interval.second;
  };
  const Nanoseconds half = end_with("bf16"), fp8 = end_with("fp8");
  ASSERT_LT(fp8, half);
  const auto cache_within = [&](Nanoseconds limit) {
    question.served.cache = "any", question.slo = "tpot_p99=" + in_seconds(limit);
    return plan_serve(question).ranked.front().asked.cache;
  };
  EXPECT_EQ(cache_within(half), "bf16");
  EXPECT_EQ(cache_within(half - 1ns), "fp8");
  EXPECT_EQ(cache_within(fp8), "fp8");
}

TEST(PlanServe, FindsExpertsOverSeveralHosts) {
  ServePlanQuestion question = llama8b_plan();
  question.served.model = "deepseek-v3", question.served.machine = "dgx-h200";
  question.served.weights = "fp8_block";
  question.served.load = "rate=3,requests=40,input=500,output=50";
  question.gpus = {16}, question.slo = "ttft_p99=100s", question.top = 1000;
  const ServePlanReport report = plan_serve(question);
  bool has_experts = false, has_two_hosts = false;
  for (const ServePlanRow& row : report.ranked) {
    const ServeQuestion& asked = row.asked;
    const std::int64_t devices = asked.tensor * asked.data;
    EXPECT_EQ(16 % devices, 0);
    EXPECT_TRUE(asked.expert == 1 || asked.expert == devices);
    has_experts |= asked.expert == 16, has_two_hosts |= devices == 16;
  }
  EXPECT_TRUE(has_experts && has_two_hosts);
}

std::string launch_of(const ServeQuestion& asked, bool has_experts,
                      std::vector<std::string>& not_written) {
  ServePlanReport report;
  report.ranked.push_back({.asked = asked});
  add_launch(8, has_experts, report);
  not_written = report.not_written;
  return report.launch;
}

TEST(PlanServe, WritesTheFlagsOfEachEngine) {
  std::vector<std::string> rest;
  ServeQuestion asked;
  asked.tensor = 2, asked.replicas = 3, asked.cache = "bf16";
  asked.engine = "vllm:prefix_hits=0.3,max_num_seqs=64,max_num_batched_tokens=2048";
  EXPECT_EQ(launch_of(asked, false, rest),
            "vllm serve MODEL --tensor-parallel-size 2 --data-parallel-size 3 "
            "--max-num-batched-tokens 2048 --max-num-seqs 64 --kv-cache-dtype auto");
  EXPECT_EQ(rest, std::vector<std::string>{"prefix_hits=0.3: it has no such option"});
  asked.tensor = 1, asked.data = 16, asked.expert = 16, asked.replicas = 2, asked.cache = "fp8";
  asked.prefill_replicas = 1, asked.weights = "fp8", asked.engine = "vllm", asked.utilization = .8;
  EXPECT_EQ(launch_of(asked, true, rest),
            "vllm serve MODEL --tensor-parallel-size 1 --data-parallel-size 16 "
            "--enable-expert-parallel --kv-cache-dtype fp8 --gpu-memory-utilization 0.8");
  EXPECT_EQ(rest, (std::vector<std::string>{
                      "replicas=2: so many servers behind a router",
                      "prefill_replicas=1: more servers, which compute prompts and send their "
                      "cache on",
                      "hosts=2: how the hosts of a server find each other",
                      "weights=fp8: MODEL must be a checkpoint in this precision"}));
  asked = {};
  asked.tensor = 2, asked.data = 4, asked.expert = 8, asked.cache = "fp4";
  asked.engine = "sglang:max_num_seqs=256,max_num_batched_tokens=4096";
  EXPECT_EQ(launch_of(asked, true, rest),
            "python -m sglang.launch_server --model-path MODEL --tp-size 8 --dp-size 4 "
            "--enable-dp-attention --ep-size 8 --chunked-prefill-size 4096 "
            "--max-running-requests 256");
  EXPECT_EQ(rest, std::vector<std::string>{"cache=fp4: no option is known"});
  asked.data = 1, asked.expert = 2, asked.cache = "fp8";
  asked.engine = "trtllm:max_num_seqs=256,max_num_batched_tokens=4096";
  EXPECT_EQ(launch_of(asked, true, rest),
            "trtllm-serve MODEL --extra_llm_api_options FILE, where FILE has "
            "tensor_parallel_size: 2, moe_expert_parallel_size: 2, max_num_tokens: 4096, "
            "max_batch_size: 256, kv_cache_config.dtype: fp8");
}

TEST(PlanServe, EveryFormHasTheRankedConfigurations) {
  ServePlanQuestion question = llama8b_plan();
  question.slo = "ttft_p99=1s,tpot_p99=9ms", question.top = 2;
  const ServePlanReport report = plan_serve(question);
  ASSERT_EQ(report.ranked.size(), 2U);
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["ranked"][0]["slo"], "meets");
  EXPECT_EQ(json["ranked"][0]["figures"]["ttft_p99"]["limit_ns"], 1'000'000'000);
  // The others are not ranked, but the best with each smaller number of GPUs is there.
  ASSERT_EQ(json["fewer_gpus"].size(), 3U);
  EXPECT_EQ(json["fewer_gpus"][0]["gpus"], 3);
  EXPECT_EQ(json["fewer_gpus"][0]["slo"], "typically");
  EXPECT_EQ(json["fewer_gpus"][2]["gpus"], 1);
  EXPECT_EQ(json["fewer_gpus"][2]["slo"], "misses");
  std::ostringstream csv;
  write_csv(report, csv);
  const std::string rows = csv.str();
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 3);
  EXPECT_EQ(rows.substr(rows.find('\n') + 1, 2), "4,");
}

TEST(PlanServe, RefusesInOneSentence) {
  const auto refused = [](auto change) {
    ServePlanQuestion question = llama8b_plan();
    change(question);
    return refusal_of_plan(question);
  };
  EXPECT_EQ(refused([](auto& q) { q.slo.clear(); }),
            "--slo: must be given, such as ttft_p99=2s,tpot_p99=50ms");
  EXPECT_TRUE(refused([](auto& q) { q.slo = "ttft_p95=1s"; })
                  .starts_with("--slo: there is no setting \"ttft_p95\"; the settings are "
                               "end_to_end_mean, end_to_end_p50, end_to_end_p90, end_to_end_p99"));
  EXPECT_EQ(
      refused([](auto& q) { q.served.load = "rate=500,input=1000,output=200"; }).substr(0, 56),
      "--load: rate must be below the capacity of 8 GPUs, about");
  EXPECT_EQ(
      refused([](auto& q) { q.served.load = "rate=1,input=131000,output=100,range=1"; }),
      "--load: input and output of a request must be at most the 131072 tokens that llama3-8b "
      "serves, got 131000 and 100");
  const std::string alone = refused([](auto& q) { q.slo = "tpot_p99=1ms"; });
  EXPECT_NE(alone.find("even with one request at a time"), std::string::npos) << alone;
  EXPECT_NE(alone.find("tensor 8"), std::string::npos) << alone;
  const std::string loaded = refused([](auto& q) { q.slo = "tpot_p99=12ms", q.gpus = {1}; });
  EXPECT_NE(loaded.find("; more GPUs or a lower load would help"), std::string::npos) << loaded;
  EXPECT_EQ(refused([](auto& q) { q.served.model = "deepseek-v3", q.gpus = {8}; }).substr(0, 75),
            "--gpus: deepseek-v3 fits on no number of GPUs of dgx-h100:hosts=1 up to 8, ");
  EXPECT_EQ(refused([](auto& q) { q.gpus = {3}, q.tensor = {2}; }),
            "--gpus: must have a number that copies of the model fill, with a capacity above the "
            "load; none of those given has");
  EXPECT_EQ(refused([](auto& q) { q.served.load = "concurrency=4000"; }),
            "--load: must have at most 20,000 requests, as each configuration replays all, got "
            "40,000");
  EXPECT_EQ(refused([](auto& q) { q.served.table = "steps.csv"; }),
            "--tensor: must be one number with --table, whose steps are those of one placement");
}

}  // namespace
}  // namespace foretrace

#include "serve/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "foretrace/error.h"

namespace foretrace::serve {
namespace {

/// A constant, and parts for prompts and for context.
class Affine final : public StepPrice {
 public:
  Affine(double base, double prompt, double context)
      : base_(base), prompt_(prompt), context_(context) {}
  StepTime of(const StepWork& work) const override {
    return {.ns = base_ + prompt_ * work.prompt_tokens + context_ * work.context};
  }

 private:
  double base_, prompt_, context_;
};

Fleet fleet_of(const std::string& scheduler, std::int64_t blocks = 100'000) {
  EngineSettings settings;
  settings.scheduler = scheduler, settings.blocks = blocks, settings.overlapped = false;
  return {.engine = with_defaults(settings)};
}

double mean_first(const ServedLoad& run) {
  double sum = 0;
  for (const RequestRecord& record : run.records)
    sum += static_cast<double>((record.first - record.sent).count());
  return sum / static_cast<double>(run.records.size());
}

std::string failure(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Loop, OneRequestTakesItsPromptAndThenAStepForEachToken) {
  for (const char* scheduler : {"vllm", "sglang", "trtllm"}) {
    const ServedLoad run =
        replay({{.input = 100, .output = 11}}, 1, fleet_of(scheduler), Affine(1000, 10, 1));
    ASSERT_EQ(run.records.size(), 1U);
    EXPECT_EQ(run.records[0].first, 2000ns) << scheduler;
    // Ten steps with 101 .. 110 tokens.
    EXPECT_EQ(run.records[0].end, 2000ns + 10'000ns + 1055ns) << scheduler;
    EXPECT_EQ(run.steps, 11) << scheduler;
  }
}

TEST(Loop, SglangStopsDecodingForPromptsAndVllmDoesNot) {
  const std::vector<Request> requests = {{.input = 10, .output = 5}, {1500ns, 10, 5}};
  const ServedLoad vllm = replay(requests, 0, fleet_of("vllm"), Affine(1000, 0, 0));
  EXPECT_EQ(vllm.records[0].end, 5000ns);
  const ServedLoad sglang = replay(requests, 0, fleet_of("sglang"), Affine(1000, 0, 0));
  EXPECT_EQ(sglang.records[0].end, 6000ns);
}

TEST(Loop, AnArrivalCutsAJump) {
  const ServedLoad run = replay({{.input = 10, .output = 100}, {50'500ns, 10, 1}}, 0,
                                fleet_of("vllm"), Affine(1000, 0, 0));
  EXPECT_EQ(run.records[1].started, 51'000ns);
  EXPECT_EQ(run.records[1].first, 52'000ns);
  EXPECT_EQ(run.records[0].end, 100'000ns);
}

TEST(Loop, OverlappedStepsKeepAnEndedRequestForOneMore) {
  Fleet fleet = fleet_of("vllm");
  fleet.engine.max_sequences = 1;
  const std::vector<Request> requests = {{.input = 10, .output = 2}, {.input = 10, .output = 2}};
  EXPECT_EQ(replay(requests, 0, fleet, Affine(1000, 0, 0)).records[1].started, 2000ns);
  fleet.engine.max_sequences = 2, fleet.engine.overlapped = true;
  const ServedLoad run = replay(requests, 1, fleet, Affine(1000, 0, 0));
  EXPECT_EQ(run.records[1].started, 2000ns);
}

TEST(Loop, TokensAreConserved) {
  for (const char* scheduler : {"vllm", "sglang", "trtllm"}) {
    Load load;
    load.concurrency = 40, load.requests = 300, load.range = .3;
    load.input = 700, load.output = 90;
    const auto requests = requests_of(load);
    Fleet fleet = fleet_of(scheduler);
    const ServedLoad run = replay(requests, load.concurrency, fleet, Affine(1000, 5, 1));
    std::int64_t gaps = 0, outputs = 0;
    double computed = 0;
    for (const Gap& gap : run.gaps) gaps += gap.count;
    for (const Request& request : requests)
      outputs += request.output,
          computed += static_cast<double>(request.input + request.output - 1);
    EXPECT_EQ(gaps, outputs - 300) << scheduler;
    EXPECT_EQ(run.tokens_computed, computed) << scheduler;
  }
}

TEST(Loop, NoTokenIsLostWhenRequestsArePreempted) {
  for (const char* scheduler : {"vllm", "sglang", "trtllm"}) {
    Load load;
    load.concurrency = 30, load.requests = 60, load.input = 200, load.output = 300, load.range = 1;
    Fleet fleet = fleet_of(scheduler);
    fleet.engine.blocks = 2500 / fleet.engine.block, fleet.engine.reserve = "next";
    fleet.engine.conservativeness = .05;
    const ServedLoad run = replay(requests_of(load), load.concurrency, fleet, Affine(1000, 5, 1));
    std::int64_t gaps = 0;
    for (const Gap& gap : run.gaps) gaps += gap.count;
    EXPECT_EQ(gaps, 60 * 299) << scheduler;
    EXPECT_GT(run.preemptions, 0) << scheduler;
  }
}

TEST(Loop, ACacheThatIsExactlyFullPreemptsNobody) {
  Fleet fleet = fleet_of("vllm", 16);  // Two requests of 128 tokens in blocks of 16.
  const std::vector<Request> requests(2, {.input = 64, .output = 65});  // The last is not kept.
  const ServedLoad full = replay(requests, 0, fleet, Affine(1000, 0, 0));
  EXPECT_EQ(full.peak_used, 1);
  EXPECT_EQ(full.preemptions, 0);
  fleet.engine.blocks = 15;
  EXPECT_EQ(replay(requests, 0, fleet, Affine(1000, 0, 0)).preemptions, 1);
}

TEST(Loop, WaitingIsThatOfAQueueAtLowLoad) {
  // M/D/1: the mean wait is load * service / (2 (1 - load)).
  Fleet fleet = fleet_of("vllm");
  fleet.engine.max_sequences = 1;
  for (const double load : {.1, .3}) {
    Load arrivals;
    arrivals.rate = load * 1e6, arrivals.requests = 300'000;
    arrivals.input = 10, arrivals.output = 1;
    const ServedLoad run = replay(requests_of(arrivals), 0, fleet, Affine(1000, 0, 0));
    EXPECT_NEAR(mean_first(run), 1000 + 1000 * load / (2 * (1 - load)), 2);
    const double wait = mean_first(run) - 1000, expected = 1000 * load / (2 * (1 - load));
    EXPECT_NEAR(wait / expected, 1, .02);
  }
}

TEST(Loop, MoreLoadNeverLowersTheMeanTimeToTheFirstToken) {
  for (const char* scheduler : {"vllm", "sglang", "trtllm"}) {
    double before = 0;
    for (const double rate : {1e3, 1e4, 3e4, 6e4, 9e4}) {
      Load load;
      load.rate = rate, load.requests = 500, load.input = 100, load.output = 20;
      const double mean =
          mean_first(replay(requests_of(load), 0, fleet_of(scheduler), Affine(1000, 100, 0)));
      EXPECT_GE(mean, before) << scheduler << rate;
      before = mean;
    }
  }
}

TEST(Loop, TheFirstChunkHasTheTokensOfTheStreamingInterval) {
  Fleet fleet = fleet_of("sglang");
  fleet.engine.stream = 30;
  const Affine price(1000, 10, 0);
  const ServedLoad served = replay({{.input = 100, .output = 200}}, 1, fleet, price);
  EXPECT_EQ(served.records[0].first, 2000ns + 29'000ns);
  EXPECT_EQ(served.records[0].end, 2000ns + 199'000ns);
  const ServedLoad brief = replay({{.input = 100, .output = 5}}, 1, fleet, price);
  EXPECT_EQ(brief.records[0].first, brief.records[0].end);
}

TEST(Loop, TwoReplicasShareTheLoad) {
  Fleet fleet = fleet_of("vllm");
  const std::vector<Request> requests(8, {.input = 10, .output = 10});
  fleet.engine.max_sequences = 1;
  const Nanoseconds one = replay(requests, 8, fleet, Affine(1000, 0, 0)).end;
  for (const bool least_busy : {true, false}) {
    fleet.replicas = 2, fleet.least_busy = least_busy;
    EXPECT_EQ(replay(requests, 8, fleet, Affine(1000, 0, 0)).end * 2, one);
  }
}

TEST(Loop, EachFrontEndTakesOneRequestAfterTheOther) {
  Fleet fleet = fleet_of("vllm");
  fleet.front = {.constant = 100ns, .each = 1000ns, .token_ns = 10};
  const std::vector<Request> requests(8, {.input = 10, .output = 1});
  for (const std::int64_t count : {1, 2, 4}) {
    fleet.front.count = count;
    const ServedLoad run = replay(requests, 0, fleet, Affine(1, 0, 0));
    EXPECT_EQ(run.records[7].started, Nanoseconds{8 / count * 1100 + 100}) << count;
    EXPECT_EQ(run.front_ns, 8 * 1100);
  }
}

TEST(Loop, PromptsApartPassTheirCacheOn) {
  Fleet fleet = fleet_of("vllm");
  fleet.prefill_replicas = 1, fleet.prefill_engine = fleet.engine;
  fleet.transfer = [](std::int64_t tokens) { return Nanoseconds{tokens * 7}; };
  const ServedLoad run = replay({{.input = 100, .output = 11}}, 1, fleet, Affine(1000, 10, 0));
  EXPECT_EQ(run.records[0].first, 2000ns);
  EXPECT_EQ(run.records[0].end, 2000ns + 700ns + 10'000ns);
}

TEST(Loop, SteadyDecodingIsFewJumps) {
  const std::vector<Request> requests(1000, {.input = 10, .output = 1'000'000});
  Fleet fleet = fleet_of("vllm", 100'000'000);
  const ServedLoad run = replay(requests, 0, fleet, Affine(1000, 0, 1e-6));
  EXPECT_EQ(run.steps, 1'000'001);  // Prompts of 8192 tokens fit in the first step.
  EXPECT_LT(run.gaps.size(), 100U);
}

TEST(Requests, RefusesWhatNoEngineCanRun) {
  Fleet fleet = fleet_of("vllm", 10);
  const Affine price(1000, 0, 0);
  EXPECT_EQ(
      failure([&] { replay({{.input = 160, .output = 1}}, 1, fleet, price); }),
      "cache: must hold one request of 161 tokens, 11 blocks of 16 tokens, but has 10 blocks");
  fleet.engine.max_length = 50;
  EXPECT_EQ(failure([&] { replay({{.input = 50, .output = 1}}, 1, fleet, price); }),
            "max_model_len: must be at least the request's 51 tokens, got 50");
  Fleet whole = fleet_of("trtllm");
  EXPECT_EQ(failure([&] { replay({{.input = 9000, .output = 1}}, 1, whole, price); }),
            "max_num_batched_tokens: must hold a prompt of 9000 tokens while chunked_prefill is "
            "off, got 8192");
  EXPECT_EQ(failure([&] { replay({{.input = 0, .output = 1}}, 1, fleet, price); }),
            "request 0: must have at least 1 token of input and of output, got 0 and 1");
  EXPECT_EQ(failure([&] {
              replay({{5ns, 1, 1}, {4ns, 1, 1}}, 0, fleet, price);
            }),
            "request 1: requests must be sorted by arrival");
}

TEST(Requests, LastOfARateLeavesAtItsTime) {
  Load load;
  load.rate = 10, load.requests = 100;
  EXPECT_EQ(requests_of(load).back().arrival, 10s);
  load.requests = 100'000;
  for (const std::int64_t burstiness : {1, 4}) {
    load.burstiness = burstiness;
    const auto requests = requests_of(load);
    double sum = 0, squares = 0;
    for (std::size_t i = 1; i < requests.size(); ++i) {
      const double gap =
          1e-9 * static_cast<double>((requests[i].arrival - requests[i - 1].arrival).count());
      sum += gap, squares += gap * gap;
    }
    const double n = static_cast<double>(requests.size() - 1), mean = sum / n;
    EXPECT_NEAR(std::sqrt(squares / n - mean * mean) / mean,
                1 / std::sqrt(static_cast<double>(burstiness)), .01);
  }
}

TEST(Requests, AreReadFromAFile) {
  const std::string path = testing::TempDir() + "requests.csv";
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    Load load;
    load.file = path;
    return requests_of(load);
  };
  const auto requests = read("arrival_s,input,output\n0,10,2\n1.5,20,3\n");
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].arrival, 1500ms);
  EXPECT_EQ(requests[1].input, 20);
  const auto message = [&](const std::string& text) {
    return failure([&] { read(text); }).substr(path.size() + 2);
  };
  EXPECT_EQ(message("arrival_s,input,output\n2,10,2\n1.5,20,3\n"),
            "line 3: arrival_s: requests must be sorted by arrival");
  EXPECT_EQ(message("arrival_s,input,output\n2,-10,2\n"),
            "line 2: input: must be an integer from 1 to 16777216, got \"-10\"");
  EXPECT_EQ(message("arrival_s,input,output\n"), "must have at least one request");
}

}  // namespace
}  // namespace foretrace::serve

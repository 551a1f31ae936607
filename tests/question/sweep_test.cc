#include "foretrace/question/sweep.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "foretrace/simulate.h"
#include "question/recorded.h"
#include "scenario/plan.h"
#include "support/corpus.h"
#include "support/random_steps.h"
#include "support/ranks.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

constexpr auto kOneKernel = R"(
    cpu: l:launch 1, s:sync 1
    gpu: k=gemm 100
    l -> k
    k -> s
)";

std::vector<Inference> ranks_of(std::string_view graph) {
  std::vector<Inference> ranks;
  ranks.push_back(recorded_as(graph));
  return ranks;
}

std::vector<SweepPoint> answers(const Sweep& sweep) {
  std::vector<SweepPoint> points;
  const std::atomic<bool> stop = false;
  sweep.run(
      0, sweep.header().points,
      {.take = [&](SweepPoint&& point) { points.push_back(std::move(point)); }, .flush = [] {}},
      stop);
  return points;
}

std::string lines(const Sweep& sweep) {
  std::string text;
  for (const SweepPoint& point : answers(sweep))
    text += sweep_point_line(sweep.header(), point, SweepForm::jsonl);
  return text;
}

/// "0.5 102us | 1 ..."
std::string asked(const char* scenario) {
  std::string text;
  for (const SweepPoint& point : answers(Sweep(Json::parse(scenario), ranks_of(kOneKernel)))) {
    text += text.empty() ? "" : " | ";
    for (const std::string& value : point.values) text += value + " ";
    text += point.refused.empty() ? to_exact_text(point.step_time) : "refused";
  }
  return text;
}

std::string mistake(const char* scenario) {
  try {
    parse_scenario(Json::parse(scenario));
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Sweep, AsksEachCombinationOfAGridTheLastSettingFirst) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "sweep": {"scale.factor": [0.5, 2], "scale.by": "0us..10us/1"}})"),
            R"("0us" 0.5 52us | "0us" 2 202us | "10us" 0.5 62us | "10us" 2 212us)");
}

TEST(Sweep, TakesValuesOfAZipTogether) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "sweep": {"method": "zip", "settings":
                                {"scale.factor": [0.5, 2], "scale.by": ["0ns", "10us"]}}})"),
            R"("0ns" 0.5 52us | "10us" 2 212us)");
}

TEST(Sweep, PutsAlternativesOfAMatrixOnTop) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "matrix": {"variant": [{"name": "as it is"},
                                 {"name": "slow host", "transforms":
                                  [{"use": "scale", "where": {"kind": "launch"}, "factor": 21}]}]},
                      "sweep": {"transforms[0].factor": [1, 0.5]}})"),
            R"("as it is" 1 102us | "as it is" 0.5 52us | "slow host" 1 122us | )"
            R"("slow host" 0.5 72us)");
}

TEST(Sweep, SpacesRangesByLogWhereAsked) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "sweep": {"scale.factor": {"range": "0.01..1/2", "scale": "log"}}})"),
            "0.01 3us | 0.1 12us | 1.0 102us");
}

TEST(Sweep, DrawsTheSameForTheSameSeed) {
  const auto drawn = [](int seed, const char* method) {
    Json scenario = Json::parse(R"({"transforms": [{"use": "scale"}],
        "sweep": {"samples": 64, "settings": {"scale.factor": "0.5..2", "scale.by": "0us..9us"}}})");
    scenario["sweep"]["method"] = method;
    scenario["sweep"]["seed"] = seed;
    return lines(Sweep(scenario, ranks_of(kOneKernel)));
  };
  for (const char* method : {"random", "halton"}) {
    EXPECT_EQ(drawn(7, method), drawn(7, method));
    EXPECT_NE(drawn(7, method), drawn(8, method));
  }
}

TEST(Sweep, DrawsFromWholeRangesEvenly) {
  for (const char* method : {"random", "halton"}) {
    Json scenario = Json::parse(R"({"transforms": [{"use": "prefetch"}],
        "sweep": {"samples": 3000, "seed": 1, "settings": {"prefetch.buffers": "1..3"}}})");
    scenario["sweep"]["method"] = method;
    const SweepPlan plan(scenario, "");
    std::map<std::string, int> counts;
    for (std::uint64_t i = 0; i < plan.size(); ++i) ++counts[plan.values(i)[0].text];
    ASSERT_EQ(counts.size(), 3U);
    for (const auto& [value, count] : counts) EXPECT_NEAR(count, 1000, 120) << method << value;
  }
}

TEST(Sweep, DrawsByLogWhereAsked) {
  const SweepPlan plan(Json::parse(R"({"transforms": [{"use": "scale"}],
      "sweep": {"method": "halton", "samples": 1000, "scale": "log",
                "settings": {"scale.factor": "0.001..1000"}}})"),
                       "");
  int below_one = 0;
  for (std::uint64_t i = 0; i < plan.size(); ++i) {
    const double factor = Json::parse(plan.values(i)[0].text);
    EXPECT_GE(factor, 0.001);
    EXPECT_LE(factor, 1000);
    below_one += factor < 1 ? 1 : 0;
  }
  EXPECT_NEAR(below_one, 500, 5);
}

// The values are names of traces, because reading 100,000 numbers takes seconds.
TEST(Sweep, ListsNoMoreValuesThanFitMemory) {
  Json scenario = Json::parse(R"({"sweep": {"method": "random", "samples": 1, "settings": {}}})");
  Json& traces = scenario["sweep"]["settings"]["trace"] = Json::array();
  for (int i = 0; i < 10'001; ++i) traces.push_back(std::to_string(i));
  for (int i = 0; i < 12; ++i)
    scenario["matrix"]["variant"].push_back({{"name", std::to_string(i)}});
  try {
    SweepPlan plan(scenario, "");
    FAIL() << "lists " << plan.size();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "sweep: 9: trace: must be at most 100000 values over all combinations of the "
                 "matrix");
  }
}

TEST(Sweep, NamesThePlaceOfAMistake) {
  const std::pair<const char*, const char*> mistakes[] = {
      {R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": []}})",
       "sweep: scale.factor: must have at least one value"},
      {R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": 3}})",
       "sweep: scale.factor: must be a list of values such as [1, 2, 4], or a range such as "
       "\"0..16\""},
      {R"({"transforms": [{"use": "scale"}],
           "sweep": {"scale.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a": [1]}})",
       "sweep: must be at most 16 names deep"},
      {R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": "2..1"}})",
       "sweep: scale.factor: must have the smaller end first"},
      {R"({"transforms": [{"use": "scale"}], "sweep": {"scale.factor": "-2..1"}})",
       "sweep: scale.factor: factor: must be at least 0, got -2"},
      {R"({"transforms": [{"use": "scale"}],
           "sweep": {"scale.factor": {"range": "0..1", "scale": "log"}}})",
       "sweep: scale.factor: scale: \"log\" needs a range above 0"},
      {R"({"transforms": [{"use": "scale"}],
           "sweep": {"method": "gird", "settings": {"scale.factor": [1]}}})",
       "sweep: method: must be one of grid, zip, random, halton, got \"gird\" (did you mean "
       "\"grid\"?)"},
      {R"({"transforms": [{"use": "scale"}],
           "sweep": {"method": "random", "settings": {"scale.factor": [1]}}})",
       "sweep: samples: must be given for this method, such as 100"},
      {R"({"transforms": [{"use": "scale"}],
           "sweep": {"samples": 3, "settings": {"scale.factor": [1]}}})",
       "sweep: samples: must only be given for the methods random and halton"},
      {R"({"transforms": [{"use": "scale"}], "sweep": {"method": "zip", "settings":
           {"scale.factor": [1, 2], "scale.by": ["0ns"]}}})",
       "sweep: settings: with the method zip, all settings must have the same number of values, "
       "but scale.by has 1 and "
       "scale.factor has 2; the settings are scale.by, scale.factor"},
      {R"({"transforms": [{"use": "scale"}], "sweep": {"machine": ["A1000"]}})",
       "sweep: machine: [0]: "},
      {R"({"matrix": {"variant": [{"nmae": "x"}]}})",
       "matrix: variant: [0]: there is no key \"nmae\" in an alternative; the keys are assert, "
       "machine, memory, name, trace, transforms (did you mean \"name\"?)"},
      {R"({"matrix": {"variant": [{"name": "x"}, {"name": "x"}]}})",
       "matrix: variant: [1]: name: must be unique among the alternatives, got \"x\""},
      {R"({"matrix": {"variant": [{"transforms": [{"use": "apm"}]}]}})",
       "matrix: variant: [0]: transforms[0]: "},
      {R"({"transforms": [{"use": "scale"}, {"use": "scale"}],
           "sweep": {"transforms[0].factor": "0..1/9999", "transforms[1].factor": "0..1/9999"}})",
       "sweep: must have at most 10000000 questions"},
  };
  for (const auto& [scenario, expected] : mistakes) {
    const std::string found = mistake(scenario);
    EXPECT_EQ(found.substr(0, std::string(expected).size()), expected) << scenario;
  }
}

/// A random graph, recorded as its replay runs.
std::optional<Inference> random_recording(std::mt19937& random) {
  Inference inference;
  inference.graph = random_steps(random);
  inference.recorded = simulate(inference.graph);
  if (step_times(inference.graph, inference.recorded).step_time <= 0ns) return std::nullopt;
  return inference;
}

constexpr auto kManyKinds = R"({
    "transforms": [{"use": "scale", "where": {"kind": "launch"}, "by": "100ns"},
                   {"use": "amp", "shortest": "100ns"},
                   {"use": "scale", "where": {"kind": "device"}},
                   {"use": "set_duration", "where": {"kind": "copy_in"}}],
    "assert": [{"step_time": "<= 5us"}],
    "sweep": {"method": "random", "samples": 40, "settings": {
        "transforms[0].factor": "0..3", "amp.compute_factor": "0.1..1.5",
        "transforms[2].factor": [0.5, 1, 2], "amp.optimizer": [true, false],
        "set_duration.duration": "0ns..900ns"}}})";

TEST(Sweep, AnswersTogetherWhatItAnswersAlone) {
  std::mt19937 random(17);
  std::uint64_t together = 0;
  for (int run = 0; run < 60; ++run) {
    SCOPED_TRACE(run);
    auto recording = random_recording(random);
    if (!recording) continue;
    Inference copy{.graph = recording->graph.clone(),
                   .recorded = recording->recorded,
                   .notes = {},
                   .assumptions = {}};
    std::vector<Inference> one, other;
    one.push_back(std::move(*recording));
    other.push_back(std::move(copy));
    const Sweep fast(Json::parse(kManyKinds), std::move(one));
    const Sweep slow(Json::parse(kManyKinds), std::move(other), {.share_structures = false});
    ASSERT_EQ(lines(fast), lines(slow));
    EXPECT_EQ(slow.answered_together(), 0U);
    together += fast.answered_together();
  }
  EXPECT_GT(together, 500U);
}

/// Three ranks with two common collectives, each with work of its own.
std::vector<Inference> three_ranks() {
  std::vector<Inference> ranks;
  ranks.push_back(rank_of({"gpu: A 300, c:collective 800, k 50, d:collective 500", 0, 3}));
  ranks.push_back(rank_of({"gpu: A 700, c:collective 400, k 350, d:collective 200", 1, 3}));
  ranks.push_back(rank_of({"gpu: A 500, c:collective 600, k 400, d:collective 150", 2, 3}));
  return ranks;
}

TEST(Sweep, AnswersOfRanksThatMeetAreThoseOfEachAlone) {
  for (
      const char* transforms :
      {R"([{"use": "scale", "where": {"name": "A"}}, {"use": "scale", "where": {"name": "k"}}])",
       R"([{"use": "scale", "where": {"rank": 1}}, {"use": "scale", "where": {"kind": "collective"}}])",
       R"([{"use": "scale", "where": {"name": "c"}}, {"use": "scale"}])"}) {
    const Json scenario = {
        {"transforms", Json::parse(transforms)},
        {"sweep",
         {{"transforms[0].factor", {0.1, 0.5, 1, 3}}, {"transforms[1].factor", {0.2, 1, 2}}}}};
    const Sweep fast(scenario, three_ranks());
    const Sweep slow(scenario, three_ranks(), {.share_structures = false});
    EXPECT_EQ(lines(fast), lines(slow)) << transforms;
    EXPECT_EQ(fast.answered_together(), 12U) << transforms;
  }
}

TEST(Sweep, HasTheSameAnswersOnAnyNumberOfThreads) {
  const auto on = [&](unsigned jobs, bool share = true) {
    std::mt19937 same(19);
    std::vector<Inference> ranks;
    while (ranks.size() < 2) {
      if (auto recording = random_recording(same)) ranks.push_back(std::move(*recording));
    }
    return lines(Sweep(Json::parse(kManyKinds), std::move(ranks),
                       {.jobs = jobs, .share_structures = share}));
  };
  const std::string expected = on(1);
  for (const unsigned jobs : {2U, 3U, 7U}) EXPECT_EQ(on(jobs), expected);
  EXPECT_EQ(on(2, false), expected);
}

TEST(Sweep, SaysWhatPredictSays) {
  const std::string trace = FORETRACE_SOURCE_DIR "/traces/gpt-a100-gpu-bound.pt.trace.json.gz";
  Json scenario = Json::parse(R"({
      "transforms": [{"use": "amp"}, {"use": "scale", "where": {"kind": "kernel"}}],
      "memory": {"limit": "8GB"},
      "assert": [{"step_time": "<= 60ms"}, {"speedup": ">= 2"}],
      "sweep": {"amp.compute_factor": [0.3, 0.6], "scale.factor": [0.5, 1.25]}})");
  for (const bool memory : {true, false}) {
    for (const bool intervals : {true, false}) {
      std::vector<Inference> ranks;
      ranks.push_back(infer(import_trace(trace)));
      const Sweep sweep(scenario, std::move(ranks), {.intervals = intervals, .memory = memory});
      const std::vector<SweepPoint> points = answers(sweep);
      ASSERT_EQ(points.size(), 4U);
      EXPECT_EQ(sweep.answered_together(), memory || intervals ? 0U : 4U);
      for (const SweepPoint& point : points) {
        Json one = scenario;
        one.erase("sweep");
        one["transforms"][0]["compute_factor"] = Json::parse(point.values[0]);
        one["transforms"][1]["factor"] = Json::parse(point.values[1]);
        const Prediction expected = predict(Job(trace), parse_scenario(one));
        EXPECT_EQ(point.step_time, expected.predicted.step_time);
        EXPECT_EQ(point.speedup, expected.speedup);
        EXPECT_EQ(point.peak_reserved,
                  memory ? expected.predicted_memory.at(0).peak_reserved : std::nullopt);
        EXPECT_EQ(point.lower.has_value(), intervals);
        EXPECT_EQ(point.lower.value_or(expected.lower), expected.lower);
        EXPECT_EQ(point.upper.value_or(expected.upper), expected.upper);
      }
    }
  }
}

TEST(Sweep, RefusesOnePointAndAnswersTheOthers) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "sweep": {"scale.where.name": ["gemm", "conv"], "scale.factor": [0.5]}})"),
            R"(0.5 "gemm" 52us | 0.5 "conv" refused)");
}

TEST(Sweep, RefusesWhatTakesLongerThanAnyClockCounts) {
  EXPECT_EQ(asked(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}],
                      "sweep": {"scale.factor": [0.5, 1e14, 0, 1]}})"),
            "0.5 52us | 100000000000000.0 refused | 0 2us | 1 102us");
}

TEST(Sweep, StopsWhereItIsAsked) {
  const Json scenario = Json::parse(R"({"transforms": [{"use": "scale"}],
      "sweep": {"scale.factor": "0.1..1/999"}})");
  const Sweep sweep(scenario, ranks_of(kOneKernel));
  std::atomic<bool> stop = false;
  std::uint64_t taken = 0;
  sweep.run(5, 1000,
            {.take =
                 [&](SweepPoint&& point) {
                   EXPECT_EQ(point.number, 5 + taken++);
                   if (taken == 20) stop = true;
                 },
             .flush = [] {}},
            stop);
  EXPECT_GE(taken, 20U);
  EXPECT_LT(taken, 995U);
}

// Probes and replays of many sets of durations, on recorded graphs.
TEST(Corpus, AnswersTogetherWhatItAnswersAlone) {
  const std::vector<std::string> files = corpus_files({".pt.trace.json", ".json.gz", ".sqlite"});
  if (files.empty()) GTEST_SKIP() << kNoCorpus;
  const Json scenario = Json::parse(R"({
      "transforms": [{"use": "scale", "where": {"kind": "device"}},
                     {"use": "scale", "where": {"kind": "launch"}}],
      "sweep": {"method": "random", "samples": 9, "seed": 5, "scale": "log", "settings": {
          "transforms[0].factor": "0.05..20", "transforms[1].factor": "0.05..20"}}})");
  int compared = 0;
  for (const std::string& file : files) {
    if (std::filesystem::file_size(file) > 700'000) continue;  // Takes seconds.
    SCOPED_TRACE(file);
    try {
      std::vector<Inference> one, other;
      one.push_back(infer(import_trace(file)));
      other.push_back(infer(import_trace(file)));
      const Sweep fast(scenario, std::move(one), {.memory = false});
      const Sweep slow(scenario, std::move(other), {.memory = false, .share_structures = false});
      EXPECT_EQ(lines(fast), lines(slow));
      compared += fast.answered_together() > 0 ? 1 : 0;
    } catch (const Error&) {
      continue;  // Traces that cannot be predicted from are covered by other tests.
    }
  }
  EXPECT_GT(compared, 5);
}

TEST(Corpus, AnswersJobsOfRanksTogetherAsItAnswersThemAlone) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  for (const char* job : {"megatron-tp2", "torchrec-forward-straggler"}) {
    for (const char* where :
         {R"({"kind": "collective"})", R"({"rank": 1})", R"({"kind": "device"})"}) {
      const Json scenario = {{"trace", (std::filesystem::path(corpus) / job).string()},
                             {"transforms", {{{"use", "scale"}, {"where", Json::parse(where)}}}},
                             {"sweep", {{"scale.factor", {0.25, 0.9, 1, 3}}}}};
      const Sweep fast(scenario), slow(scenario, SweepOptions{.share_structures = false});
      EXPECT_EQ(lines(fast), lines(slow)) << job << ' ' << where;
      EXPECT_EQ(fast.answered_together(), 4U) << job << ' ' << where;
    }
  }
}

}  // namespace
}  // namespace foretrace

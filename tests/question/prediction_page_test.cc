// The page of a prediction, tested without a browser; page_browser_test.py tests the rest.

#include "foretrace/answer/prediction_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "foretrace/answer/prediction.h"
#include "foretrace/graph.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "foretrace/scenario.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "question/predict/drawn_run.h"
#include "question/sample.h"

namespace foretrace {
namespace {

constexpr std::string_view kTwoSteps = R"(
@step s0
@step s1
cpu:    a:launch 1 {phase=forward step=0}, b:launch 1 {phase=backward step=0}, a2:launch 1 {phase=forward step=1}
stream: K 4 {phase=forward step=0}, L 6 {phase=backward step=0}, M 4 {phase=forward step=1}
a -> K
b -> L
a2 -> M
@alloc 4B: K .. L
)";

std::string page_of(const Graph& now, const Graph* predicted = nullptr,
                    const Prediction& prediction = sample_prediction()) {
  const Timeline recorded = simulate(now, {.reasons = true});
  Timeline then;
  PredictionPage page{
      .prediction = prediction, .now = {now, recorded, {}}, .predicted = {}, .sensitivities = {}};
  page.now.path = {{.task = "K",
                    .lane = "stream",
                    .reason = "waits for a on cpu",
                    .duration = 4us,
                    .waited = 1us}};
  page.sensitivities = {{"kernels", "all kernels", 80ms, 50ms, 46ms, 30ms}};
  if (predicted != nullptr) {
    then = simulate(*predicted, {.reasons = true});
    page.predicted.emplace(DrawnRun{*predicted, then, {}});
  }
  std::ostringstream out;
  write_prediction_page(page, out);
  return std::move(out).str();
}

nlohmann::json data_of(const std::string& page, const std::string& id) {
  const std::string begin = R"(<script type="application/json" id=")" + id + R"(">)";
  const std::size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

std::string raw_bytes(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  unsigned have = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = (bits << 6U | static_cast<std::uint32_t>(digits.find(c))) & 0xffffU, have += 6;
    if (have < 8) continue;
    have -= 8;
    bytes += static_cast<char>(bits >> have & 255U);
  }
  return bytes;
}

/// The numbers that page.numbers() of the page would read.
std::vector<std::int64_t> unpacked(const std::string& base64, bool is_signed = false) {
  std::vector<std::int64_t> numbers;
  std::uint64_t value = 0;
  unsigned shift = 0;
  for (const char c : raw_bytes(base64)) {
    const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(c));
    value |= (byte & 127U) << shift, shift += 7;
    if (byte > 127) continue;
    const auto half = static_cast<std::int64_t>(value / 2);
    numbers.push_back(!is_signed          ? static_cast<std::int64_t>(value)
                      : (value & 1U) != 0 ? -half - 1
                                          : half);
    value = 0, shift = 0;
  }
  return numbers;
}

std::ptrdiff_t matches(const std::string& text, const std::string& pattern) {
  const std::regex wanted(pattern);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), wanted), {});
}

/// Checks tags only: HTML does not parse the content of scripts and styles.
std::string without_scripts(std::string page) {
  for (const std::string tag : {"script", "style"}) {
    std::size_t from = 0;
    while ((from = page.find("<" + tag, from)) != std::string::npos)
      page.erase(from, page.find("</" + tag + ">", from) + tag.size() + 3 - from);
  }
  return page;
}

TEST(PredictionPage, IsWholeAndLeadsNowhereElse) {
  const Graph graph = parse_graph(kTwoSteps);
  const std::string all = page_of(graph, &graph);
  const std::string page = without_scripts(all);
  for (const std::string tag :
       {"html",   "head", "body", "main", "header", "footer",  "nav",     "section",
        "table",  "svg",  "g",    "text", "canvas", "details", "summary", "select",
        "button", "div",  "span", "p",    "h2",     "h3",      "ul",      "li"}) {
    EXPECT_EQ(matches(page, "<" + tag + "[ >]"), matches(page, "</" + tag + ">")) << tag;
  }
  EXPECT_EQ(matches(page, "(href|src)=\"[^#]"), 0);
  EXPECT_EQ(matches(page, "url\\(|@import"), 0);
  for (const char* id : {"time", "steps", "timelines", "critical-path", "schedule", "memory",
                         "reactions", "certainty", "grounds"})
    EXPECT_EQ(matches(page, std::string("<section id=\"") + id + "\""), 1) << id;
  EXPECT_NE(all.find("Permission is hereby granted, free of charge"), std::string::npos);
}

TEST(PredictionPage, WhatTheScriptsLookForIsThere) {
  const Graph graph = parse_graph(kTwoSteps);
  const std::string page = page_of(graph, &graph);
  const std::regex wanted(R"((?:getElementById|by_id|on)\('([a-z-]+)')");
  std::size_t found = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), wanted), end; at != end; ++at, ++found)
    EXPECT_NE(page.find(" id=\"" + (*at)[1].str() + '"'), std::string::npos) << (*at)[1];
  EXPECT_GE(found, 20U);
}

/// The HTML of a section.
std::string section_of(const std::string& page, const std::string& id) {
  const std::size_t from = page.find("<section id=\"" + id + "\"");
  return from == page.npos ? "" : page.substr(from, page.find("</section>", from) - from);
}

TEST(PredictionPage, TheIntervalIsARangeOnThePredictedBar) {
  const Graph graph = parse_graph(kTwoSteps);
  const std::string section = section_of(page_of(graph, &graph), "certainty");
  // 100 ms take 98 % of the width; 45 to 55 ms are 44.1 % to 53.9 %.
  EXPECT_EQ(matches(section, "<rect "), 2);
  EXPECT_EQ(matches(section, "<line x1=\"44.100%\" x2=\"53.900%\""), 1);
}

TEST(PredictionPage, StepsAreDrawnFromZeroWithTheInterval) {
  const Graph graph = parse_graph(kTwoSteps);
  const std::string section = section_of(page_of(graph, &graph), "steps");
  // The slowest step, 110 ms, is at the top, and 100 ms below it by an eleventh.
  EXPECT_NE(section.find("points=\"0.0,0.0 500.0,90.9 1000.0,90.9 \"><title>recorded"),
            section.npos);
  // 50 ms, between 45 and 55 ms, from the second step on: the first does not count.
  EXPECT_NE(section.find("points=\"500.0,545.5 1000.0,545.5 \""), section.npos);
  EXPECT_NE(section.find("points=\"500.0,500.0 1000.0,500.0 1000.0,590.9 500.0,590.9 \""),
            section.npos);
  EXPECT_EQ(matches(section, "does not count"), 1);
}

TEST(PredictionPage, RanksStandSideBySideAndNameTheStraggler) {
  const Graph graph = parse_graph(kTwoSteps);
  Prediction prediction = sample_prediction();
  EXPECT_EQ(section_of(page_of(graph, &graph, prediction), "ranks"), "");
  const auto add = [&](std::int32_t number, Nanoseconds step, Nanoseconds waits) {
    PredictedRank rank;
    rank.number = number, rank.baseline = rank.predicted = step;
    rank.baseline_breakdown = {.compute = step - 40ms, .communication = 40ms};
    rank.waits = waits, rank.transfer = 10ms, rank.matched = 5;
    prediction.ranks.push_back(rank);
  };
  add(0, 100ms, 30ms), add(1, 80ms, 0ms);
  prediction.ranks[1].times_last = 4, prediction.ranks[1].keeps_waiting = 60ms;
  const std::string section = section_of(page_of(graph, &graph, prediction), "ranks");
  // Three quarters of the collectives of rank 0 are waits, so 30 of its 40 ms are drawn as such.
  EXPECT_NE(section.find("rank 0, slowest, waiting: 30 ms"), section.npos) << section;
  EXPECT_NE(section.find("rank 0, slowest, communication: 10 ms"), section.npos);
  EXPECT_NE(section.find("rank 1, straggler, communication: 40 ms"), section.npos);
  EXPECT_NE(section.find("enters 4 of 5 collectives last, and the others wait 60 ms"),
            section.npos);
  // A hundredth of the recording is no reason to call it a straggler.
  prediction.ranks[1].keeps_waiting = 5ms;
  EXPECT_EQ(matches(section_of(page_of(graph, &graph, prediction), "ranks"), "straggler"), 0);
}

TEST(PredictionPage, NoNameBreaksOut) {
  Graph graph = parse_graph(kTwoSteps);
  graph.task(TaskId{0}).name = graph.names().intern("</script><b>&\"");
  graph.lane(LaneId{0}).name = "</script><b>&\"";
  graph.steps()[0].name = "</script><b>&\"";
  const std::string page = page_of(graph, &graph);
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  const nlohmann::json data = data_of(page, "timeline-data");
  EXPECT_EQ(data["lanes"][0][0], "</script><b>&\"");
  EXPECT_NE(std::find(data["names"].begin(), data["names"].end(), "</script><b>&\""),
            data["names"].end());
  EXPECT_NE(page.find("&lt;/script&gt;&lt;b&gt;&amp;&quot;"), std::string::npos);
}

TEST(PredictionPage, ColumnsSayWhenTasksRunAndWhatTheyWaitFor) {
  const Graph graph = parse_graph(kTwoSteps);
  const nlohmann::json data = data_of(page_of(graph), "timeline-data");
  ASSERT_EQ(data["runs"].size(), 1U);
  const nlohmann::json& run = data["runs"][0];
  const nlohmann::json& columns = run["columns"];
  // First the tasks of cpu, then those of stream; each start is relative to the previous one.
  EXPECT_EQ(unpacked(columns["start"], true),
            (std::vector<std::int64_t>{0, 1000, 1000, 1000, 4000, 6000}));
  EXPECT_EQ(unpacked(columns["duration"], true),
            (std::vector<std::int64_t>{1000, 1000, 1000, 4000, 6000, 4000}));
  EXPECT_EQ(unpacked(columns["waited"]), (std::vector<std::int64_t>{0, 0, 0, 1000, 0, 0}));
  std::vector<std::string> names;
  for (const std::int64_t name : unpacked(columns["name"]))
    names.push_back(data["names"][static_cast<std::size_t>(name)]);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "a2", "K", "L", "M"}));
  // K, task 3, waits for a, task 0; L and M wait for the tasks before them.
  EXPECT_EQ(unpacked(columns["before"], true), (std::vector<std::int64_t>{0, 1, 1, 3, 1, 1}));
  const auto reason = static_cast<std::size_t>(unpacked(columns["reason"])[3]);
  EXPECT_EQ(data["names"][run["reasons"][reason][0].get<std::size_t>()], "a");
  EXPECT_EQ(run["length"], 15'000);
}

TEST(PredictionPage, LanesTellHowBusyTheyAre) {
  const Graph plain = parse_graph("cpu: a 2048\nstream: K 2048\na -> K\n");
  const nlohmann::json data = data_of(page_of(plain), "timeline-data");
  // 4096 bins of a microsecond; each lane is busy in the first or in the second half.
  EXPECT_EQ(data["bin_ns"], 1000);
  const nlohmann::json& run = data["runs"][0];
  const std::string bins = raw_bytes(run["bins"]);
  ASSERT_EQ(bins.size(), 2 * 4096U);
  for (const auto& [at, full] : {std::pair(0U, true),
                                 {2047U, true},
                                 {2048U, false},
                                 {4096U, false},
                                 {6143U, false},
                                 {6144U, true},
                                 {8191U, true}})
    EXPECT_EQ(bins[at] & 31, full ? 31 : 0) << at;
  EXPECT_EQ(run["lanes"][0][3], 2'048'000);
}

/// `lanes` streams with tasks of a microsecond, in ten steps.
Graph wide(std::uint32_t tasks, std::uint32_t lanes, bool own_names) {
  Graph graph;
  graph.steps().resize(10);
  for (std::uint32_t i = 0; i < graph.steps().size(); ++i)
    graph.steps()[i].name = "step " + std::to_string(i);
  for (std::uint32_t i = 0; i < lanes; ++i)
    graph.add_lane({.name = "stream " + std::to_string(i), .device = 0});
  for (std::uint32_t i = 0; i < tasks; ++i) {
    Task task;
    task.duration = Nanoseconds(900 + i % 200);
    task.step = static_cast<std::int32_t>(std::uint64_t{i} * 10 / tasks);
    task.phase = i % 2 == 0 ? Phase::forward : Phase::backward;
    task.name = graph.names().intern(own_names ? std::string(300, 'x') + std::to_string(i) +
                                                     std::string(150, 'y')
                                               : "kernel_" + std::to_string(i % 500));
    graph.append(LaneId{i % lanes}, task);
    if (i % 7 == 6)
      graph.add({.before = TaskId{i - 5}, .after = TaskId{i}, .why = Rule::event_wait});
  }
  return graph;
}

TEST(PredictionPage, OfManyTasksThePageStaysSmall) {
  const Graph graph = wide(200'000, 8, false);
  const std::string page = page_of(graph, &graph);
  EXPECT_LT(page.size(), 6'000'000U);
  EXPECT_GT(page.size(), 2'000'000U);
  EXPECT_NE(page.find("of 200,000 tasks are on this page"), std::string::npos);
  EXPECT_EQ(page, page_of(graph, &graph)) << "same input, same bytes";
}

TEST(PredictionPage, NamesOfTheirOwnMakeItNoLarger) {
  const Graph graph = wide(100'000, 100, true);
  EXPECT_LT(page_of(graph, &graph).size(), 6'000'000U);
}

TEST(PredictionPage, OneStepIsShownWholeAndTheLongestOfTheOthers) {
  const Graph graph = wide(1000, 2, false);
  const Timeline timeline = simulate(graph, {.reasons = true});
  const Drawing drawing = drawing_of({graph, timeline, {}}, 120);
  EXPECT_EQ(drawing.step, 4U);
  EXPECT_EQ(drawing.tasks_shown, 120U);
  std::size_t of_step = 0;
  Nanoseconds shortest = 1s;
  for (const DrawnLane& lane : drawing.lanes) {
    for (const TaskId id : lane.shown) {
      if (graph.task(id).step == 4)
        ++of_step;
      else
        shortest = std::min(shortest, graph.task(id).duration);
    }
  }
  EXPECT_EQ(of_step, 100U);
  EXPECT_GE(shortest, 1095ns);
}

TEST(PredictionPage, WithoutAWhatIfThereIsOneRun) {
  const Graph graph = parse_graph(kTwoSteps);
  const std::string page = page_of(graph);
  EXPECT_EQ(data_of(page, "timeline-data")["runs"].size(), 1U);
  EXPECT_EQ(page.find(" id=\"align\""), std::string::npos);
}

/// Share of a step that a rank spends with something.
double share_of(const RankLane& lane, RankActivity what) {
  double share = 0, last = 0;
  for (const RankLane::Piece& piece : lane.pieces) {
    EXPECT_LE(last, piece.from);
    EXPECT_LT(piece.from, piece.to);
    last = piece.to;
    if (piece.what == what) share += piece.to - piece.from;
  }
  EXPECT_LE(last, 1);
  return share;
}

TEST(PredictionPage, OneStepOfAllRanksShowsWhoWaitsForTheLateOne) {
  const Job job(FORETRACE_SOURCE_DIR "/traces/gpt-a100-two-ranks");
  PredictOptions options;
  std::vector<RankLane> lanes;
  std::string section;
  options.take_page = [&](const PredictionPage& page) {
    lanes = page.ranks;
    std::ostringstream out;
    write_prediction_page(page, out);
    section = section_of(out.str(), "ranks");
  };
  const Prediction prediction = predict(job, Scenario{}, options);
  ASSERT_EQ(lanes.size(), 2U);
  const bool first_is_late = prediction.ranks[0].times_last > prediction.ranks[1].times_last;
  const RankLane& late = lanes[first_is_late ? 0 : 1];
  const RankLane& other = lanes[first_is_late ? 1 : 0];
  EXPECT_EQ(late.step, other.step);
  EXPECT_GT(share_of(other, RankActivity::waiting), 0.03);
  EXPECT_LT(share_of(late, RankActivity::waiting), share_of(other, RankActivity::waiting) / 3);
  EXPECT_GT(share_of(late, RankActivity::compute), 0.3);
  EXPECT_EQ(matches(section, "One step of all ranks, on one clock"), 1);
  EXPECT_GT(matches(section, "rank [01], waiting from [0-9.]+ [mun]s to"), 0);
}

}  // namespace
}  // namespace foretrace

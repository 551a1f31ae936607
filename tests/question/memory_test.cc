#include "foretrace/answer/memory.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "analysis/memory/layout.h"
#include "analysis/memory/swap_plan.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "foretrace/trace.h"
#include "question/memory/allocator_state.h"
#include "question/memory/picture.h"

namespace foretrace {
namespace {

constexpr Bandwidth kTenPerMicrosecond{10e6};  // 10 bytes a tick.

MemoryReport described(std::string_view text, const MemoryQuestion& question = {}) {
  const Graph graph = parse_graph(text);
  return describe_memory(graph, simulate(graph), question);
}

Bytes at_peak(const MemoryReport& report, MemoryUse use) {
  for (const UseRow& row : report.uses) {
    if (row.use == use) return row.at_peak;
  }
  return {};
}

// 0   1   2   3   4
// F   G   B   C         p 100 all the time, a 40 from F to C, t 20 inside of G
constexpr std::string_view kOneStep = R"(
@step ProfilerStep#7
cpu: F 1 {step=0 phase=forward}, G 1 {step=0 phase=forward}, B 1 {step=0 phase=backward}, C 1 {step=0 phase=backward}
@alloc 100B use=parameter: ..  reads F, B
@alloc 40B use=activation op="aten::relu" stack="train.py:12 forward": F .. C
@alloc 20B use=workspace op="aten::convolution": G .. B
)";

TEST(Memory, ThePeakIsWhenAndForWhat) {
  const MemoryReport report = described(kOneStep);
  EXPECT_EQ(report.peak.count, 160);
  EXPECT_EQ(report.peak_moment.time, 1us);
  EXPECT_EQ(report.peak_moment.step, "ProfilerStep#7");
  EXPECT_EQ(report.peak_moment.phase, Phase::forward);
  EXPECT_EQ(report.peak_moment.op, "aten::convolution");
  EXPECT_EQ(at_peak(report, MemoryUse::parameter).count, 100);
  EXPECT_EQ(at_peak(report, MemoryUse::activation).count, 40);
  EXPECT_EQ(at_peak(report, MemoryUse::workspace).count, 20);
}

TEST(Memory, AveragesAreOverTime) {
  const MemoryReport report = described(kOneStep);
  // 100 for 4 ticks, 40 for 3, 20 for 1.
  EXPECT_EQ(report.average.count, (400 + 120 + 20) / 4);
}

TEST(Memory, PhasesAddUpToTheWindow) {
  const MemoryReport report = described(kOneStep);
  Nanoseconds sum{0};
  for (const PhaseRow& row : report.phases) sum += row.time;
  EXPECT_EQ(sum, report.to - report.from);
  ASSERT_EQ(report.phases.size(), 2U);
  EXPECT_EQ(report.phases[0].phase, Phase::forward);
  EXPECT_EQ(report.phases[0].time, 2us);
  EXPECT_EQ(report.phases[0].average.count, 150);  // 140 and 160.
}

TEST(Memory, WhoHoldsThePeakIsSaidByOpAndLine) {
  const MemoryReport report = described(kOneStep);
  ASSERT_EQ(report.ops.size(), 3U);
  EXPECT_EQ(report.ops[0].name, "(before the recording)");
  EXPECT_EQ(report.ops[1].name, "aten::relu");
  EXPECT_EQ(report.ops[1].lifetime, 3us);
  ASSERT_EQ(report.lines.size(), 1U);
  EXPECT_EQ(report.lines[0].name, "train.py:12 forward");
  EXPECT_EQ(report.lines[0].bytes.count, 40);
}

TEST(Memory, WhatIsThereWithoutABlockIsKnownByItsSum) {
  const MemoryReport report =
      described("@memory 1000B device=0\ncpu: a 1, b 1\n@alloc 10B: a .. b\n");
  EXPECT_EQ(report.unnamed.count, 1000);
  EXPECT_EQ(report.peak.count, 1010);
  EXPECT_EQ(at_peak(report, MemoryUse::unknown).count, 1010);
}

TEST(Memory, LifetimesAreCountedByDecade) {
  const MemoryReport report =
      described("cpu: a 1, b 50, c 1\n@alloc 1B: a .. b\n@alloc 2B: a .. c\n@alloc 4B: b ..\n");
  const LifetimeSection& lifetimes = report.lifetimes;
  EXPECT_EQ(lifetimes.blocks, 3);
  EXPECT_EQ(lifetimes.left, 1);
  EXPECT_EQ(lifetimes.left_bytes.count, 4);
  ASSERT_EQ(lifetimes.bins.size(), 2U);
  EXPECT_EQ(lifetimes.bins[0].from, 1us);
  EXPECT_EQ(lifetimes.bins[1].from, 10us);
  EXPECT_EQ(lifetimes.times.most, 51us);
}

std::string three_steps(const std::string& allocations) {
  return "@step step#1\n@step step#2\n@step step#3\n@step step#4\n"
         "cpu: a 1 {step=0}, b 1 {step=1}, c 1 {step=2}, d 1 {step=3}, e 1 {step=3}\n" +
         allocations;
}

TEST(Memory, WhatPilesUpStepByStepMayLeak) {
  const MemoryReport report = described(
      three_steps("@alloc 8B op=log: a ..\n@alloc 8B op=log: b ..\n@alloc 8B op=log: c ..\n"
                  "@alloc 8B op=log: d ..\n@alloc 99B op=once: a ..\n@alloc 5B op=last: d ..\n"));
  ASSERT_EQ(report.growth.candidates.size(), 1U);
  EXPECT_EQ(report.growth.candidates[0].op, "log");
  EXPECT_EQ(report.growth.candidates[0].per_step.count, 8);
  EXPECT_EQ(report.growth.candidates[0].steps, 3);
  EXPECT_EQ(report.growth.per_step->count, 8);
}

TEST(Memory, WhatEachStepFreesDoesNot) {
  const MemoryReport report = described(
      three_steps("@alloc 8B op=x: a .. b\n@alloc 8B op=x: b .. c\n@alloc 8B op=x: c .. d\n"));
  EXPECT_TRUE(report.growth.candidates.empty());
  EXPECT_EQ(report.growth.per_step->count, 0);
}

TEST(Memory, WhatTheFirstStepMakesOnceIsNoGrowth) {
  // A step leaves 8 or 12 bytes. If the 99 counted, the median would be 12.
  const MemoryReport report = described(
      "@step step#1\n@step step#2\n@step step#3\n@step step#4\n"
      "cpu: z 1 {step=0}, a 1 {step=0}, b 1 {step=1}, c 1 {step=2}, d 1 {step=3}\n"
      "@alloc 99B: a ..\n@alloc 8B: b ..\n@alloc 12B: c ..\n");
  EXPECT_EQ(report.growth.per_step->count, 8);
}

TEST(Memory, OneStepCanBeAskedFor) {
  const std::string text =
      three_steps("@alloc 50B: a .. b\n@alloc 20B: b .. c\n@alloc 30B: c .. d\n");
  EXPECT_EQ(described(text).peak.count, 50);
  const MemoryReport report = described(text, {.device = {}, .step = 2});
  EXPECT_EQ(report.step, "step#2");
  EXPECT_EQ(report.from, 1us);
  EXPECT_EQ(report.to, 2us);
  EXPECT_EQ(report.peak.count, 50);  // Until b has freed it.
  EXPECT_EQ(described(text, {.device = {}, .step = 4}).peak.count, 30);
  EXPECT_THROW(described(text, {.device = {}, .step = 9}), Error);
  EXPECT_THROW(described(text, {.device = 3, .step = {}}), Error);
}

TEST(Memory, AGraphWithoutBlocksCannotBeDescribed) {
  EXPECT_THROW(described("cpu: a 1\n"), TraceError);
}

// A reads x, and E reads it again 40 ticks later; 100 bytes at 10 a tick take 10 ticks out and 10
// in.
constexpr std::string_view kUntouched = R"(
cpu: m 1
stream: A 1, B 20, C 20, E 1
@alloc 2MB use=activation op=x: m .. writes A reads E
@alloc 2MB op=y: m .. writes B, C
)";

TEST(Memory, ABlockThatLiesLongEnoughIsHideable) {
  const Bandwidth fast{1e12};  // 2 us each way.
  const MemoryReport report =
      described(kUntouched, {.device = {}, .step = {}, .top = 10, .out = fast, .in = fast});
  const IntervalSection& found = report.intervals;
  EXPECT_TRUE(found.known);
  ASSERT_EQ(found.best.size(), 1U);
  EXPECT_EQ(found.best[0].interval, 40us);
  EXPECT_EQ(found.best[0].copies, 4us);
  EXPECT_EQ(found.best[0].before, "A");
  EXPECT_EQ(found.best[0].after, "E");
  EXPECT_EQ(found.hideable, 1);
  // 40 us hold 20 MB both ways at 1 MB/us.
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["intervals"]["largest_hideable"]["most_bytes"], 20'000'000);
}

TEST(Memory, ALinkThatIsTooSlowHidesNothing) {
  const Bandwidth slow{1e10};  // 200 us each way.
  const MemoryReport report =
      described(kUntouched, {.device = {}, .step = {}, .top = 10, .out = slow, .in = slow});
  EXPECT_EQ(report.intervals.hideable, 0);
  EXPECT_EQ(report.intervals.planned, report.intervals.needed);
}

TEST(SwapPlan, CopiesGoOneAtATime) {
  // Two blocks of 100 bytes are unused from 0 to 50; each copy takes 10.
  const std::vector<MemoryCurve::Point> curve = {
      {0us, Bytes{200}}, {15us, Bytes{300}}, {16us, Bytes{200}}, {40us, Bytes{200}}};
  const std::vector<SwapCandidate> both = {{Bytes{100}, 0us, 50us}, {Bytes{100}, 0us, 50us}};
  const SwapEstimate plan = plan_swaps(curve, 50us, both, kTenPerMicrosecond, kTenPerMicrosecond);
  EXPECT_EQ(plan.moved, 2);
  // At 15 one block is out and the other is being copied; with the link for itself, each would be
  // out.
  EXPECT_EQ(plan.planned.count, 200);
  EXPECT_EQ(plan.bound.count, 200);  // Until 10 both are on the device.
}

TEST(SwapPlan, ABlockIsThereWhileItIsCopied) {
  // The block is unused from 0 to 50, and out of the device from 10 to 40.
  const std::vector<SwapCandidate> one = {{Bytes{100}, 0us, 50us}};
  const auto planned = [&](const std::vector<MemoryCurve::Point>& curve) {
    return plan_swaps(curve, 50us, one, kTenPerMicrosecond, kTenPerMicrosecond).planned.count;
  };
  EXPECT_EQ(planned({{0us, Bytes{100}}, {20us, Bytes{200}}, {21us, Bytes{100}}}), 100);
  EXPECT_EQ(planned({{0us, Bytes{100}},
                     {5us, Bytes{200}},
                     {6us, Bytes{100}},
                     {20us, Bytes{200}},
                     {21us, Bytes{100}}}),
            200);
  EXPECT_EQ(planned({{0us, Bytes{100}},
                     {20us, Bytes{200}},
                     {21us, Bytes{100}},
                     {45us, Bytes{200}},
                     {46us, Bytes{100}}}),
            200);
}

TEST(SwapPlan, NoAccessWaits) {
  // Between 0 and 25 there is time for one copy out and in, but not for two in a row.
  const std::vector<MemoryCurve::Point> curve = {
      {0us, Bytes{0}}, {10us, Bytes{200}}, {15us, Bytes{0}}};
  const std::vector<SwapCandidate> both = {{Bytes{100}, 0us, 25us}, {Bytes{100}, 0us, 25us}};
  const SwapEstimate plan = plan_swaps(curve, 25us, both, kTenPerMicrosecond, kTenPerMicrosecond);
  EXPECT_EQ(plan.moved, 1);
  EXPECT_EQ(plan.planned.count, 100);
  EXPECT_EQ(plan.bound.count, 0);
}

TEST(MemoryLayout, BlocksThatLiveTogetherDoNotOverlap) {
  const Graph graph = parse_graph(
      "cpu: a 1, b 1, c 1, d 1\n@alloc 10B: a .. c\n@alloc 20B: b .. d\n@alloc 10B: c ..\n"
      "@alloc 5B: ..\n");
  const MemoryReport report = describe_memory(graph, simulate(graph));
  const MemoryLayout layout = lay_out(report, graph, 100);
  EXPECT_EQ(layout.height, 35);  // The third takes the place of the first.
  for (const PlacedBlock& a : layout.blocks) {
    for (const PlacedBlock& b : layout.blocks) {
      if (a.block.allocation >= b.block.allocation) continue;
      const bool together = a.block.made < b.block.freed && b.block.made < a.block.freed;
      const auto size = [&](const PlacedBlock& one) {
        return graph.allocations()[one.block.allocation].bytes.count;
      };
      const bool overlap = a.offset < b.offset + size(b) && b.offset < a.offset + size(a);
      EXPECT_FALSE(together && overlap);
    }
  }
}

TEST(MemoryLayout, TheSmallestOfManyAreOneBand) {
  const Graph graph =
      parse_graph("cpu: a 1, b 1, c 1\n@alloc 10B: a .. c\n@alloc 2B: a .. b\n@alloc 3B: b .. c\n");
  const MemoryReport report = describe_memory(graph, simulate(graph));
  const MemoryLayout layout = lay_out(report, graph, 1);
  EXPECT_EQ(layout.blocks.size(), 1U);
  EXPECT_EQ(layout.rest_blocks, 2);
  ASSERT_EQ(layout.rest.size(), 3U);
  EXPECT_EQ(layout.rest[0].allocated.count, 2);
  EXPECT_EQ(layout.rest[1].allocated.count, 3);
}

TEST(MemoryLayout, ThinningKeepsThePeak) {
  std::vector<MemoryCurve::Point> curve;
  for (int i = 0; i < 10'000; ++i)
    curve.push_back({Nanoseconds(i), Bytes{i == 7'777 ? 99 : i % 7}});
  const std::vector<MemoryCurve::Point> few = thinned(curve, 100);
  EXPECT_LE(few.size(), 200U);
  EXPECT_EQ(std::max_element(few.begin(), few.end(),
                             [](const auto& a, const auto& b) { return a.allocated < b.allocated; })
                ->allocated.count,
            99);
  EXPECT_TRUE(std::is_sorted(few.begin(), few.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; }));
}

TEST(Memory, ThePictureShowsTheLevelOverTheStep) {
  EXPECT_EQ("\n" + level_picture(described(kOneStep), 8, 4), R"(
160 B |  ##
      |######
      |######
100 B |########
      +--------
       FFFFBBBB
)");
}

/// The data that the script of a page contains.
nlohmann::json page_data(const std::string& page) {
  const std::string begin = R"(<script type="application/json" id="data">)";
  const std::size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

TEST(Memory, ThePageHoldsAllBlocksAndLoadsNothing) {
  const Graph graph = parse_graph(
      "cpu: a 1, b 1\n@alloc 10B op=\"</script><b>&\" use=gradient: a .. b\n@alloc 5B: ..\n");
  const MemoryReport report = describe_memory(graph, simulate(graph));
  std::ostringstream out;
  write_memory_html(report, graph, out);
  const std::string page = out.str();
  const nlohmann::json data = page_data(page);
  EXPECT_EQ(data["blocks"].size(), 2U);
  EXPECT_EQ(data["names"][data["blocks"][0][5].get<std::size_t>()], "</script><b>&");
  EXPECT_EQ(data["length"], 2000);
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  const std::regex link("href=\"([^\"]*)\"");
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at)
    EXPECT_EQ((*at)[1].str().front(), '#') << "a link that leaves the page";
  EXPECT_EQ(page.find("<b>"), std::string::npos);
  for (const char* tag : {"html", "head", "body", "main", "style", "script", "canvas", "table"}) {
    const auto count = [&](const std::string& text) {
      const std::regex pattern(text);
      return std::distance(std::sregex_iterator(page.begin(), page.end(), pattern), {});
    };
    EXPECT_EQ(count(std::string("<") + tag + "[ >]"), count(std::string("</") + tag + ">")) << tag;
  }
}

TEST(Memory, TheJsonSaysWhatTheTextSays) {
  const MemoryReport report = described(kOneStep);
  const nlohmann::json json = to_json(report);
  EXPECT_EQ(json["schema"], "foretrace.memory/1");
  EXPECT_EQ(json["peak_allocated_bytes"], 160);
  EXPECT_EQ(json["peak"]["op"], "aten::convolution");
  EXPECT_EQ(json["uses"][0]["use"], "parameter");
  EXPECT_EQ(json["intervals"]["known"], true);
  EXPECT_EQ(json["lifetimes"]["blocks"], 2);
  std::ostringstream text;
  write_text(document_of(report), text);
  EXPECT_NE(text.str().find("160 B"), std::string::npos);
}

TEST(Memory, TheTableHasARowForEachBlock) {
  const Graph graph = parse_graph(kOneStep);
  std::ostringstream out;
  write_csv(describe_memory(graph, simulate(graph)), graph, out);
  std::vector<std::string> lines;
  std::istringstream in(out.str());
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[2],
            "1,0,40,,activation,0,3000,3000,0,0,0,\"ProfilerStep#7\",forward,\"\",,\"aten::relu\","
            "\"train.py:12 forward\",\"F\",\"C\"");
}

TEST(AllocatorState, ThePeakMayLieBeforeTheFirstEvent) {
  Trace trace;
  trace.memory.push_back({.bytes = -100, .total_allocated = 50, .device = 0});
  trace.memory.push_back({.bytes = 20, .total_allocated = 70, .device = 0});
  EXPECT_EQ(allocators_json(trace).at(0).at("peak_allocated_bytes"), 150);
}

}  // namespace
}  // namespace foretrace

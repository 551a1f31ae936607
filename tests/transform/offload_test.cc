#include <gtest/gtest.h>

#include <random>

#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "support/random_graph.h"
#include "support/simulated.h"
#include "transform/edit/channel.h"
#include "transform/edit/load_curve.h"

namespace foretrace {
namespace {

/// At 1 GB/s, 1 kB takes a tick.
std::string offload(const std::string& settings = "") {
  return "offload:host_bandwidth=1GB/s,min_bytes=1B" + (settings.empty() ? "" : "," + settings);
}

/// The picture, or the message of the Error.
std::string pictured(std::string_view graph_text, const std::string& step) {
  try {
    Graph graph = parse_graph(graph_text);
    read_transform_text(step)->apply(graph, {});
    return "\n" + to_ascii(graph, simulate(graph));
  } catch (const Error& error) {
    return error.what();
  }
}

std::string figures_of(std::string_view graph_text, const std::string& step) {
  try {
    Graph graph = parse_graph(graph_text);
    const Effect effect = read_transform_text(step)->apply(graph, {});
    std::string text;
    for (const Figure& figure : effect.figures)
      text += (text.empty() ? "" : ", ") + figure.name + " " + to_text(figure);
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

// A makes X, and Z reads it again; in between other blocks are allocated and freed.
constexpr auto kWait = R"(
    stream: A 1, B 2, C 4, D 4, E 5, Z 1
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: D .. E writes D
)";

TEST(Offload, Baseline) {
  EXPECT_EQ(pictured(kWait, "scale:factor=1"), R"(
stream |ABBCCCCDDDDEEEEEZ|
)");
}

TEST(Offload, ACopyThatFitsDelaysNothing) {
  EXPECT_EQ(pictured(kWait, offload()), R"(
stream   |ABBCCCCDDDDEEEEEZ|
swap out |.oooo............|
swap in  |...........iiii..|
)");
}

TEST(Offload, ABlockThatIsAwayIsNotOnTheDevice) {
  Graph graph = parse_graph(kWait);
  read_transform_text(offload())->apply(graph, {});
  const Timeline timeline = simulate(graph);
  std::string levels;
  for (const MemoryCurve::Point& point : timeline.memory.at(0).points) {
    levels += std::to_string(point.time / 1us) + ":" + to_text(point.allocated) + " ";
  }
  EXPECT_EQ(levels, "0:4 kB 5:0 B 7:8 kB 11:4 kB 16:0 B ");
}

TEST(Offload, TheCopyBackWaitsForTheLastTaskThatLeavesItEnoughTime) {
  // The copy takes 2 ticks: it waits for D, not for C.
  EXPECT_EQ(pictured(R"(
    stream: A 1, B 2, C 4, D 4, E 3, Z 1
    @alloc 2kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: C .. D writes C
)",
                     offload()),
            R"(
stream   |ABBCCCCDDDDEEEZ|
swap out |.oo............|
swap in  |...........ii..|
)");
}

// The host has made all its allocator calls before the device has done the second kernel.
TEST(Offload, WhereTheHostCallsTheAllocatorRoomIsGivenBackInTheOrderOfItsCalls) {
  Graph graph = parse_graph(R"(
    cpu:    LA:launch 1, LB:launch 1, LC:launch 1, LD:launch 1, LE:launch 1, LZ:launch 1
    stream: A 1, B 2, C 4, D 4, E 5, Z 1
    LA -> A
    LB -> B
    LC -> C
    LD -> D
    LE -> E
    LZ -> Z
    @alloc 4kB use=activation: LA .. LZ writes A reads Z
    @alloc 8kB use=temporary: LD .. LE writes D
)");
  read_transform_text(offload())->apply(graph, {});
  const Timeline timeline = simulate(graph);
  EXPECT_EQ("\n" + to_ascii(graph, timeline), R"(
cpu      |LLLLLL............|
stream   |.ABBCCCCDDDDEEEEEZ|
swap out |..oooo............|
swap in  |............iiii..|
)");
  // D, which may write where the block was, waits for the copy.
  EXPECT_EQ(graph.name(graph.allocations()[0].freed_by), "LD");
  EXPECT_EQ(graph.name(graph.allocations()[2].made_by), "launch swap in");
  EXPECT_EQ(timeline.memory.at(0).peak, Bytes{8000});
}

TEST(Offload, CopiesOfOneDirectionWaitForEachOther) {
  // With the link for itself each block would be out by 4; the link carries one copy at a time.
  EXPECT_EQ(pictured(R"(
    stream: A 1, B 3, C 3, D 1, E 3, F 3, Y 1, Z 1
    @alloc 3kB use=activation: A .. Y writes A reads Y
    @alloc 3kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: D .. E writes D
)",
                     offload()),
            R"(
stream   |ABBBCCCDEEEFFFYZ|
swap out |.oooooo.........|
swap in  |........iiiiii..|
)");
}

TEST(Offload, CopiesOfTheTraceComeFirst) {
  EXPECT_EQ(pictured(R"(
    stream: A 1, B 2, C 5, D 4, E 5, Z 1
    loss: L:copy_out 3
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: D .. E writes D
)",
                     offload()),
            R"(
stream   |ABBCCCCCDDDDEEEEEZ|
loss     |LLL...............|
swap out |...oooo...........|
swap in  |............iiii..|
)");
}

TEST(Offload, WhatDoesNotFitStays) {
  constexpr auto kShort = R"(
    stream: A 1, B 3, C 4, Z 1
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: B .. C writes B
)";
  Graph graph = parse_graph(kShort);
  const Effect effect = read_transform_text(offload())->apply(graph, {});
  EXPECT_EQ(effect.changed, 0U);
  EXPECT_EQ(to_text(graph), to_text(parse_graph(kShort)));
  EXPECT_EQ(
      effect.notes.all().at(0).text,
      "no block of at least 1 B is unused at the peak for long enough to leave and come back");
}

TEST(Offload, MayDelayWhereThatIsAllowed) {
  // The peak waits for the copy out, and the copy back waits for the end of the peak.
  EXPECT_EQ(pictured(R"(
    stream: A 1, B 3, C 4, Z 1
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: C .. Z writes C
)",
                     offload("hide=allow")),
            R"(
stream   |ABBB.CCCC....Z|
swap out |.oooo.........|
swap in  |.........iiii.|
)");
}

TEST(Offload, TheBoundIsExactToTheByte) {
  const auto hideable = [](Bytes size, Nanoseconds wait) {
    Graph graph = parse_graph("stream: A 1, W 1, Z 1\n@alloc 1B: A .. Z writes A reads Z");
    graph.allocations()[0].bytes = size;
    graph.task(TaskId{1}).duration = wait;
    const Effect effect =
        read_transform_text("offload:host_bandwidth=6.3GB/s,back_bandwidth=6.4GB/s,min_bytes=1B")
            ->apply(graph, {});
    return std::get<double>(effect.figures.back().value) == 1;
  };
  EXPECT_TRUE(hideable(Bytes{79'370}, 25us));
  EXPECT_FALSE(hideable(Bytes{79'371}, 25us));
  const Bytes most = swappable(800ms, {6.3e9}, {6.4e9});
  EXPECT_EQ(most.count / 100'000, 25'398);
  EXPECT_TRUE(hideable(most, 800ms));
  // The clock counts nanoseconds, in each of which 3 bytes are copied.
  EXPECT_FALSE(hideable(most + Bytes{7}, 800ms));
}

TEST(Offload, CountsWhatItDid) {
  EXPECT_EQ(figures_of(kWait, offload()),
            "offloaded_bytes 4 kB, saved_at_peak 4 kB, peak_before 12 kB, peak_after 8 kB, "
            "hidden_copies 2, late_copies 0, added_time 0 ns, host_memory 4 kB, waits 1, "
            "hideable_waits 1");
}

TEST(Offload, GoesNoFurtherThanAsked) {
  constexpr auto kThree = R"(
    stream: A 1, B 12, C 1, D 1, E 12, X 1, Y 1, Z 1
    @alloc 2kB use=activation: A .. X writes A reads X
    @alloc 3kB use=activation: A .. Y writes A reads Y
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 1kB use=temporary: C .. D writes C
)";
  const auto peak_after = [&](const std::string& settings) {
    const std::string figures = figures_of(kThree, offload(settings));
    const std::size_t at = figures.find("peak_after ") + 11;
    return figures.substr(at, figures.find(',', at) - at);
  };
  EXPECT_EQ(peak_after("score=wdoa"),
            "9 kB");  // The block of A, before anything can be copied out.
  const std::string first = figures_of(kThree, offload("where.min_bytes=4kB"));
  EXPECT_NE(first.find("offloaded_bytes 4 kB"), first.npos) << first;
  const std::string none = figures_of(kThree, offload("target=20kB"));
  EXPECT_NE(none.find("offloaded_bytes 0 B"), none.npos) << none;
}

// Each direction takes twice as long.
TEST(Offload, TwoDevicesOnALinkHaveHalfOfItEach) {
  EXPECT_EQ(pictured(R"(
    stream: A 1, B 9, C 4, D 9, Z 1
    @alloc 4kB use=activation: A .. Z writes A reads Z
    @alloc 8kB use=temporary: C .. D writes C
)",
                     offload("shared_link=true")),
            R"(
stream   |ABBBBBBBBBCCCCDDDDDDDDDZ|
swap out |.oooooooo...............|
swap in  |..............iiiiiiii..|
)");
}

TEST(Offload, SaysWhereItsTargetIsOutOfReach) {
  const auto missed = [](const std::string& target) {
    Graph graph = parse_graph(kWait);
    return read_transform_text(offload("target=" + target))
        ->apply(graph, {})
        .notes.count("offload does not reach its target");
  };
  EXPECT_EQ(missed("1kB"), 1);
  EXPECT_EQ(missed("20kB"), 0);
}

TEST(Offload, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"offload",
       "host_bandwidth: must be given, as the trace does not say what device it was recorded on"},
      {"offload:host_bandwidth=1GB/s,where.use=input",
       "no allocation matches \"where\" (use input)"},
      {"offload:host_bandwidth=1GB/s,policy=all,min_bytes=1B",
       "policy: \"all\" finds no block of at least 1 B that the forward pass leaves for the "
       "backward pass; the phases of this trace are unknown"},
      {"offload:host_bandwidth=1GB/s,policy=dyn",
       "target: must be given, as the trace does not say what device it was recorded on"},
      {"offload:share=2", "offload: share: must be at most 1, got 2"},
  };
  for (const auto& [step, message] : cases) EXPECT_EQ(pictured(kWait, step), message);
  EXPECT_EQ(pictured("x: A 1\n@alloc 7B: A ..", offload()),
            "policy: needs to know which tasks use which blocks, which this trace does not show");
}

// vDNN's small example: layers of 10 whose inputs take 15, 5 and 8.
constexpr auto kLayers = R"(
    stream: i 1, "a conv" 10 {phase=forward layer=0}, b 10 {phase=forward layer=1}, "c conv" 10 {phase=forward layer=2}, l 1, "C conv" 10 {phase=backward layer=2}, B 10 {phase=backward layer=1}, "A conv" 10 {phase=backward layer=0}, u 1
    @alloc 15kB use=input: i .. u writes i reads "a conv", "A conv"
    @alloc 5kB use=activation: "a conv" .. "A conv" writes "a conv" reads b, B
    @alloc 8kB use=activation: b .. B writes b reads "c conv", "C conv"
    @alloc 10kB use=temporary: l .. "C conv" writes l
)";

TEST(OffloadByLayer, TheForwardPassTakesTheLongerOfComputingAndCopying) {
  // 15 + 10 + 10 forward. In the backward pass c's own input is copied when it is needed; then C
  // fetches the input of b, and B that of a.
  EXPECT_EQ(pictured(kLayers, offload("policy=all")), R"(
stream   |iaaaaaaaaaa.....bbbbbbbbbbccccccccccl........CCCCCCCCCCBBBBBBBBBB.....AAAAAAAAAAu|
swap out |.oooooooooooooooooooo.....oooooooo...............................................|
swap in  |.....................................iiiiiiiiiiiii.....iiiiiiiiiiiiiii...........|
)");
}

TEST(OffloadByLayer, OnlyConvolutionsLeaveTheirInputs) {
  EXPECT_EQ(pictured(kLayers, offload("policy=conv")), R"(
stream   |iaaaaaaaaaa.....bbbbbbbbbbccccccccccl........CCCCCCCCCC.....BBBBBBBBBBAAAAAAAAAAu|
swap out |.ooooooooooooooo..........oooooooo...............................................|
swap in  |.....................................iiiiiiiiiiiiiiiiiiiiiii.....................|
)");
}

TEST(OffloadByLayer, ALayerOfThreeMillisecondsHidesAtMost36Megabytes) {
  // Capuchin: convolutions of InceptionV3 on P100 mostly take less than 3 ms, over PCIe at 12 GB/s.
  const auto added = [](const char* size) {
    const std::string graph =
        "stream: i 1, a 3000 {phase=forward layer=0}, b 3000 {phase=forward layer=1}, B 9000 "
        "{phase=backward layer=1}, A 3000 {phase=backward layer=0}\n@alloc " +
        std::string(size) + ": i .. A writes i reads a, A";
    const std::string figures = figures_of(graph, "offload:host_bandwidth=12GB/s,policy=all");
    const std::size_t at = figures.find("added_time ") + 11;
    return figures.substr(at, figures.find(',', at) - at);
  };
  EXPECT_EQ(added("36MB"), "0 ns");
  EXPECT_EQ(added("42MB"), "500 us");
}

TEST(OffloadByLayer, WhatCameBackGoesWithItsLastUse) {
  Graph graph = parse_graph(R"(
    stream: i 1, a 10 {phase=forward layer=0}, b 10 {phase=forward layer=1}
    stream: B 10 {phase=backward layer=1}, A 10 {phase=backward layer=0}, e 9 {phase=backward}, f 1
    @alloc 10kB use=activation: i .. f writes i reads a, A
  )");
  read_transform_text("offload:host_bandwidth=1GB/s,min_bytes=1B,policy=all")->apply(graph, {});
  ASSERT_EQ(graph.allocations().size(), 2U);
  EXPECT_EQ(graph.name(graph.allocations()[1].freed_by), "A");
}

TEST(OffloadByLayer, WithoutConvolutionsThePolicyForThemIsRefused) {
  Graph graph = parse_graph(R"(
    stream: i 1, a 10 {phase=forward layer=0}, A 10 {phase=backward layer=0}
    @alloc 10kB use=activation: i .. A writes i reads a, A
  )");
  try {
    read_transform_text("offload:host_bandwidth=1GB/s,min_bytes=1B,policy=conv")->apply(graph, {});
    ADD_FAILURE() << "must be refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("policy: \"conv\" finds no convolution"),
              std::string::npos)
        << error.what();
  }
}

TEST(OffloadByLayer, TheLeastThatFitsIsChosen) {
  const auto chosen = [](const std::string& target) {
    Graph graph = parse_graph(kLayers);
    const Effect effect =
        read_transform_text(offload("policy=dyn,target=" + target))->apply(graph, {});
    const std::string& text = effect.summary;
    return text.substr(0, text.find(':')) + (effect.notes.empty() ? "" : "!");
  };
  EXPECT_EQ(chosen("38kB"), "vDNN chooses none to fit 38 kB");
  EXPECT_EQ(chosen("30kB"), "vDNN chooses conv to fit 30 kB");
  EXPECT_EQ(chosen("20kB"), "vDNN chooses all to fit 20 kB");
  EXPECT_EQ(chosen("1kB"), "vDNN chooses all to fit 1 kB!");
}

/// Blocks with one to four accesses each, allocated and freed by any tasks in order of time.
void add_blocks(Graph& graph, std::mt19937& random) {
  const Timeline timeline = simulate(graph);
  for (std::uint32_t number = 0; number < 20; ++number) {
    std::vector<TaskId> users;
    for (unsigned i = 0; i < 2 + random() % 4; ++i)
      users.push_back(TaskId{static_cast<std::uint32_t>(random() % graph.task_count())});
    std::sort(users.begin(), users.end(), [&](TaskId a, TaskId b) {
      return timeline.start[index(a)] < timeline.start[index(b)];
    });
    graph.allocations().push_back({.bytes = Bytes{1 + static_cast<std::int64_t>(random() % 9000)},
                                   .made_by = users.front(),
                                   .freed_by = users.back()});
    for (const TaskId task : users)
      graph.accesses().push_back({number, task, task == users.front()});
  }
}

TEST(Offload, NoPlannedSwapEverDelaysAnAccess) {
  std::mt19937 random(7);
  std::size_t trips = 0;
  for (int run = 0; run < 400; ++run) {
    Graph graph = random_graph(random, {.lanes = 3, .tasks = 40, .lags = run % 2 == 0});
    add_blocks(graph, random);
    const Timeline before = simulate(graph);
    const std::size_t tasks = graph.task_count();
    const char* const kScores[] = {"doa", "aoa", "wdoa", "swdoa"};
    const Effect effect =
        read_transform_text(offload(std::string("score=") + kScores[run % 4]))->apply(graph, {});
    trips += effect.changed;
    const Timeline after = simulate(graph);
    for (std::size_t i = 0; i < tasks; ++i) ASSERT_EQ(after.start[i], before.start[i]) << run;
    ASSERT_LE(after.memory.at(0).peak, before.memory.at(0).peak) << run;
  }
  EXPECT_GT(trips, 100U);
}

TEST(Offload, DelaysLeaveAGraphThatReplays) {
  std::mt19937 random(11);
  for (int run = 0; run < 400; ++run) {
    Graph graph = random_graph(random, {.lanes = 3, .tasks = 40});
    add_blocks(graph, random);
    read_transform_text("offload:hide=allow,min_bytes=1B,host_bandwidth=0.2GB/s")->apply(graph, {});
    EXPECT_GE(simulate(graph).length, 0ns);
  }
}

TEST(Channel, FindsSlotsThatAreFree) {
  Channel channel;
  EXPECT_EQ(channel.first_slot(1ns, 4ns), 1ns);
  channel.take(2ns, 5ns), channel.take(10ns, 12ns);
  EXPECT_EQ(channel.first_slot(1ns, 4ns), 5ns);
  EXPECT_EQ(channel.first_slot(1ns, 1ns), 1ns);
  EXPECT_EQ(channel.first_slot(3ns, 6ns), 12ns);
  EXPECT_EQ(channel.last_slot(16ns, 4ns), 12ns);
  EXPECT_EQ(channel.last_slot(15ns, 4ns), 6ns);
  EXPECT_EQ(channel.last_slot(9ns, 5ns), -3ns);
  channel.take(5ns, 10ns);  // Now one from 2 to 12.
  EXPECT_EQ(channel.first_slot(2ns, 1ns), 12ns);
  EXPECT_EQ(channel.last_slot(12ns, 1ns), 1ns);
}

TEST(LoadCurve, IsLoweredWhereABlockIsAwayAllTheTime) {
  const Graph graph = parse_graph(R"(
    x: A 2, B 2, C 2, D 2
    @alloc 5B: A .. D
    @alloc 3B: B .. C
    @alloc 3B: C .. D
)");
  const Timeline timeline = simulate(graph);
  LoadCurve curve(graph, timeline, memory_events(graph, timeline), 0);
  EXPECT_EQ(curve.peak(), Bytes{8});
  EXPECT_EQ(curve.peak_interval().start, 2us);
  EXPECT_EQ(curve.area(0us, 4us), (5 + 8) * 2000.0);
  curve.lower(1us, 4us, Bytes{5});
  EXPECT_EQ(curve.area(0us, 4us), (5 + 3) * 2000.0);
  EXPECT_EQ(curve.peak_interval().start, 4us);
  curve.lower(3us, 5us, Bytes{5});  // Covers no interval as a whole.
  EXPECT_EQ(curve.peak(), Bytes{8});
}

}  // namespace
}  // namespace foretrace

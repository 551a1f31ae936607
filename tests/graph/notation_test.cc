#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "support/random_graph.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

std::string error_of(std::string_view text) {
  try {
    (void)parse_graph(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Everything that the notation can express, as to_text() writes it.
constexpr std::string_view kEverything = R"graph(@step ProfilerStep#7
@step "a \"b\" \\ \x01"
@memory 2GB device=0
cpu: L:launch 3 {step=0}, M:launch 5
"stream 7" [rank=3]: i:copy_in 2 {bytes=4MB}, A 4.5 {phase=forward layer=3 module=Bert_0/Linear_3 flops=1000000000000 fill=0.25 gap=2.001 tail=12.5% priority=-4 record=17}
"stream 7~2"="stream 7" [device=1]: A~2=A 6.667, "void f<int>(float, \"x\")" 1
host [host_thread]: "" 0, x:marker 0
link [link shared=25GB/s]: t:transfer 0 {bytes=1GB}
net [link device=2 priority=1.5]:
empty:
L -> i [measured launch]
M ->+2 A
M ^-> t [inferred "event wait"]
M ^->+0.001 A~2 [assumed]
i ->-33.3%+0.001 t [inferred "event wait"]
A~2 -> ""
@alloc 4MB device=0 stream="stream 7": i .. A
@alloc 4MB device=0: .. A
@alloc 4MB device=1: A~2 ..
@alloc 1MB device=0 use=activation requested=999998B op="aten::relu" stack="train.py:8 f;g" made=3+0.5 freed=7: L .. M writes i reads A, t
@alloc 1MB device=0: .. reads A writes A
)graph";

TEST(Notation, WritesWhatItReads) { EXPECT_EQ(to_text(parse_graph(kEverything)), kEverything); }

TEST(Notation, ReadsWhatItWritesOfAnyGraph) {
  std::mt19937 random(3);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    const std::string text = to_text(random_graph(random));
    EXPECT_EQ(to_text(parse_graph(text)), text);
  }
}

TEST(Notation, ReadsAttributes) {
  const Graph graph = parse_graph(kEverything);
  const Task& task = graph.task(named(graph, "A"));
  EXPECT_EQ(task.duration, 4500ns);
  EXPECT_EQ(task.gap, 2001ns);
  EXPECT_EQ(task.tail, TailShare::nearest(0.125));
  EXPECT_EQ(task.phase, Phase::forward);
  EXPECT_EQ(task.layer, 3);
  EXPECT_EQ(graph.names()[task.module], "Bert_0/Linear_3");
  EXPECT_EQ(task.flops, 1e12);
  EXPECT_EQ(task.priority, -4);
  EXPECT_EQ(task.record, 17U);
  EXPECT_EQ(graph.lane(LaneId{0}).kind, LaneKind::host_thread);
  EXPECT_EQ(graph.lane(LaneId{0}).device, -1);
  EXPECT_EQ(graph.lane(LaneId{1}).kind, LaneKind::stream);
  EXPECT_EQ(graph.lane(LaneId{1}).device, 0);
  EXPECT_EQ(graph.lane(LaneId{1}).rank, 3);
  EXPECT_EQ(graph.lane(LaneId{4}).capacity.bytes_per_second, 25e9);
  EXPECT_EQ(graph.lane(LaneId{5}).discipline, Discipline::priority);
  EXPECT_EQ(graph.lane(LaneId{5}).slice, 1500ns);
  EXPECT_EQ(graph.steps().at(0).name, "ProfilerStep#7");
  EXPECT_EQ(graph.initial_memory().at(0).count, 2'000'000'000);
  EXPECT_EQ(graph.allocations().at(0).stream, LaneId{1});
}

TEST(Notation, ATailIsAShareOfTheTaskInFront) {
  const Graph graph = parse_graph("x: A 5\ny: B 1\nA ->-40% B\n");
  graph.each_dependency([](const Dependency& wait) {
    EXPECT_EQ(wait.tail.of(5us), 2us);
    EXPECT_EQ(wait.lag, 0us);
  });
}

TEST(Notation, RefusesWhatOverlapsByATime) {
  EXPECT_THROW(parse_graph("x: A 5\ny: B 1\nA ->-2 B\n"), Error);
  EXPECT_THROW(parse_graph("x: A 5\ny: B 1\nA ->-101% B\n"), Error);
  EXPECT_THROW(parse_graph("x: A 5, B 1 {gap=-1}\n"), Error);
}

TEST(Notation, IsNotParticularAboutSpace) {
  EXPECT_EQ(
      to_text(parse_graph("\n  x:A 1,B:fill 2{step=1 gap=3} # end\r\n\n\tA->B\nA ^->+1B # x")),
      "x: A 1, B:fill 2 {step=1 gap=3}\nA -> B\nA ^->+1 B\n");
}

TEST(Notation, ALaneMayBeContinued) {
  EXPECT_EQ(to_text(parse_graph("x: A 1\ny: B 1\nx: C 1")), "x: A 1, C 1\ny: B 1\n");
}

TEST(Notation, LeavesOutRemovedTasks) {
  Graph graph = parse_graph("x: A 1, B 1, C 1\ny: D 1\nB -> D");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(to_text(graph), "x: A 1, C 1\ny: D 1\n");
}

TEST(Notation, AnyTextIsAGraphOrAnError) {
  std::mt19937 random(5);
  for (int run = 0; run < 3000; ++run) {
    std::string text(kEverything);
    for (auto changes = random() % 8; changes > 0; --changes) {
      const std::size_t at = random() % text.size();
      const std::size_t length = random() % 6;
      text.replace(at, length, text.substr(random() % text.size(), random() % 12));
    }
    SCOPED_TRACE(text);
    try {
      const std::string written = to_text(parse_graph(text));
      EXPECT_EQ(to_text(parse_graph(written)), written);
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("line ")) << error.what();
    }
  }
}

TEST(Notation, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"x: A", "line 1: expected a number of ticks, found the end of the line"},
      {"x: A 1 B 2", "line 1: expected the end of the line, found \"B 2\""},
      {"x: A 1,", "line 1: expected a task, found the end of the line"},
      {"x: A -1", "line 1: a task cannot take less than 0"},
      {"x: A 1.2345", "line 1: a tick has at most three decimals"},
      {"x: A 99999999999999999999", "line 1: a time must be less than 104 days"},
      {"x: A:kernal 1", "line 1: \"kernal\" is unknown (did you mean \"kernel\"?)"},
      {"x: A 1 {stop=1}",
       "line 1: a task has no attribute \"stop\"; it has bytes, fill, flops, gap, inner, layer, "
       "module, phase, priority, record, step, tail"},
      {"x: A 1 {step=1", "line 1: expected an attribute of a task, found the end of the line"},
      {"x: A 1 {step=one}", "line 1: must be a number, got \"one\""},
      {"x: A 1 {step=99999999999}", "line 1: \"99999999999\" is out of range"},
      {"\nx [fast]: A 1", "line 2: \"fast\" is unknown"},
      {"x [speed=1]: A 1",
       "line 1: a lane has no attribute \"speed\"; it has device, rank, shared, priority"},
      {"x: A 1\nA -> B", "line 2: there is no task B"},
      {"x: A 1, A 1, B 1\nA -> B",
       "line 2: several tasks are called A; give them labels (label=\"name\")"},
      {"x: A 1, B 1\nA -> B [sure]", "line 2: \"sure\" is unknown"},
      {"x: \"A 1", "line 1: a \" is missing"},
      {"x: \"A\\q\" 1", "line 1: in quotes must follow \\ one of \" \\ n t xHH, found q"},
      {"@now", "line 1: expected @step, @memory or @alloc, found \"now\""},
      {"@memory 1GB device=99999999", "line 1: there are at most 65536 devices"},
      {"@alloc 1GB stream=x: ..", "line 1: there is no lane x"},
      {"@alloc 1GB size=x: ..",
       "line 1: an allocation has no attribute \"size\"; it has device, freed, made, op, "
       "requested, "
       "stack, stream, use"},
      {"@alloc 1GB use=weights: ..", "line 1: \"weights\" is unknown"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

TEST(Notation, NamesOfRulesParseBackAndOtherReasonsAreTexts) {
  const Graph graph = parse_graph(
      "x: A 1, B 1\ny: C 1, D 1\n"
      "A -> C [measured launch]\nA -> D [inferred \"event wait\"]\nB -> D [assumed slice]\n");
  std::vector<WaitReason> reasons;
  graph.each_dependency([&](const Dependency& wait) { reasons.push_back(wait.why); });
  ASSERT_EQ(reasons.size(), 3U);
  EXPECT_EQ(reasons[0], Rule::launch);
  EXPECT_EQ(reasons[1], Rule::event_wait);
  EXPECT_EQ(to_string(reasons[1], graph.names()), "event wait");
  EXPECT_EQ(to_string(reasons[2], graph.names()), "slice");
  EXPECT_EQ(graph.names().find("launch"), NameId{});
}

}  // namespace
}  // namespace foretrace

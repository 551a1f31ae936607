#include <gtest/gtest.h>

#include "support/picture.h"

namespace foretrace {
namespace {

TEST(Simulate, TasksOnALaneFollowEachOther) {
  EXPECT_EQ(picture("stream: A 2, B 3, C 1"), R"(
stream |AABBBC|
)");
}

TEST(Simulate, AKernelWaitsForItsLaunch) {
  EXPECT_EQ(picture(R"(
    cpu:    L:launch 3, M:launch 5
    stream: A 4, B 4
    L -> A
    M -> B
)"),
            R"(
cpu    |LLLMMMMM....|
stream |...AAAA.BBBB|
)");
}

TEST(Simulate, ALagDelaysFromTheFinishOrTheStart) {
  EXPECT_EQ(picture(R"(
    x: A 2
    y: B 2
    z: C 2
    A ->+1 B
    A ^->+1 C
)"),
            R"(
x |AA...|
y |...BB|
z |.CC..|
)");
}

TEST(Simulate, AGapKeepsALaneIdle) {
  EXPECT_EQ(picture("x: A 2, B 1 {gap=2}"), R"(
x |AA..B|
)");
}

TEST(Simulate, ATaskMayStartBesideTheTailOfTheOneInFront) {
  EXPECT_EQ(picture("x: A 4, B 4 {tail=25%}, C 1 {tail=100%}"), R"(
x |AAAA...|
  |...BBBB|
  |...C...|
)");
}

TEST(Simulate, ATailIsLeftOfATaskThatTakesHalfTheTime) {
  EXPECT_EQ(picture("x: A 2, B 4 {tail=50%}\ny: C 1\nA ->-50%+1 C"), R"(
x |AA...|
  |.BBBB|
y |..C..|
)");
}

TEST(Simulate, ADependencyMayOverlapTheTailToo) {
  EXPECT_EQ(picture(R"(
    x: A 2, B 4, C 1
    y: D 3
    z: E 1
    w: F 1
    B ->-25% D
    C ->-100% E
    C ^-> F
)"),
            R"(
x |AABBBBC.|
y |.....DDD|
z |......E.|
w |......F.|
)");
}

TEST(Simulate, AHugeCycleIsCutShort) {
  Graph graph = parse_graph("x:");
  for (int i = 0; i < 100'000; ++i) graph.append(LaneId{0}, {.name = graph.names().intern("t")});
  graph.add({.before = graph.last(LaneId{0}), .after = graph.first(LaneId{0})});
  const std::string text = picture(graph);
  EXPECT_TRUE(text.starts_with("tasks wait for each other in a cycle of 100000: \"t\" on x -> "))
      << text;
  EXPECT_LT(text.size(), 1000U);
}

TEST(Simulate, SaysWhoWaitsInACycle) {
  EXPECT_EQ(picture(R"(
    cpu:    L:launch 3, S:sync 5
    stream: A 4
    S -> A [inferred "event wait"]
    A -> L [measured]
)"),
            "tasks wait for each other in a cycle of 3: \"L\" on cpu -> \"S\" on cpu (structural, "
            "in line) -> "
            "\"A\" on stream (inferred, event wait) -> \"L\" on cpu (measured)");
}

}  // namespace
}  // namespace foretrace

// Lanes whose tasks do not simply follow each other: shared and priority lanes.

#include <gtest/gtest.h>

#include "support/picture.h"

namespace foretrace {
namespace {

TEST(PriorityLane, TheMostUrgentReadyTaskRuns) {
  EXPECT_EQ(picture("x [priority=0]: A 2 {priority=1}, B 2 {priority=3}, C 2 {priority=2}"), R"(
x |BBCCAA|
)");
}

TEST(PriorityLane, EquallyUrgentTasksRunAsTheyArrive) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 1, M:launch 1
    x [priority=0]: A 2, B 2, C 2
    L -> B
    M -> A
  )"),
            R"(
cpu |LM....|
x   |CCBBAA|
)");
}

TEST(PriorityLane, AnUrgentTaskSetsTheRunningOneAside) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 3
    x [priority=0]: a 6
    x: b 2 {priority=1}
    L -> b
  )"),
            R"(
cpu |LLL.....|
x   |aaaaaaaa|
    |...bb...|
)");
}

// c has waited as long as a, which has already begun.
TEST(PriorityLane, WhatWasSetAsideGoesOnInFrontOfItsEquals) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 3
    x [priority=0]: a 6
    x: c 2
    x: b 2 {priority=1}
    L -> b
  )"),
            R"(
cpu |LLL.......|
x   |aaaaaaaacc|
    |...bb.....|
)");
}

TEST(PriorityLane, ButNotBeforeTheEndOfItsSlice) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 3
    x [priority=2]: a 6
    x: b 3 {priority=1}
    y: c 1
    L -> b
    a -> c
  )"),
            R"(
cpu |LLL.......|
x   |aaaaaaaaa.|
    |....bbb...|
y   |.........c|
)");
}

TEST(PriorityLane, ATaskThatEndsWithItsSliceIsNotSetAside) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 3
    x [priority=4]: a 4
    x: b 3 {priority=1}
    L -> b
  )"),
            R"(
cpu |LLL....|
x   |aaaabbb|
)");
}

TEST(SharedLane, TasksDivideTheCapacity) {
  // 3 kB at 1 GB/s take 3us alone.
  EXPECT_EQ(picture(R"(
    link [shared=1GB/s]: a 0 {bytes=3kB}, b 0 {bytes=3kB}, c 0 {bytes=6kB}
  )"),
            R"(
link |aaaaaaaaa...|
     |bbbbbbbbb...|
     |cccccccccccc|
)");
}

TEST(SharedLane, WhatALimitedTaskLeavesGoesToTheOthers) {
  // a takes a quarter of the capacity and no more; b gets the rest.
  EXPECT_EQ(picture(R"(
    link [shared=1GB/s]: a 8 {bytes=2kB}, b 0 {bytes=6kB}
  )"),
            R"(
link |aaaaaaaa|
     |bbbbbbbb|
)");
}

TEST(SharedLane, ATaskIsHeldUpOnlyWhileOthersShare) {
  // a runs alone until 2; a and b share the capacity until b is done at 6; then a is alone again.
  EXPECT_EQ(picture(R"(
    cpu: L:launch 2
    link [shared=1GB/s]: a 6 {bytes=6kB}, b 1 {bytes=2kB}
    L -> b
  )"),
            R"(
cpu  |LL......|
link |aaaaaaaa|
     |..bbbb..|
)");
}

TEST(SharedLane, ATaskWithoutBytesTakesItsDuration) {
  EXPECT_EQ(picture("link [shared=1GB/s]: a 3, b 0 {bytes=2kB}, c 0"), R"(
link |aaa|
     |bb.|
)");
}

TEST(SharedLane, OthersWaitForAStartOrAFinish) {
  EXPECT_EQ(picture(R"(
    x: A 2, B 1
    link [shared=1GB/s]: t 0 {bytes=4kB}
    y: C 1
    z: D 1
    A -> t
    t ->+1 C
    t ^->+1 D
  )"),
            R"(
x    |AAB.....|
link |..tttt..|
y    |.......C|
z    |...D....|
)");
}

TEST(SharedLane, WithoutCapacityIsAnError) {
  EXPECT_EQ(picture("link [shared=0B/s]: a 3 {bytes=1kB}"),
            "some tasks never finish: the capacity of a shared lane must be above 0, and large "
            "enough for its tasks");
  EXPECT_EQ(picture("link [shared=0B/s]: a 3"), R"(
link |aaa|
)");
}

TEST(SharedLane, ThousandsOfEqualTransfersEndTogether) {
  Graph graph = parse_graph("link [shared=1GB/s]:");
  for (int i = 0; i < 10'000; ++i) graph.append(LaneId{0}, {.bytes = Bytes{1000 + i % 3}});
  const Timeline timeline = simulate(graph);
  // 10000 tasks of 1000 bytes, then the remaining bytes of the others: 3333 * 1 + 3333 * 2 bytes at
  // 1 byte/ns.
  EXPECT_EQ(timeline.length, Nanoseconds(10'000 * 1000 + 3333 + 2 * 3333));
}

TEST(MixedLanes, EagerTasksMayRunAheadOfTheClock) {
  EXPECT_EQ(picture(R"(
    cpu: L:launch 1, M:launch 9
    x: A 1
    link [shared=1GB/s]: t 0 {bytes=3kB}, u 0 {bytes=1kB}
    L -> t
    t -> A
    M -> u
  )"),
            R"(
cpu  |LMMMMMMMMM.|
x    |....A......|
link |.ttt......u|
)");
}

}  // namespace
}  // namespace foretrace

// Replace, split, replicate, reorder, priority and dependencies: their effects on a graph, as
// pictures.

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kThreeLaunches = R"(
    cpu:    L:launch 1, M:launch 1, N:launch 1, O:launch 1
    stream: A 2 {layer=0}, B 2 {layer=0}, C 2 {layer=1}, D 2 {layer=1}
    L -> A
    M -> B
    N -> C
    O -> D
)";

TEST(Replace, FusesARunAndItsLaunches) {
  EXPECT_EQ(simulated(kThreeLaunches,
                      R"({"use": "replace", "where": {"name": "/[ABC]/"}, "name": "fused"})"),
            R"(
cpu    |LO.......|
stream |.ffffffDD|
)");
}

TEST(Replace, FusesPerLayerByTheLongest) {
  EXPECT_EQ(
      simulated(
          kThreeLaunches,
          R"({"use": "replace", "where": {"kind": "kernel"}, "per": "layer", "duration": "max",
                                          "factor": 1.5})"),
      R"(
cpu    |LN.....|
stream |.AAACCC|
)");
}

TEST(Replace, KeepsLaunchesWhenAsked) {
  EXPECT_EQ(simulated(kThreeLaunches,
                      R"({"use": "replace", "where": {"name": "/[BCD]/"}, "launches": false})"),
            R"(
cpu    |LMNO......|
stream |.AA.BBBBBB|
)");
}

TEST(Replace, WaitsForWhatItsPartsWaitedForElsewhere) {
  EXPECT_EQ(simulated(R"(
      a: A 1, B 1, C 1
      b: X 3, Y 1
      X -> C
      A -> Y
  )",
                      R"({"use": "replace", "where": {"name": "/[ABC]/"}})"),
            R"(
a |...AAA.|
b |XXX...Y|
)");
}

TEST(Replace, APathThroughAnotherTaskIsACycle) {
  EXPECT_NE(simulated(R"(
      a: A 1, B 1
      b: X 1
      A -> X
      X -> B
  )",
                      R"({"use": "replace", "where": {"name": "/[AB]/"}})")
                .find("cycle"),
            std::string::npos);
}

TEST(Split, SliceWaitsForSlice) {
  constexpr auto kTwoLanes = R"(
      a: A 4
      b: B 4
      A -> B
  )";
  EXPECT_EQ(simulated(kTwoLanes, R"({"use": "split"})"), R"(
a |AAAA..|
b |..BBBB|
)");
  EXPECT_EQ(simulated(kTwoLanes, R"({"use": "split", "slices": 4, "overhead": "1us"})"), R"(
a |AAAAAAA..|
b |.B.BBBBBB|
)");
}

TEST(Split, WhatIsNotSplitWaitsForTheLastSlice) {
  EXPECT_EQ(simulated(R"(
      a: A 4
      b: B 2
      c: C 2
      C -> A
      A -> B
  )",
                      R"({"use": "split", "where": {"name": "A"}})"),
            R"(
a |..AAAA..|
b |......BB|
c |CC......|
)");
}

TEST(Split, BySizeCutsLargeTasksOnly) {
  EXPECT_EQ(simulated(R"(
      a: A:transfer 6 {bytes=30B}, C:transfer 1 {bytes=5B}
      b: B 2
      A -> B
  )",
                      R"({"use": "split", "where": {"kind": "transfer"}, "size": "10B"})",
                      R"({"use": "remove", "where": {"name": "B"}})"),
            R"(
a |AAAAAAC|
)");
}

TEST(Replicate, CopiesRunBesideTheOriginals) {
  EXPECT_EQ(
      simulated(R"(
      stream: A 2, B 2
      next:   C 1
      B -> C
  )",
                R"({"use": "replicate", "where": {"stream": "stream"}, "copies": 2})",
                R"({"use": "scale", "where": {"stream": "stream#3", "name": "B"}, "factor": 2})"),
      R"(
stream   |AABB...|
next     |......C|
stream#2 |AABB...|
stream#3 |AABBBB.|
)");
}

TEST(Replicate, HasALimit) {
  std::string line = "stream: A 1";
  for (int i = 0; i < 100; ++i) line += ", A 1";
  EXPECT_EQ(simulated(line, R"({"use": "replicate", "copies": 100000})"),
            "copies: must add at most 10,000,000 tasks, got 100,000 times 101 tasks");
}

TEST(Reorder, SortsAmongThePlacesHeld) {
  EXPECT_EQ(simulated("link: c 1 {layer=2}, x 2, b 1 {layer=1}, a 1 {layer=0}",
                      R"({"use": "reorder", "where": {"name": "/[abc]/"}})"),
            R"(
link |axxbc|
)");
}

TEST(Reorder, CanBeReversed) {
  EXPECT_EQ(simulated("link: a 1, b 1, c 1", R"({"use": "reorder", "by": "reversed"})"), R"(
link |cba|
)");
}

TEST(Priority, TheFrontOfTheModelOvertakes) {
  EXPECT_EQ(simulated(R"(
      back: B 1, A 1
      link [link]: b:transfer 4 {layer=1}, a:transfer 2 {layer=0}
      B -> b
      A -> a
  )",
                      R"({"use": "priority", "where": {"kind": "transfer"}})"),
            R"(
back |BA.....|
link |.bbbbbb|
     |..aa...|
)");
}

TEST(AddDependency, NearestBefore) {
  EXPECT_EQ(
      simulated(
          R"(
      a: A 2, A 2
      b: B 1, W 2, B 1
  )",
          R"({"use": "add_dependency", "from": {"name": "A"}, "to": {"name": "B"}, "lag": "1us"})"),
      R"(
a |AAAA..|
b |BWW..B|
)");
}

TEST(AddDependency, StepsLater) {
  EXPECT_EQ(
      simulated(
          R"(
      a: A 3 {step=0}, A 3 {step=1}
      b: B 1 {step=0}, B 1 {step=1}
  )",
          R"({"use": "add_dependency", "from": {"name": "A"}, "to": {"name": "B"}, "match": "step", "steps": 1})"),
      R"(
a |AAAAAA|
b |B..B..|
)");
}

TEST(RemoveDependency, ByReason) {
  constexpr auto kTwoWaits = R"(
      a: A 3
      b: B 1
      c: C 1
      A -> B [inferred "guess"]
      A -> C [measured "event wait"]
  )";
  EXPECT_EQ(simulated(kTwoWaits, R"({"use": "remove_dependency", "why": "guess"})"), R"(
a |AAA.|
b |B...|
c |...C|
)");
  EXPECT_EQ(simulated(kTwoWaits, R"({"use": "remove_dependency", "provenance": "measured"})"), R"(
a |AAA.|
b |...B|
c |C...|
)");
  EXPECT_EQ(simulated(kTwoWaits, R"({"use": "remove_dependency", "why": "sync"})"),
            "no dependency matches (from any task to any task, why \"sync\")");
}

TEST(Structure, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "priority", "where": {"kind": "launch"}})",
       "where: must select work of streams, copy engines, links or disks, got the thread \"cpu\", "
       "which runs its work in order"},
      {R"({"use": "split", "slices": 0})", "slices: must be at least 1, got 0"},
      {R"({"use": "replicate", "copies": 0})", "copies: must be at least 1, got 0"},
      {R"({"use": "reorder", "by": "size"})",
       "by: must be one of layer, layer_reversed, name, duration, reversed, got \"size\""},
      {R"({"use": "add_dependency", "from": {"name": "Z"}})",
       "no task matches \"from\" (name \"Z\")"},
      {R"({"use": "add_dependency", "to": {"name": "L"}})",
       "no task of \"to\" has one of \"from\" to wait for (match nearest)"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kThreeLaunches, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// The host reads a value of each step (v) before it continues.
constexpr auto kReads = R"(
    @step one
    @step two
    cpu:    A:launch 1 {step=0}, v:launch 1 {step=0}, s:sync 1 {step=0}, B:launch 1 {step=0}, h 1 {step=1}, C:launch 1 {step=1}
    stream: a 5 {step=0}, r:copy_out 1 {step=0}, b 3 {step=0}, c 2 {step=1}
    A -> a
    v -> r
    r -> s
    B -> b
    C -> c
)";

TEST(RemoveSync, Baseline) {
  EXPECT_EQ(simulated(kReads), R"(
cpu    |Av.....sBhC...|
stream |.aaaaar..bbbcc|
)");
}

TEST(RemoveSync, TheHostRunsAhead) {
  EXPECT_EQ(simulated(kReads, R"({"use": "remove_sync"})"), R"(
cpu    |AvBhC.......|
stream |.aaaaarbbbcc|
)");
}

// A driver call that frees memory waits by itself, so it still does.
TEST(RemoveSync, DriverAllocationsStillWait) {
  EXPECT_EQ(simulated(R"(
    cpu:    A:launch 1, cudaFree:sync 1, B:launch 1, s:sync 1, C:launch 1
    stream: a 5, b 3, c 1
    A -> a
    a -> cudaFree
    B -> b
    b -> s
    C -> c
)",
                      R"({"use": "remove_sync"})"),
            R"(
cpu    |A.....cBC...|
stream |.aaaaa..bbbc|
)");
}

TEST(RemoveSync, TheValueIsNeededAtTheNextStep) {
  EXPECT_EQ(simulated(kReads, R"({"use": "remove_sync", "needed": "next_step"})"), R"(
cpu    |AvB....hC...|
stream |.aaaaarbbbcc|
)");
}

TEST(RemoveSync, TheCopyMayGoToo) {
  EXPECT_EQ(simulated(kReads, R"({"use": "remove_sync", "copies": "go"})"), R"(
cpu    |ABhC.......|
stream |.aaaaabbbcc|
)");
}

// On the stream, a follows b although it was launched first, so M cannot wait for a.
TEST(RemoveSync, ThreadsThatShareAStreamDoNotWaitInACycle) {
  EXPECT_EQ(simulated(R"(
    one:    L:launch 1, s:sync 1
    two:    h 2, M:launch 1
    stream: b 1, a 1
    L -> a
    M -> b
    a -> s
)",
                      R"({"use": "remove_sync", "queue": 1})"),
            R"(
one    |L....|
two    |hhM..|
stream |...ba|
)");
}

// a was launched before b but waits for it, as for room on the device: M cannot wait for a's place
// in the queue.
TEST(RemoveSync, WorkThatWaitsForALaterLaunchHoldsNoneBack) {
  EXPECT_EQ(simulated(R"(
    cpu: K:launch 1, L:launch 1, s:sync 1, M:launch 1
    x:   a 2
    y:   b 1
    z:   c 1
    K -> c
    L -> a
    M -> b
    c -> s
    b -> a [inferred "device full"]
)",
                      R"({"use": "remove_sync", "queue": 1})"),
            R"(
cpu |K.LM...|
x   |.....aa|
y   |....b..|
z   |.c.....|
)");
}

TEST(RemoveSync, TheLaunchQueueStillHoldsBack) {
  // Two launches ahead: the third launch waits for a, the fourth for r.
  EXPECT_EQ(simulated(kReads, R"({"use": "remove_sync", "queue": 2})"), R"(
cpu    |Av....BhC...|
stream |.aaaaarbbbcc|
)");
}

TEST(RemoveSync, SaysHowFarTheHostRan) {
  Graph graph = parse_graph(kReads);
  const Effect effect = read_transform_text("remove_sync")->apply(graph, {});
  EXPECT_EQ(effect.summary, "1 call no longer waits for the device");
  EXPECT_EQ(to_text(effect.figures.at(2)), "5 us");
  EXPECT_EQ(to_text(effect.figures.at(3)), "6 us");
}

TEST(RemoveSync, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "remove_sync", "where": {"kind": "launch"}})",
       "no task of \"where\" (kind launch) is a call that waits for the device"},
      {R"({"use": "remove_sync", "queue": 0})", "queue: must be at least 1, got 0"},
      {R"({"use": "remove_sync", "needed": "later"})",
       "needed: must be one of never, next_step, got \"later\""},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kReads, transform), message) << transform;
  }
}

}  // namespace
}  // namespace foretrace

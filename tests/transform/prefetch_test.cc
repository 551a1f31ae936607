#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Three iterations that copy, then compute. Prefetch may only change when the copies run.
constexpr auto kThreeIterations = R"(
    stream: i:copy_in 2, A 4, j:copy_in 2, B 4, k:copy_in 2, C 4
)";

TEST(Prefetch, Baseline) {
  EXPECT_EQ(simulated(kThreeIterations), R"(
stream |iiAAAAjjBBBBkkCCCC|
)");
}

TEST(Prefetch, TwoBuffersHideAllCopiesButTheFirst) {
  EXPECT_EQ(simulated(kThreeIterations, R"({"use": "prefetch", "buffers": 2})"), R"(
stream          |..AAAABBBBCCCC|
stream+prefetch |iijj..kk......|
)");
}

TEST(Prefetch, OneBufferHidesNothing) {
  EXPECT_EQ(simulated(kThreeIterations, R"({"use": "prefetch", "buffers": 1})"), R"(
stream          |..AAAA..BBBB..CCCC|
stream+prefetch |ii....jj....kk....|
)");
}

TEST(Prefetch, CopiesThatFollowEachOtherShareABuffer) {
  EXPECT_EQ(simulated(R"(
    stream: i:copy_in 1, x:copy_in 1, A 3, j:copy_in 1, y:copy_in 1, B 3, k:copy_in 1, C 3
)",
                      R"({"use": "prefetch", "buffers": 2})"),
            R"(
stream          |..AAABBBCCC|
stream+prefetch |ixjy.k.....|
)");
}

TEST(Prefetch, KeepsWaitingForTheLaunch) {
  EXPECT_EQ(simulated(R"(
    cpu:    L:launch 3, M:launch 5
    stream: i:copy_in 2, A 4, j:copy_in 2, B 4
    L -> i
    M -> j
)",
                      R"({"use": "prefetch"})"),
            R"(
cpu             |LLLMMMMM......|
stream          |.....AAAA.BBBB|
stream+prefetch |...ii...jj....|
)");
}

// S is on a blocking stream: it delays work that stays on the default stream, but no prefetched
// copy.
TEST(Prefetch, CopiesLeaveTheDefaultStream) {
  EXPECT_EQ(simulated(R"(
    side:   S 9
    stream: i:copy_in 2, A 4, j:copy_in 2, B 4
    S -> j [structural "default stream"]
)",
                      R"({"use": "prefetch"})"),
            R"(
side            |SSSSSSSSS....|
stream          |..AAAA...BBBB|
stream+prefetch |iijj.........|
)");
}

TEST(Prefetch, WaitingForTheWholeDeviceStays) {
  EXPECT_EQ(simulated(R"(
    cpu:    L:launch 1, "w cudaDeviceSynchronize":sync 1, M:launch 1
    stream: i:copy_in 4, A 2
    L -> i
    i -> "w cudaDeviceSynchronize"
    M -> A
)",
                      R"({"use": "prefetch"})"),
            R"(
cpu             |L....wM..|
stream          |.......AA|
stream+prefetch |.iiii....|
)");
}

TEST(Prefetch, TheCallNoLongerWaitsForTheCopy) {
  EXPECT_EQ(simulated(R"(
    cpu:    L:launch 1, w:sync 1, M:launch 1
    stream: i:copy_in 4, A 2
    L -> i
    i -> w
    M -> A
)",
                      R"({"use": "prefetch"})"),
            R"(
cpu             |LwM....|
stream          |.....AA|
stream+prefetch |.iiii..|
)");
}

// w waits for the compute of the step, so the next copy would be issued after it.
/// `loading` is the host's work between that wait and the call that issues the copy.
std::string host_waits(const std::string& loading = "") {
  return "cpu: L:launch 1, M:launch 1, w:sync 1, " + loading + "N:launch 1, O:launch 1, x:sync 1" +
         R"(
    stream: i:copy_in 3, A 4, j:copy_in 3, B 4
    L -> i
    M -> A
    A -> w
    N -> j
    O -> B
    B -> x
)";
}

TEST(Prefetch, CopiesAreAskedForBeforeTheHostWaits) {
  EXPECT_EQ(simulated(host_waits()), R"(
cpu    |LM......wNO......x|
stream |.iiiAAAA..jjjBBBB.|
)");
  EXPECT_EQ(simulated(host_waits(), R"({"use": "prefetch"})"), R"(
cpu             |LNM.....wO....x|
stream          |....AAAA..BBBB.|
stream+prefetch |.iiijjj........|
)");
}

TEST(Prefetch, CopiesWaitUntilTheirInputIsLoaded) {
  EXPECT_EQ(simulated(host_waits("l:input 2, "), R"({"use": "prefetch"})"),
            R"(
cpu             |LM......wllNO......x|
stream          |....AAAA.......BBBB.|
stream+prefetch |.iii........jjj.....|
)");
}

// With one more buffer the third copy is issued in the first step.
TEST(Prefetch, CallsRunAsFarAheadAsThereAreBuffers) {
  Graph graph = parse_graph(R"(
    cpu:    L:launch 1, w:sync 1, M:launch 1, x:sync 1, N:launch 1
    stream: i:copy_in 1, A 1, j:copy_in 1, B 1, k:copy_in 1, C 1
    L -> i
    A -> w
    M -> j
    B -> x
    N -> k
)");
  read_transform_text("prefetch:buffers=3")->apply(graph, {});
  std::string line;
  for (TaskId task = graph.first(LaneId{0}); task != kNoTask; task = graph.next(task))
    line += graph.name(task);
  EXPECT_EQ(line, "LMNwx");
}

TEST(Prefetch, CountsTheMemoryOfItsBuffers) {
  Graph graph = parse_graph(
      "stream: i:copy_in 2 {bytes=8MB}, A 4, j:copy_in 2 {bytes=6MB}, x:copy_in 1 {bytes=4MB}, B "
      "4");
  const auto prefetch = read_transform_text("prefetch:buffers=3");
  EXPECT_EQ(prefetch->apply(graph, {}).summary,
            "2 inputs copied ahead, 3 at once on the device: 20 MB more memory");
  ASSERT_EQ(graph.allocations().size(), 1U);
  EXPECT_EQ(graph.allocations()[0].bytes, Bytes{20'000'000});
}

TEST(Prefetch, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"use": "prefetch", "buffers": 0})", "buffers: must be at least 1, got 0"},
      {R"({"use": "prefetch", "buffers": "2"})", "buffers: must be a whole number"},
      {R"({"use": "prefetch", "depth": 2})",
       "there is no setting \"depth\"; the settings are buffers, where"},
      {R"({"use": "prefetch", "where": {"kind": "copy_out"}})",
       "no task matches \"where\" (kind copy_out)"},
  };
  for (const auto& [transform, message] : cases) {
    EXPECT_EQ(simulated(kThreeIterations, transform), message);
  }
}

// Copies, and calls that are made earlier, run in the step before their own, which would begin with
// them.
TEST(Prefetch, WhatRunsAheadBeginsNoStep) {
  Graph graph = parse_graph(R"(
    @step one
    @step two
    cpu: L:launch 1 {step=0}, w:sync 1 {step=0}, N:launch 1 {step=1}, O:launch 1 {step=1}
    stream: i:copy_in 3 {step=0}, A 4 {step=0}, j:copy_in 3 {step=1}, B 4 {step=1}
    L -> i
    A -> w
    N -> j
    O -> B
)");
  read_transform_text("prefetch")->apply(graph, {});
  std::string ahead;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i)
    if (graph.task(TaskId{i}).step < 0) ahead += graph.name(TaskId{i});
  EXPECT_EQ(ahead, "Nij");
}

TEST(Prefetch, DoesNotApplyTwice) {
  Graph graph = parse_graph("stream: i:copy_in 2, volta_sgemm 4, j:copy_in 2, volta_sgemm 4");
  const auto prefetch = read_transform_text("prefetch");
  EXPECT_DOUBLE_EQ(prefetch->applies(graph).share, 1);
  prefetch->apply(graph, {});
  EXPECT_DOUBLE_EQ(prefetch->applies(graph).share, 0);
}

}  // namespace
}  // namespace foretrace

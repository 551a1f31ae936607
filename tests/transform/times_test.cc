// The times that transforms use are those of the replay, also on lanes that do not run their tasks
// in order.

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// By its duration P would end at 0, and at 3 if it had the link for itself.
constexpr auto kSharedLink = R"(
    cpu: A 4, B 4, C 2
    link [shared=1GB/s]: P:transfer 0 {bytes=3kB}, Q:transfer 0 {bytes=3kB}
    x: X 1
    P -> X
)";

TEST(Times, Baseline) {
  EXPECT_EQ(simulated(kSharedLink), R"(
cpu  |AAAABBBBCC|
link |PPPPPP....|
     |QQQQQQ....|
x    |......X...|
)");
}

// B starts earlier than X, so only C waits for X.
TEST(Times, ATransferTakesAsLongAsItsShareOfTheLinkLetsIt) {
  EXPECT_EQ(simulated(kSharedLink, R"({"use": "add_dependency", "from": {"name": "X"},
                                       "to": {"name": "/[BC]/", "kind": "all"}, "lag": "2us"})"),
            R"(
cpu  |AAAABBBB.CC|
link |PPPPPP.....|
     |QQQQQQ.....|
x    |......X....|
)");
}

// B, the more urgent one, runs first, and so does the work behind it.
TEST(Times, WorkBesideAPriorityLaneGoesInTheOrderInWhichItsTasksRun) {
  EXPECT_EQ(simulated("stream [priority=0]: A 2, B 3 {priority=1}",
                      R"({"use": "insert", "where": {"kind": "kernel"}, "lane": "side",
                          "name": "x", "duration": "1us"})"),
            R"(
stream |BBBAA.|
side   |...x.x|
)");
}

// P ends at 6, and F then frees its block; X has its block at the same time.
TEST(Times, BlocksAreHeldForAsLongAsTransfersOnASharedLaneRun) {
  Graph graph = parse_graph(R"(
    link [shared=1GB/s]: P:transfer 0 {bytes=4kB}, Q:transfer 0 {bytes=2kB}
    x: W 3, X 1
    y: F 1
    P -> F
    @alloc 4MB: P .. F
    @alloc 2MB: X .. X
  )");
  const Effect effect = read_transform_text("resize:factor=1")->apply(graph, {});
  EXPECT_EQ(to_text(effect.figures.front()), "6 MB") << effect.figures.front().name;
}

}  // namespace
}  // namespace foretrace

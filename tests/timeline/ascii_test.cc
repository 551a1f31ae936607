#include <gtest/gtest.h>

#include "support/picture.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

TEST(ToAscii, DrawsALineForEachLaneWithTasks) {
  EXPECT_EQ(picture("x: A 2, B 1\nempty:\nlonger: \"\" 1, \"|\" 1, z 0"), R"(
x      |AAB|
longer |#?.|
)");
}

TEST(ToAscii, RoundsToTheNearestTick) {
  EXPECT_EQ(picture("x: A 1.6, B 1.6, C 0.2"), R"(
x |AAB|
)");
}

TEST(ToAscii, TakesAnotherTick) {
  const Graph graph = parse_graph("x: A 20, B 30");
  EXPECT_EQ(to_ascii(graph, simulate(graph), 10us), "x |AABBB|\n");
}

TEST(ToAscii, DrawsWhatRunsAtTheSameTimeInRowsOfItsOwn) {
  EXPECT_EQ(picture("x: A 3, B 3 {tail=33.333%}, C 1"), R"(
x |AAA..C|
  |..BBB.|
)");
}

TEST(ToAscii, CutsOffWhatIsTooWide) { EXPECT_LT(picture("x: A 10000000").size(), 200'000U); }

TEST(CriticalPath, IsTheChainThatEndsLast) {
  const Graph graph = parse_graph(R"(
    cpu: L:launch 3, M:launch 5, S:sync 1
    x: A 4, B 1
    y: C 2
    L -> A
    M -> B
    B ->+2 C
    C -> S
  )");
  std::string path;
  for (const TaskId task : critical_path(graph, simulate(graph, {.reasons = true})))
    path += graph.name(task);
  EXPECT_EQ(path, "LMBCS");
}

TEST(CriticalPath, OfNothingIsEmpty) {
  EXPECT_TRUE(critical_path(Graph(), simulate(Graph(), {.reasons = true})).empty());
}

}  // namespace
}  // namespace foretrace

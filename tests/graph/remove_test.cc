#include <gtest/gtest.h>

#include "foretrace/graph.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

TEST(Remove, TakesTheTaskOutOfItsLine) {
  Graph graph = parse_graph("x: A 1, B 1, C 1");
  const TaskId b = named(graph, "B");
  graph.remove(b);
  graph.remove(b);
  EXPECT_EQ(line(graph, LaneId{0}), "A C");
  EXPECT_TRUE(graph.removed(b));
  EXPECT_EQ(graph.next(b), kNoTask);
  EXPECT_EQ(graph.previous(b), kNoTask);
  EXPECT_EQ(graph.lane_of(b), LaneId{0});
  EXPECT_EQ(graph.task_count(), 3U);
}

TEST(Remove, KeepsWaitsAndAddsTheOneInFront) {
  Graph graph = parse_graph("x: A 1, B 1, C 1\ny: D 1, E 1\nD -> B\nB -> E");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(waits(graph, "B"), "D A");
  EXPECT_EQ(dependents(graph, "B"), "E C");
}

TEST(Remove, AddsNothingBehindWhereTheLineSaysIt) {
  Graph graph = parse_graph("x: A 1, B 1, C 1");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(waits(graph, "B"), "A");
  EXPECT_EQ(waits(graph, "C"), "");
}

TEST(Remove, AddsAtMostTwoDependenciesForEachOfALongChain) {
  constexpr std::uint32_t kTasks = 100'000;
  Graph graph = parse_graph("x: first 1\ny: other 1");
  for (std::uint32_t i = 0; i < kTasks; ++i) {
    const TaskId task = graph.append(LaneId{0}, {.duration = 1us});
    graph.add({.before = TaskId{1}, .after = task});
  }
  const std::size_t before = graph.dependency_count();
  for (std::uint32_t i = 0; i < kTasks; ++i) graph.remove(TaskId{2 + i});
  EXPECT_LE(graph.dependency_count(), before + 2 * kTasks);
  EXPECT_EQ(line(graph, LaneId{0}), "first");
}

TEST(Remove, WhereTasksDoNotStandInLineNobodyWaitsForTheOneInFront) {
  Graph graph = parse_graph("x [shared=1GB/s]: A 1, B 1, C 1\ny: D 1\nD -> B");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(waits(graph, "B"), "D");
  EXPECT_EQ(waits(graph, "C"), "");
}

}  // namespace
}  // namespace foretrace

#include "foretrace/graph.h"

#include <gtest/gtest.h>

#include "support/tasks.h"

namespace foretrace {
namespace {

TEST(Graph, TasksStandInTheOrderInWhichTheyWereAppended) {
  const Graph graph = parse_graph("x: A 1, B 1, C 1");
  EXPECT_EQ(line(graph, LaneId{0}), "A B C");
  EXPECT_EQ(graph.first(LaneId{0}), named(graph, "A"));
  EXPECT_EQ(graph.last(LaneId{0}), named(graph, "C"));
  EXPECT_EQ(graph.next(named(graph, "C")), kNoTask);
  EXPECT_EQ(graph.previous(named(graph, "A")), kNoTask);
}

TEST(Graph, TasksAreInsertedInFrontAndBehind) {
  Graph graph = parse_graph("x: A 1, B 1");
  const Task task{.name = graph.names().intern("N")};
  graph.insert_before(named(graph, "A"), task);
  graph.insert_behind(named(graph, "A"), task);
  graph.insert_behind(named(graph, "B"), task);
  EXPECT_EQ(line(graph, LaneId{0}), "N A N B N");
}

// An overlap belongs to one particular pair of tasks: behind another task, nothing is known of it.
TEST(Graph, ATailIsOfTheTaskInFrontAndOfNoOther) {
  const auto after = [](const std::function<void(Graph&, TaskId, TaskId)>& change) {
    Graph graph = parse_graph("x: A 2, B 2 {tail=50%}, C 2 {tail=50%}\ny: D 1");
    change(graph, named(graph, "B"), named(graph, "D"));
    std::string tails;
    for (TaskId task = graph.first(LaneId{0}); task != kNoTask; task = graph.next(task))
      tails += std::string(graph.name(task)) + (graph.task(task).tail.empty() ? " " : "~ ");
    return tails;
  };
  EXPECT_EQ(after([](Graph&, TaskId, TaskId) {}), "A B~ C~ ");
  EXPECT_EQ(after([](Graph& graph, TaskId b, TaskId) { graph.remove(b); }), "A C ");
  EXPECT_EQ(after([](Graph& graph, TaskId b, TaskId d) { graph.move_before(d, b); }), "A D B C~ ");
  EXPECT_EQ(after([](Graph& graph, TaskId b, TaskId d) { graph.move_behind(d, b); }), "A B~ D C ");
  EXPECT_EQ(after([](Graph& graph, TaskId b, TaskId) { graph.move_to_end(b, LaneId{0}); }),
            "A C B ");
  EXPECT_EQ(after([](Graph& graph, TaskId b, TaskId) {
              graph.insert_before(
                  b, {.name = graph.names().intern("N"), .tail = TailShare::nearest(1)});
            }),
            "A N~ B C~ ");
}

TEST(TailShare, IsExactForTheTaskItWasSeenOn) {
  for (const std::int64_t whole : std::initializer_list<std::int64_t>{
           1, 7, 2'000, 999'983, 4'000'000'000, 7'200'000'000'000}) {
    for (const std::int64_t part : {std::int64_t{1}, whole / 3, whole - 1, whole, whole + 5}) {
      if (part <= 0) continue;
      const Overlap overlap = overlap_of(Nanoseconds(part), Nanoseconds(whole));
      EXPECT_EQ(overlap.past_finish(Nanoseconds(whole)).count(), -std::min(part, whole))
          << part << " of " << whole;
      EXPECT_GE(overlap.lag, 0ns);
    }
  }
  EXPECT_TRUE(overlap_of(0ns, 5ns).tail.empty());
  EXPECT_TRUE(overlap_of(5ns, 0ns).tail.empty());
}

TEST(Graph, ATaskCanBeACopyOfAnother) {
  Graph graph = parse_graph("x: A 1");
  for (int i = 0; i < 100; ++i)
    graph.insert_behind(named(graph, "A"), graph.task(named(graph, "A")));
  EXPECT_EQ(graph.name(TaskId{100}), "A");
  EXPECT_EQ(graph.task(TaskId{57}).duration, 1us);
}

TEST(Graph, MovingLeavesTheOthersInLine) {
  Graph graph = parse_graph("x: A 1, B 1, C 1\ny: D 1");
  graph.move_to_end(named(graph, "B"), LaneId{1});
  EXPECT_EQ(line(graph, LaneId{0}) + " | " + line(graph, LaneId{1}), "A C | D B");
  graph.move_before(named(graph, "C"), named(graph, "D"));
  EXPECT_EQ(line(graph, LaneId{0}) + " | " + line(graph, LaneId{1}), "A | C D B");
  graph.move_behind(named(graph, "C"), named(graph, "B"));
  graph.move_behind(named(graph, "C"), named(graph, "C"));
  EXPECT_EQ(line(graph, LaneId{0}) + " | " + line(graph, LaneId{1}), "A | D B C");
  EXPECT_EQ(graph.lane_of(named(graph, "C")), LaneId{1});
  graph.move_to_end(named(graph, "A"), LaneId{0});
  EXPECT_EQ(line(graph, LaneId{0}), "A");
}

TEST(Graph, DependenciesAreListedInTheOrderTheyWereAdded) {
  const Graph graph = parse_graph("x: A 1\ny: B 1\nz: C 1\nA -> B\nA -> C\nB -> C\nA ->+1 B");
  EXPECT_EQ(dependents(graph, "A"), "B C B");
  EXPECT_EQ(waits(graph, "C"), "A B");
  EXPECT_EQ(waits(graph, "A"), "");
  EXPECT_EQ(graph.dependency_count(), 4U);
}

TEST(Graph, DroppedDependenciesAreGoneFromAllLists) {
  Graph graph = parse_graph("x: A 1\ny: B 1\nz: C 1\nA -> B\nA -> C\nB -> C\nA ->+1 B");
  const auto lagged = [](const Dependency& wait) { return wait.lag > 0ns; };
  EXPECT_EQ(graph.remove_dependencies(lagged), 1U);
  EXPECT_EQ(graph.remove_dependencies(lagged), 0U);
  EXPECT_EQ(dependents(graph, "A"), "B C");
  graph.add({.before = named(graph, "A"), .after = named(graph, "B")});
  EXPECT_EQ(dependents(graph, "A"), "B C B");
  EXPECT_EQ(waits(graph, "B"), "A A");
}

TEST(Graph, ChangingADependencyKeepsItsEnds) {
  Graph graph = parse_graph("x: A 1\ny: B 1\nA -> B");
  graph.change_dependencies([&](Dependency& wait) {
    wait.lag = 5us;
    wait.before = wait.after;
  });
  EXPECT_EQ(to_text(graph), "x: A 1\ny: B 1\nA ->+5 B\n");
}

TEST(Graph, AVisitorMayAddDependencies) {
  Graph graph = parse_graph("x: A 1\ny: B 1\nA -> B");
  const auto again = [&](const Dependency& wait) {
    for (int i = 0; i < 100; ++i) graph.add(wait);
  };
  graph.each_dependent(named(graph, "A"), again);
  EXPECT_EQ(graph.dependency_count(), 101U);
}

TEST(Graph, ACloneIsIndependent) {
  Graph graph = parse_graph("x: A 1, B 2\nA ->+3 B\n@alloc 1kB device=0: A .. B");
  const std::string text = to_text(graph);
  Graph copy = graph.clone();
  copy.remove(named(copy, "A"));
  copy.names().intern("new");
  EXPECT_EQ(to_text(graph), text);
  EXPECT_EQ(to_text(copy), "x: B 2\n@alloc 1kB device=0: .. B\n");
}

TEST(Graph, AShortestCycleIsFound) {
  const Graph graph = parse_graph(R"(
    x: A 1, B 1, C 1, D 1
    y: E 1
    D -> A
    E -> C
    D -> E
  )");
  std::string text;
  for (const Dependency& wait : shortest_cycle(graph))
    text += std::string(graph.name(wait.before)) + " ";
  EXPECT_EQ(text, "C D E ");
  EXPECT_TRUE(shortest_cycle(parse_graph("x: A 1, B 1\nA -> B")).empty());
  EXPECT_EQ(shortest_cycle(parse_graph("x: A 1\nA -> A")).size(), 1U);
}

}  // namespace
}  // namespace foretrace

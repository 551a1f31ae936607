#include "graph/bgl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/concept/assert.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>

#include "support/random_graph.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<WaitGraph>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<WaitGraph>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<WaitGraph>));

TEST(WaitGraph, ShowsPlacesInLineAndDependencies) {
  const Graph graph = parse_graph("x: A 1, B 1, C 1\ny: D 1\nA -> D\nD -> B\nA -> C");
  const WaitGraph waits(graph);
  const auto [begin, end] = out_edges(index(named(graph, "A")), waits);
  std::string text;
  for (auto it = begin; it != end; ++it) text += graph.name(TaskId{target(*it, waits)});
  EXPECT_EQ(text, "BDC");
  EXPECT_EQ(in_degree(index(named(graph, "B")), waits), 2U);
  EXPECT_EQ(out_degree(index(named(graph, "D")), waits), 1U);
  EXPECT_EQ(degree(index(named(graph, "C")), waits), 2U);
}

TEST(WaitGraph, HasNoPlacesInLineOnASharedLane) {
  const Graph graph = parse_graph("x [shared=1GB/s]: A 1, B 1\ny [priority=0]: C 1, D 1");
  const WaitGraph waits(graph);
  for (std::uint32_t task = 0; task < 4; ++task) EXPECT_EQ(degree(task, waits), 0U);
}

TEST(WaitGraph, IsSortedByBoost) {
  std::mt19937 random(4);
  for (int run = 0; run < 100; ++run) {
    SCOPED_TRACE(run);
    Graph graph = random_graph(random);
    graph.remove(TaskId{static_cast<std::uint32_t>(random() % graph.task_count())});
    const WaitGraph waits(graph);
    std::vector<std::uint32_t> order;
    boost::topological_sort(waits, std::back_inserter(order));
    std::reverse(order.begin(), order.end());
    std::vector<std::size_t> position(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    for (std::uint32_t task = 0; task < graph.task_count(); ++task) {
      const auto [begin, end] = out_edges(task, waits);
      for (auto it = begin; it != end; ++it) EXPECT_LT(position[task], position[(*it).after]);
    }
  }
}

}  // namespace
}  // namespace foretrace

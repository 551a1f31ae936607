#pragma once

// Presents the graph to Boost.Graph: a directed graph whose vertices are the tasks and whose edges
// are all waits, both places in line on FIFO lanes and dependencies. Models VertexListGraph,
// BidirectionalGraph and AdjacencyGraph over the editing form as it is, so that algorithms run
// without copying anything:
//
//     const WaitGraph waits(graph);
//     boost::topological_sort(waits, std::back_inserter(order));
//
// The graph must not change while a WaitGraph is in use. Include this only in sources of this
// folder and in tests: Boost.Graph's headers take long to compile.

#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/iterator_adaptor.hpp>
#include <boost/iterator/iterator_facade.hpp>
#include <boost/property_map/property_map.hpp>
#include <cstdint>
#include <utility>

#include "foretrace/graph.h"

namespace foretrace {

class WaitGraph {
 public:
  using Vertex = std::uint32_t;

  /// An edge is a wait: a place in line (kInLine), or the dependency `number`.
  static constexpr std::uint32_t kInLine = 0xfffffffe;
  static constexpr std::uint32_t kNothing = 0xffffffff;
  struct Edge {
    Vertex before = 0;
    Vertex after = 0;
    std::uint32_t number = kNothing;

    friend bool operator==(const Edge&, const Edge&) = default;
    friend auto operator<=>(const Edge&, const Edge&) = default;
  };

  /// Iterates over the tasks that wait for a task (out), or for which it waits: the neighbour in
  /// line first, then the dependencies.
  template <bool out>
  class EdgeIterator
      : public boost::iterator_facade<EdgeIterator<out>, Edge, boost::forward_traversal_tag, Edge> {
   public:
    EdgeIterator() = default;
    EdgeIterator(const WaitGraph& graph, Vertex task, std::uint32_t number)
        : graph_(graph.graph_), task_(task), number_(number) {}

   private:
    friend class boost::iterator_core_access;
    bool equal(const EdgeIterator& other) const {
      return task_ == other.task_ && number_ == other.number_;
    }
    void increment() { number_ = following<out>(*graph_, task_, number_); }
    Edge dereference() const {
      const auto& links = graph_->task_links[task_];
      if (number_ == kInLine) {
        return out ? Edge{task_, index(links.next), number_}
                   : Edge{index(links.previous), task_, number_};
      }
      const Dependency& wait = graph_->dependencies[number_].dependency;
      return {index(wait.before), index(wait.after), number_};
    }

    const Graph::Storage* graph_ = nullptr;
    Vertex task_ = 0;
    std::uint32_t number_ = kNothing;
  };

  /// Iterates over the tasks that wait for a task.
  class AdjacencyIterator : public boost::iterator_adaptor<AdjacencyIterator, EdgeIterator<true>,
                                                           Vertex, boost::use_default, Vertex> {
   public:
    AdjacencyIterator() = default;
    explicit AdjacencyIterator(const EdgeIterator<true>& at)
        : AdjacencyIterator::iterator_adaptor_(at) {}

   private:
    friend class boost::iterator_core_access;
    Vertex dereference() const { return (*this->base()).after; }
  };

  using VertexIterator = boost::counting_iterator<Vertex>;

  explicit WaitGraph(const Graph& graph) : graph_(&graph.storage_) {}

  /// The dependency that `edge` stands for.
  Dependency dependency(const Edge& edge) const {
    if (edge.number != kInLine) return graph_->dependencies[edge.number].dependency;
    return {.before = TaskId{edge.before}, .after = TaskId{edge.after}, .why = Rule::in_line};
  }

  // Only Boost.Graph calls these, by argument-dependent lookup.
  friend std::pair<VertexIterator, VertexIterator> vertices(const WaitGraph& graph) {
    return {VertexIterator(0), VertexIterator(static_cast<Vertex>(num_vertices(graph)))};
  }
  friend std::size_t num_vertices(const WaitGraph& graph) { return graph.graph_->tasks.size(); }
  friend Vertex source(const Edge& edge, const WaitGraph&) { return edge.before; }
  friend Vertex target(const Edge& edge, const WaitGraph&) { return edge.after; }
  friend std::pair<EdgeIterator<true>, EdgeIterator<true>> out_edges(Vertex task,
                                                                     const WaitGraph& graph) {
    return graph.range<true>(task);
  }
  friend std::pair<EdgeIterator<false>, EdgeIterator<false>> in_edges(Vertex task,
                                                                      const WaitGraph& graph) {
    return graph.range<false>(task);
  }
  friend std::size_t out_degree(Vertex task, const WaitGraph& graph) {
    return graph.count<true>(task);
  }
  friend std::size_t in_degree(Vertex task, const WaitGraph& graph) {
    return graph.count<false>(task);
  }
  friend std::size_t degree(Vertex task, const WaitGraph& graph) {
    return graph.count<true>(task) + graph.count<false>(task);
  }
  friend std::pair<AdjacencyIterator, AdjacencyIterator> adjacent_vertices(Vertex task,
                                                                           const WaitGraph& graph) {
    const auto [begin, end] = graph.range<true>(task);
    return {AdjacencyIterator(begin), AdjacencyIterator(end)};
  }
  friend boost::typed_identity_property_map<Vertex> get(boost::vertex_index_t, const WaitGraph&) {
    return {};
  }

 private:
  template <bool out>
  static std::uint32_t last(const Graph::Storage& graph, Vertex task) {
    return out ? graph.task_links[task].last_dependent : graph.task_links[task].last_wait;
  }

  template <bool out>
  static std::uint32_t next(const Graph::Storage& graph, std::uint32_t number) {
    return out ? graph.dependencies[number].next_dependent : graph.dependencies[number].next_wait;
  }

  template <bool out>
  static std::uint32_t first(const Graph::Storage& graph, Vertex task) {
    const auto& links = graph.task_links[task];
    const bool has_neighbor = (out ? links.next : links.previous) != kNoTask;
    if (has_neighbor && graph.lanes[index(links.lane())].discipline == Discipline::fifo)
      return kInLine;
    return following<out>(graph, task, kInLine);
  }

  template <bool out>
  static std::uint32_t following(const Graph::Storage& graph, Vertex task, std::uint32_t number) {
    const std::uint32_t end = last<out>(graph, task);
    if (end == kNothing || number == end) return kNothing;
    return next<out>(graph, number == kInLine ? end : number);
  }

  template <bool out>
  std::pair<EdgeIterator<out>, EdgeIterator<out>> range(Vertex task) const {
    return {EdgeIterator<out>(*this, task, first<out>(*graph_, task)),
            EdgeIterator<out>(*this, task, kNothing)};
  }

  template <bool out>
  std::size_t count(Vertex task) const {
    const auto [begin, end] = range<out>(task);
    return static_cast<std::size_t>(std::distance(begin, end));
  }

  const Graph::Storage* graph_;
};

}  // namespace foretrace

// The names are those that Boost asks for.
// NOLINTBEGIN(readability-identifier-naming)
template <>
struct boost::graph_traits<foretrace::WaitGraph> {
  struct traversal_category : vertex_list_graph_tag,
                              bidirectional_graph_tag,
                              adjacency_graph_tag {};
  using directed_category = bidirectional_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  using vertex_descriptor = foretrace::WaitGraph::Vertex;
  using edge_descriptor = foretrace::WaitGraph::Edge;
  using vertex_iterator = foretrace::WaitGraph::VertexIterator;
  using out_edge_iterator = foretrace::WaitGraph::EdgeIterator<true>;
  using in_edge_iterator = foretrace::WaitGraph::EdgeIterator<false>;
  using adjacency_iterator = foretrace::WaitGraph::AdjacencyIterator;
  using edge_iterator = void;
  using vertices_size_type = std::size_t;
  using edges_size_type = std::size_t;
  using degree_size_type = std::size_t;
  static vertex_descriptor null_vertex() { return foretrace::WaitGraph::kNothing; }
};

template <>
struct boost::property_map<foretrace::WaitGraph, boost::vertex_index_t> {
  using type = typed_identity_property_map<foretrace::WaitGraph::Vertex>;
  using const_type = type;
};
// NOLINTEND(readability-identifier-naming)

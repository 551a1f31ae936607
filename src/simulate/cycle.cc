#include "simulate/cycle.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxShown = 12;
constexpr std::size_t kMaxOfName = 60;  ///< Kernel names can have hundreds of letters.

std::string described(const Graph& graph, TaskId task) {
  const std::string_view name = graph.name(task);
  const bool is_long = name.size() > kMaxOfName;
  return fmt::format("\"{}{}\" on {}", name.substr(0, is_long ? kMaxOfName - 3 : name.npos),
                     is_long ? "..." : "", graph.lane(graph.lane_of(task)).name);
}

std::string described(const Graph& graph, const Dependency& wait) {
  std::string text =
      fmt::format(" -> {} ({}", described(graph, wait.after), to_string(wait.provenance));
  if (!wait.why.empty()) text += ", " + std::string(to_string(wait.why, graph.names()));
  return text + ")";
}

}  // namespace

void throw_stuck(const Graph& graph) {
  const std::vector<Dependency> cycle = shortest_cycle(graph);
  if (cycle.empty()) {
    throw Error(
        "some tasks never finish: the capacity of a shared lane must be above 0, and large enough "
        "for its tasks");
  }
  std::string text = fmt::format("tasks wait for each other in a cycle of {}: {}", cycle.size(),
                                 described(graph, cycle.front().before));
  for (std::size_t i = 0; i < std::min(cycle.size(), kMaxShown); ++i)
    text += described(graph, cycle[i]);
  if (cycle.size() > kMaxShown) text += " -> ...";
  throw Error(text);
}

}  // namespace foretrace

#pragma once

// A graph, transforms, and the picture of the resulting timeline: most tests need only these.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "foretrace/answer/figure.h"
#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "foretrace/transform.h"

namespace foretrace {

/// Parses a graph, applies transforms in order, replays it and draws what happened. An Error is
/// returned as its message, so that a test reads the same whether it expects a picture or not.
template <class... Transforms>
std::string simulated(std::string_view graph_text, const Transforms&... transforms_json) {
  try {
    Graph graph = parse_graph(graph_text);
    (read_transform(nlohmann::json::parse(transforms_json))->apply(graph, {}), ...);
    return "\n" + to_ascii(graph, simulate(graph));
  } catch (const Error& error) {
    return error.what();
  }
}

/// The figure of this name as a number, in the smallest unit of its kind.
inline double figure(const Effect& effect, std::string_view name) {
  for (const Figure& figure : effect.figures) {
    if (figure.name == name) return magnitude(figure);
  }
  ADD_FAILURE() << "no figure " << name;
  return 0;
}

}  // namespace foretrace

#pragma once

#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The timeline of a graph as a picture, or the message of the Error. For tests that apply no
/// transform; others use simulated().
inline std::string picture(const Graph& graph) {
  try {
    return "\n" + to_ascii(graph, simulate(graph));
  } catch (const Error& error) {
    return error.what();
  }
}

inline std::string picture(std::string_view graph_text) {
  try {
    return picture(parse_graph(graph_text));
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace foretrace

// Any text as a graph: an Error, or a graph that is written and read back the same, and replayed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretrace;
  std::optional<Graph> graph;
  try {
    graph = parse_graph({reinterpret_cast<const char*>(data), size});
  } catch (const Error&) {
    return 0;
  }
  // No Error is caught: the written text must be readable.
  const std::string written = to_text(*graph);
  if (to_text(parse_graph(written)) != written) std::abort();
  try {
    simulate(*graph);
  } catch (const Error&) {
  }
  return 0;
}

#pragma once

// An inference from graph text, recorded as the replay of the graph runs.

#include <string>
#include <string_view>

#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"

namespace foretrace {

inline Inference recorded_as(std::string_view graph_text) {
  Inference inference;
  inference.graph = parse_graph(graph_text);
  inference.recorded = simulate(inference.graph);
  inference.graph.unexplained().window = inference.recorded.length;
  return inference;
}

/// Writes a sample whose optimizer's kernels have names that tell nothing, so that nothing in it
/// shows how large gradients are. Returns `path`.
inline std::string without_optimizer(const std::string& path) {
  Trace trace = import_trace(FORETRACE_SOURCE_DIR "/traces/resnet18-v100-loader0.pt.trace.json.gz");
  for (DeviceRecord& record : trace.devices) {
    if (trace.names[record.name].find("multi_tensor") != std::string_view::npos)
      record.name = trace.names.intern("elementwise_kernel");
  }
  export_trace(trace, path);
  return path;
}

// Four steps: the host loads and launches, the device computes, the host waits. What differs is how
// long each takes.
constexpr auto kFourSteps = R"(
    @step ProfilerStep#1
    @step ProfilerStep#2
    @step ProfilerStep#3
    @step ProfilerStep#4
    cpu: load:input 10 {step=0}, l1=launch:launch 5 {step=0}, s1=wait:sync 2 {step=0}, load:input 14 {step=1}, l2=launch:launch 5 {step=1}, s2=wait:sync 2 {step=1}, load:input 12 {step=2}, l3=launch:launch 5 {step=2}, s3=wait:sync 2 {step=2}, load:input 10 {step=3}, l4=launch:launch 5 {step=3}, s4=wait:sync 2 {step=3}
    gpu: k1=gemm 50 {step=0}, k2=gemm 60 {step=1}, k3=gemm 40 {step=2}, k4=gemm 50 {step=3}
    l1 -> k1 [measured launch]
    l2 -> k2 [measured launch]
    l3 -> k3 [measured launch]
    l4 -> k4 [measured launch]
    k1 -> s1 [measured "device sync"]
    k2 -> s2 [measured "device sync"]
    k3 -> s3 [measured "device sync"]
    k4 -> s4 [measured "device sync"]
)";

}  // namespace foretrace

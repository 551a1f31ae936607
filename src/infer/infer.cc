#include "foretrace/infer.h"

#include "foretrace/error.h"
#include "infer/draft.h"

namespace foretrace {

Inference infer(const Trace& trace) {
  using namespace infer_detail;
  Draft draft(trace);
  draft.graph.names() = trace.names.clone();
  order_records(draft);
  if (draft.events.empty() && trace.hosts.empty()) {
    throw TraceError("there is nothing that takes time: no host record and no device activity");
  }
  align_clocks(draft);
  measure_typical_delays(draft);
  find_steps(draft);
  cut_host_time(draft);
  resolve_calls(draft);
  resolve_launch_queue(draft);
  find_handovers(draft);
  build_tasks(draft);
  draft.graph.unexplained().window = draft.recorded.length;
  connect_hosts(draft);
  connect_devices(draft);
  measure_arrival_skew(draft);
  connect_memory(draft);
  return {std::move(draft.graph), std::move(draft.recorded), std::move(draft.notes),
          std::move(draft.assumptions)};
}

}  // namespace foretrace

#include "foretrace/infer.h"

#include "base/free_memory.h"
#include "foretrace/error.h"
#include "infer/draft.h"

namespace foretrace {

namespace {

void name_devices(const Trace& trace, Graph& graph) {
  constexpr std::int32_t kMost = 1024;  // Devices of a trace that is not damaged; chosen.
  for (const Device& device : trace.properties) {
    if (device.ordinal < 0 || device.ordinal >= kMost) continue;
    std::vector<std::string>& names = graph.device_names();
    const auto at = static_cast<std::size_t>(device.ordinal);
    if (names.size() <= at) names.resize(at + 1);
    names[at] = device.name;
  }
}

/// Memory for each record while a graph is made of it and while one changed copy of that graph is
/// replayed; measured on 1.5 M records of launches, ops and kernels.
constexpr std::int64_t kBytesPerRecord = 550;
/// Smaller traces fit anywhere.
constexpr std::size_t kManyRecords = 100'000;

/// A system that runs out of memory kills the program, or others, without a word.
void check_memory(const Trace& trace) {
  const std::size_t records = trace.hosts.size() + trace.devices.size();
  if (records < kManyRecords) return;
  const Bytes needed{static_cast<std::int64_t>(records) * kBytesPerRecord};
  const std::optional<Bytes> left = free_memory();
  if (!left || needed <= *left) return;
  throw TraceError("its " + std::to_string(records) + " records need about " + to_text(needed) +
                   " of memory, and " + to_text(*left) +
                   " are free; --steps 3-5 or --window 0s-2s reads only a part of them");
}

Inference finish(infer_detail::Draft& draft) {
  return {.graph = std::move(draft.graph),
          .recorded = std::move(draft.recorded),
          .notes = std::move(draft.notes),
          .assumptions = std::move(draft.assumptions),
          .open = std::move(draft.open),
          .collectives = std::move(draft.collectives),
          .rank = {.number = draft.trace.rank,
                   .world_size = draft.trace.world_size,
                   .origin = Nanoseconds(draft.trace.origin_ns)}};
}

}  // namespace

Inference infer(const Trace& trace) {
  using namespace infer_detail;
  if (!trace.has_times) {
    throw TraceError(
        "must have times, but is an execution trace, which has only the order; give a profiler "
        "trace of the same run");
  }
  Draft draft(trace);
  draft.graph.names() = trace.names.clone();
  name_devices(trace, draft.graph);
  if (is_snapshot(trace)) {
    build_snapshot(draft);
    return finish(draft);
  }
  check_memory(trace);
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
  find_thread_roles(draft);
  build_tasks(draft);
  draft.graph.unexplained().window = draft.recorded.length;
  connect_hosts(draft);
  connect_devices(draft);
  break_circles(draft);
  settle_step_time(draft);
  measure_arrival_skew(draft);
  list_collectives(draft);
  count_flops(draft);
  measure_fill(draft);
  connect_memory(draft);
  return finish(draft);
}

std::optional<StepTimes> recorded_steps(const Trace& trace) try {
  if (!trace.has_times || is_snapshot(trace)) return {};
  const Inference inference = infer(trace);
  return step_times(inference.graph, inference.recorded);
} catch (const TraceError&) {
  return {};
}

}  // namespace foretrace

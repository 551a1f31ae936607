#include "foretrace/infer.h"

#include <fmt/core.h>

#include "base/free_memory.h"
#include "foretrace/error.h"
#include "graph/few_steps.h"
#include "infer/passes.h"
#include "trace/ranks_shown.h"

namespace foretrace {

namespace {

void name_devices(const Trace& trace, Graph& graph) {
  constexpr std::int32_t kMax = 1024;  // No undamaged trace has more devices; chosen.
  for (const Device& device : trace.properties) {
    if (device.ordinal < 0 || device.ordinal >= kMax) continue;
    std::vector<std::string>& names = graph.device_names();
    const auto at = static_cast<std::size_t>(device.ordinal);
    if (names.size() <= at) names.resize(at + 1);
    names[at] = device.name;
  }
}

/// Bytes per record needed to make a graph and to replay one changed copy of it; measured on 1.5 M
/// records of launches, ops and kernels.
constexpr std::int64_t kBytesPerRecord = 550;
/// Traces with fewer records fit on any machine.
constexpr std::size_t kManyRecords = 100'000;

/// Throws TraceError if memory will not suffice, because a system without memory kills this
/// program, or others, without a message.
void check_memory(const Trace& trace) {
  const std::size_t records = trace.hosts.size() + trace.devices.size();
  if (records < kManyRecords) return;
  const Bytes needed{static_cast<std::int64_t>(records) * kBytesPerRecord};
  const std::optional<Bytes> left = free_memory();
  if (!left || needed <= *left) return;
  throw TraceError(
      fmt::format("its {} records need about {} of memory, but only {} are free; --steps 3-5 or "
                  "--window 0s-2s reads only a part of them",
                  records, to_text(needed), to_text(*left)));
}

/// Throws TraceError if the file holds no recording of one rank.
void check_is_recording(const Trace& trace) {
  if (lacks_history(trace))
    throw TraceError("must record a run, but is " + std::string(kNoHistory));
  if (!trace.has_times) {
    throw TraceError(
        "must have times, but is an execution trace, which has only the order; give a profiler "
        "trace of the same run");
  }
  if (const auto shown = trace.metadata.find(std::string(kRanksShown));
      shown != trace.metadata.end()) {
    throw TraceError(fmt::format(
        "draws {} ranks on one clock, for viewers; predict --perfetto FOLDER/ writes a file "
        "for each rank, which can be read back",
        shown->second));
  }
}

}  // namespace

Inference infer(const Trace& trace, const InferOptions& options) {
  using namespace infer_detail;
  check_is_recording(trace);
  Inference result;
  result.rank = {trace.rank, trace.world_size, Nanoseconds(trace.origin_ns)};
  Graph& graph = result.graph;
  graph.names() = trace.names.clone();
  name_devices(trace, graph);
  if (is_snapshot(trace)) {
    build_snapshot(trace, result);
    return result;
  }
  check_memory(trace);
  Records records = order_records(trace, result.notes);
  if (records.events.empty() && trace.hosts.empty()) {
    throw TraceError("there is nothing that takes time: no host record and no device activity");
  }
  align_clocks(records, result.notes);
  mend_impossible_ends(records, result.notes);
  find_waits_by_time(records);
  const Completeness found = count_launches(records, result.notes);
  const TypicalDelays typical = measure_typical_delays(records);
  Steps steps = find_steps(records, found, result.notes, result.assumptions);
  if (const auto late = find_late_starts(records)) {
    steps.on_host_alone = true;
    steps.shortcomings.push_back(*late);
  }
  graph.unexplained().shortcomings.insert(graph.unexplained().shortcomings.end(),
                                          steps.shortcomings.begin(), steps.shortcomings.end());
  HostTime host = cut_host_time(records, graph.names());
  widen_releases(records, host);
  graph.unexplained().per_record = measure_recorder(host);
  EventWaits waits = find_stream_waits(records, typical, result.notes, result.assumptions);
  resolve_calls(records, typical, waits);
  resolve_launch_queue(records, result.assumptions);
  keep_whole_steps(records, found, steps, result);
  Threads threads{.handovers = find_handovers(host, records.tolerance)};
  threads.roles = find_thread_roles(records, threads.handovers, result.notes);
  build_tasks(host, steps, records, threads, result);
  graph.unexplained().window = result.recorded.length;
  connect_hosts(records, threads, result);
  connect_devices(records, typical, std::move(waits), result);
  break_cycles(result);
  settle_step_time(steps.source, result);
  if (const auto kept = trace.metadata.find(std::string(kFewStepsKey));
      kept != trace.metadata.end())
    take_few_steps(kept->second, graph.step_rule());
  note_unknown_device_time(records, result);
  note_missing_ops(records, result);
  note_unknown_recorder_time(trace, result);
  measure_arrival_skew(records, result);
  list_collectives(records, result);
  count_flops(records, host.contexts, graph);
  find_autocast_work(records, host.contexts, graph);
  measure_fill(records, graph);
  estimate_gradients({records, host, steps}, graph);
  if (options.memory) connect_memory({records, host, steps}, threads, result);
  return result;
}

}  // namespace foretrace

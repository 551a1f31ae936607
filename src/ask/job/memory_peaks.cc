#include "ask/job/memory_peaks.h"

namespace foretrace {
namespace {

Refusal refusal_of(const Graph& graph, const AllocatorRun& run, const AllocatorSettings& settings) {
  const OutOfMemory& refused = *run.out_of_memory;
  Refusal refusal;
  refusal.time = run.refused_time;
  refusal.requested = Bytes{refused.requested};
  refusal.allocated = Bytes{refused.levels.allocated};
  refusal.reserved = Bytes{refused.levels.reserved};
  refusal.limit = settings.limit;
  if (run.refused >= graph.allocations().size()) return refusal;
  const Allocation& block = graph.allocations()[run.refused];
  refusal.op = graph.names()[block.op];
  refusal.stack = graph.names()[block.stack];
  if (block.made_by == kNoTask) return refusal;
  const Task& task = graph.task(block.made_by);
  if (refusal.op.empty()) refusal.op = graph.names()[task.name];
  refusal.step = task.step;
  if (task.phase != Phase::none) refusal.phase = to_string(task.phase);
  return refusal;
}

}  // namespace

std::vector<MemoryPeak> memory_peaks(const Graph& graph, const Timeline& timeline,
                                     const AllocatorSettings& settings) {
  std::vector<MemoryPeak> peaks;
  for (const MemoryCurve& curve : timeline.memory) {
    MemoryPeak& peak = peaks.emplace_back();
    peak.device = curve.device;
    peak.peak_allocated = curve.peak;
  }
  for (const AllocatorRun& run : replay_allocator(graph, timeline, settings)) {
    for (MemoryPeak& peak : peaks) {
      if (peak.device != run.device) continue;
      peak.peak_reserved = Bytes{run.peaks.reserved};
      if (run.out_of_memory) peak.out_of_memory = refusal_of(graph, run, settings);
    }
  }
  return peaks;
}

}  // namespace foretrace

#include <algorithm>
#include <optional>

#include "foretrace/ask/examine.h"
#include "foretrace/ask/memory_check.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"

namespace foretrace {
namespace {

/// One trace, its use of memory, and a replay of its allocator.
struct Rank {
  const Trace* trace = nullptr;
  Inference inference;
  std::vector<AllocatorRun> runs;
  MemorySummary fullest;
};

Bytes level(const MemorySummary& summary) {
  return std::max(summary.peak, summary.reserved.value_or(Bytes{}));
}

/// Orders two ranks by which a user has to look at first.
bool is_worse(const MemorySummary& a, const MemorySummary& b) {
  if (a.fits != b.fits) return b.fits;
  return level(a) > level(b);
}

const AllocatorRun* run_of(const std::vector<AllocatorRun>& runs, std::int32_t device) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const AllocatorRun& run) { return run.device == device; });
  return found == runs.end() ? nullptr : &*found;
}

/// Empty if not recorded.
std::optional<Bytes> recorded_reserved(const Trace& trace, std::int32_t device) {
  std::int64_t most = -1;
  for (const MemoryRecord& record : trace.memory) {
    if (record.device == device) most = std::max(most, record.total_reserved);
  }
  return most < 0 ? std::nullopt : std::optional(Bytes{most});
}

/// Adds the replayed or recorded allocator of each device.
void add_runs(const Trace& trace, const std::vector<AllocatorRun>& runs,
              std::vector<MemorySummary>& devices) {
  for (MemorySummary& device : devices) {
    const AllocatorRun* run = run_of(runs, device.device);
    if (!run) continue;
    device.reserved = recorded_reserved(trace, device.device).value_or(Bytes{run->peaks.reserved});
    device.fits = !run->out_of_memory;
  }
}

/// The use of a block that is not in the graph.
MemoryMoment moment_of_refusal(const Inference& inference, const AllocatorRun& run) {
  MemoryMoment moment;
  if (run.refused < inference.graph.allocations().size()) {
    moment = moment_of(inference.graph, inference.recorded, run.refused, run.refused_time);
  } else {
    moment.op = "what was in use before the recording";
  }
  moment.bytes = Bytes{run.out_of_memory->requested};
  return moment;
}

ReplayedAllocator replayed(const Inference& inference, const AllocatorRun& run) {
  ReplayedAllocator all;
  all.allocated = Bytes{run.peaks.allocated}, all.active = Bytes{run.peaks.active};
  all.requested = Bytes{run.peaks.requested}, all.reserved = Bytes{run.peaks.reserved};
  all.inactive_split = Bytes{run.peaks.inactive_split};
  all.reserved_time = run.peak_reserved_time;
  all.driver_mallocs = run.driver_mallocs, all.driver_frees = run.driver_frees;
  all.retries = run.retries;
  for (const AllocatorRun::Point& point : run.curve) {
    if (all.curve.empty() || all.curve.back().reserved.count != point.levels.reserved)
      all.curve.push_back({point.time, Bytes{point.levels.reserved}});
    if (point.time > run.peak_reserved_time) continue;
    all.allocated_then = Bytes{point.levels.allocated};
    all.requested_then = Bytes{point.levels.requested};
    all.inactive_split_then = Bytes{point.levels.inactive_split};
  }
  if (run.out_of_memory) {
    all.refused = {.moment = moment_of_refusal(inference, run),
                   .allocated = Bytes{run.out_of_memory->levels.allocated},
                   .reserved = Bytes{run.out_of_memory->levels.reserved},
                   .segment = Bytes{run.out_of_memory->segment},
                   .largest_free = Bytes{run.out_of_memory->largest_free}};
  }
  return all;
}

/// How far each replay of the recorded requests was off.
void add_checks(const Trace& trace, MemoryReport& report) {
  for (const MemoryCheck& check : check_memory(trace)) {
    if (check.device != report.device) continue;
    const auto add = [&](const char* start, const MemoryReplay& replay) {
      if (replay.reserved.compared == 0 && replay.allocated.compared == 0) return;
      report.allocator->checks.push_back({.start = start,
                                          .events = replay.reserved.compared,
                                          .allocated_error = replay.allocated.peak,
                                          .reserved_error = replay.reserved.peak,
                                          .mean_reserved_error = replay.reserved.mean,
                                          .most_reserved_error = replay.reserved.most});
    };
    add("empty", check.cold);
    add("as found", check.warm);
  }
}

/// The greatest recorded levels, and the size of the device.
void add_recorded(const Trace& trace, MemoryReport& report) {
  for (const Device& device : trace.properties) {
    if (device.ordinal == report.device && device.memory_bytes > 0)
      report.capacity = Bytes{device.memory_bytes};
  }
  if (!report.allocator) return;
  report.allocator->recorded_reserved = recorded_reserved(trace, report.device);
  for (const MemoryRecord& record : trace.memory) {
    if (record.device != report.device || record.total_allocated < 0) continue;
    std::optional<Bytes>& most = report.allocator->recorded_allocated;
    most = std::max(most.value_or(Bytes{}), Bytes{record.total_allocated});
  }
  add_checks(trace, report);
}

MemorySummary fullest(const Rank& rank) {
  std::vector<MemorySummary> devices;
  const Graph& graph = rank.inference.graph;
  for (const MemoryCurve& curve : memory_curves(graph, rank.inference.recorded)) {
    const auto number = static_cast<std::size_t>(curve.device);
    const bool has_name = curve.device >= 0 && number < graph.device_names().size();
    devices.push_back({.rank = rank.trace->rank,
                       .device = curve.device,
                       .name = has_name ? graph.device_names()[number] : "",
                       .peak = curve.peak,
                       .reserved = {}});
  }
  add_runs(*rank.trace, rank.runs, devices);
  return *std::min_element(devices.begin(), devices.end(), is_worse);
}

/// No trace in the result if it has no memory events; that is said of one rank among others.
Rank examine_rank(const Trace& one, const std::string& path, bool is_rank,
                  const AllocatorSettings& settings, Notes& notes) {
  Rank rank;
  const std::string name = "rank " + std::to_string(one.rank);
  try {
    if (one.memory.empty()) throw TraceError(std::string(kNoMemoryEvents));
    rank.inference = infer(one);
    if (rank.inference.graph.allocations().empty()) throw TraceError(std::string(kNoMemoryEvents));
  } catch (const TraceError& error) {
    if (!is_rank) throw TraceError(path + ": " + error.what());
    notes.add(Severity::warning, "ranks whose memory is not known", name + ": " + error.what());
    return rank;
  }
  rank.trace = &one;
  rank.runs = replay_allocator(rank.inference.graph, rank.inference.recorded, settings);
  rank.fullest = fullest(rank);
  for (const Note& note : one.notes.all()) {
    if (note.severity == Severity::warning)
      notes.add(note.severity, note.text, note.example, note.count);
  }
  return rank;
}

/// Everything about one rank but how it compares with others.
MemoryReport describe(const Rank& rank, const MemoryQuestion& question, Bytes limit) {
  MemoryReport report = describe_memory(rank.inference.graph, rank.inference.recorded, question);
  report.rank = rank.trace->rank;
  report.limit = limit;
  report.has_times = rank.trace->has_times;
  if (const AllocatorRun* run = run_of(rank.runs, report.device))
    report.allocator = replayed(rank.inference, *run);
  add_runs(*rank.trace, rank.runs, report.devices);
  add_recorded(*rank.trace, report);
  return report;
}

}  // namespace

ExaminedMemory examine_memory(const std::string& path, const MemoryQuestion& question,
                              const AllocatorSettings& allocator, const ImportOptions& reading) {
  const std::vector<Trace> traces = import_all(path, reading);
  std::vector<MemorySummary> ranks;
  Notes notes;
  Rank shown;
  for (const Trace& one : traces) {
    Rank rank = examine_rank(one, path, traces.size() > 1, allocator, notes);
    if (!rank.trace) continue;
    ranks.push_back(rank.fullest);
    if (!shown.trace || is_worse(rank.fullest, shown.fullest)) shown = std::move(rank);
  }
  if (!shown.trace) throw TraceError(path + ": " + std::string(kNoMemoryEvents));
  MemoryReport report = describe(shown, question, allocator.limit);
  report.trace = path;
  if (ranks.size() > 1) report.ranks = std::move(ranks);
  notes.merge(report.notes);
  report.notes = std::move(notes);
  return {std::move(report), std::move(shown.inference.graph)};
}

}  // namespace foretrace

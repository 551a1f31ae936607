#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/question/examine.h"
#include "foretrace/question/memory_check.h"
#include "job/chosen_rank.h"
#include "job/job.h"

namespace foretrace {
namespace {

/// A rank, the replays of an allocator on its devices, and its fullest device.
struct ExaminedRank {
  const Rank& rank;
  std::vector<AllocatorRun> runs;
  MemorySummary fullest;
};

/// If reserved memory is unknown, allocated memory stands in for it.
MemoryNeed need_of(const MemorySummary& summary) {
  return {.is_refused = !summary.fits,
          .reserved = std::max(summary.peak, summary.reserved.value_or(Bytes{})),
          .allocated = {}};
}

const AllocatorRun* run_of(const std::vector<AllocatorRun>& runs, std::int32_t device) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const AllocatorRun& run) { return run.device == device; });
  return found == runs.end() ? nullptr : &*found;
}

/// Returns nullopt if the trace does not record it.
std::optional<Bytes> recorded_reserved(const Rank& rank, std::int32_t device) {
  const auto found = rank.recorded_reserved.find(device);
  return found == rank.recorded_reserved.end() ? std::nullopt : std::optional(found->second);
}

/// Adds the reserved memory of each device, recorded or replayed, and whether its memory suffices.
void add_runs(const Rank& rank, const std::vector<AllocatorRun>& runs,
              std::vector<MemorySummary>& devices) {
  for (MemorySummary& device : devices) {
    const AllocatorRun* run = run_of(runs, device.device);
    if (!run) continue;
    device.reserved = recorded_reserved(rank, device.device).value_or(Bytes{run->peaks.reserved});
    device.fits = !run->out_of_memory;
  }
}

/// The moment at which the allocator refused a block. The block may not be in the graph, because it
/// was in use before the recording.
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

/// Adds how far each replay of the recorded requests was off.
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

/// Adds the greatest recorded levels, and the size of the device.
void add_recorded(const Rank& rank, MemoryReport& report) {
  const Trace& trace = *rank.trace;
  for (const Device& device : trace.properties) {
    if (device.ordinal == report.device && device.memory_bytes > 0)
      report.capacity = Bytes{device.memory_bytes};
  }
  if (!report.allocator) return;
  report.allocator->recorded_reserved = recorded_reserved(rank, report.device);
  for (const MemoryRecord& record : trace.memory) {
    if (record.device != report.device || record.total_allocated < 0) continue;
    std::optional<Bytes>& most = report.allocator->recorded_allocated;
    most = std::max(most.value_or(Bytes{}), Bytes{record.total_allocated});
  }
  add_checks(trace, report);
}

MemorySummary fullest_device(const Rank& rank, const std::vector<AllocatorRun>& runs) {
  std::vector<MemorySummary> devices;
  const Graph& graph = rank.inference.graph;
  for (const MemoryCurve& curve : memory_curves(graph, rank.inference.recorded)) {
    const auto number = static_cast<std::size_t>(curve.device);
    const bool has_name = curve.device >= 0 && number < graph.device_names().size();
    devices.push_back({.rank = rank.number,
                       .device = curve.device,
                       .name = has_name ? graph.device_names()[number] : "",
                       .peak = curve.peak,
                       .reserved = {}});
  }
  add_runs(rank, runs, devices);
  return *std::max_element(
      devices.begin(), devices.end(),
      [](const MemorySummary& a, const MemorySummary& b) { return need_of(a) < need_of(b); });
}

/// The reason why the memory of a rank is unknown; empty if it is known.
std::string unknown_memory(const Rank& rank) {
  if (lacks_history(*rank.trace)) return "is " + std::string(kNoHistory);
  if (rank.trace->memory.empty()) return std::string(kNoMemoryEvents);
  if (!rank.refused.empty()) return rank.refused;
  return rank.inference.graph.allocations().empty() ? std::string(kNoMemoryEvents) : "";
}

/// Returns nullopt, with a note, if the rank has no memory events. Throws TraceError if it is the
/// only rank.
std::optional<ExaminedRank> examine_rank(const JobRanks& job, const Rank& rank,
                                         const AllocatorSettings& settings, Notes& notes) {
  if (const std::string why = unknown_memory(rank); !why.empty()) {
    if (job.ranks.size() == 1) throw TraceError(fmt::format("{}: {}", job.path, why));
    notes.add(Severity::warning, "ranks whose memory is not known",
              fmt::format("rank {}: {}", rank.number, why));
    return {};
  }
  std::vector<AllocatorRun> runs =
      replay_allocator(rank.inference.graph, rank.inference.recorded, settings);
  MemorySummary fullest = fullest_device(rank, runs);
  for (const Note& note : rank.import_notes.all()) {
    if (note.severity == Severity::warning)
      notes.add(note.severity, note.text, note.example, note.count);
  }
  return ExaminedRank{rank, std::move(runs), std::move(fullest)};
}

/// Describes the memory of one rank, without comparing it with others.
MemoryReport describe(const ExaminedRank& examined, const MemoryQuestion& question, Bytes limit) {
  const Rank& rank = examined.rank;
  MemoryReport report = describe_memory(rank.inference.graph, rank.inference.recorded, question);
  report.rank = rank.number;
  report.limit = limit;
  report.has_times = rank.trace->has_times;
  if (const AllocatorRun* run = run_of(examined.runs, report.device))
    report.allocator = replayed(rank.inference, *run);
  add_runs(rank, examined.runs, report.devices);
  add_recorded(rank, report);
  return report;
}

}  // namespace

ExaminedMemory examine_memory(const std::string& path, const MemoryQuestion& question,
                              const AllocatorSettings& allocator, const ImportOptions& reading) {
  JobRanks job = read_job(path, {.reading = reading, .keep_traces = true, .keep_refused = true});
  std::vector<MemorySummary> ranks;
  Notes notes;
  FullestRank fullest;
  std::optional<ExaminedRank> shown;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    std::optional<ExaminedRank> rank = examine_rank(job, job.ranks[i], allocator, notes);
    if (!rank) continue;
    ranks.push_back(rank->fullest);
    if (fullest.consider(i, need_of(rank->fullest))) shown.emplace(std::move(*rank));
  }
  if (!shown) throw TraceError(fmt::format("{}: {}", path, kNoMemoryEvents));
  MemoryReport report = describe(*shown, question, allocator.limit);
  report.trace = path;
  if (ranks.size() > 1) report.ranks = std::move(ranks);
  notes.merge(report.notes);
  report.notes = std::move(notes);
  return {std::move(report), std::move(job.ranks[fullest.rank()].inference.graph)};
}

}  // namespace foretrace

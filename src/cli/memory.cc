#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/allocator_option.h"
#include "cli/memory_replay.h"
#include "cli/options.h"
#include "cli/progress.h"
#include "foretrace/allocator.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/memory_check.h"
#include "foretrace/memory_report.h"

namespace foretrace {
namespace {

/// One trace, what its memory does, and what an allocator would do with it.
struct Rank {
  const Trace* trace = nullptr;
  Inference inference;
  std::vector<AllocatorRun> runs;
  MemorySummary fullest;
};

Bytes level(const MemorySummary& summary) {
  return std::max(summary.peak, summary.reserved.value_or(Bytes{}));
}

/// Which of two a user has to look at first.
bool is_worse(const MemorySummary& a, const MemorySummary& b) {
  if (a.fits != b.fits) return b.fits;
  return level(a) > level(b);
}

const AllocatorRun* run_of(const std::vector<AllocatorRun>& runs, std::int32_t device) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const AllocatorRun& run) { return run.device == device; });
  return found == runs.end() ? nullptr : &*found;
}

/// Nothing where the trace does not tell.
std::optional<Bytes> recorded_reserved(const Trace& trace, std::int32_t device) {
  std::int64_t most = -1;
  for (const MemoryRecord& record : trace.memory) {
    if (record.device == device) most = std::max(most, record.total_reserved);
  }
  return most < 0 ? std::nullopt : std::optional(Bytes{most});
}

/// Adds what the allocator does on each device, or did.
void add_runs(const Trace& trace, const std::vector<AllocatorRun>& runs,
              std::vector<MemorySummary>& devices) {
  for (MemorySummary& device : devices) {
    const AllocatorRun* run = run_of(runs, device.device);
    if (!run) continue;
    device.reserved = recorded_reserved(trace, device.device).value_or(Bytes{run->peaks.reserved});
    device.fits = !run->out_of_memory;
  }
}

/// What a block that is not of the graph was for.
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

/// The greatest levels that the recording itself tells, and the size of the device.
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

Bandwidth positive_bandwidth(std::string_view text) {
  const Bandwidth bandwidth = parse_bandwidth(text);
  if (bandwidth.bytes_per_second <= 0)
    throw Error("must be more than 0, got '" + std::string(text) + "'");
  return bandwidth;
}

struct MemoryCommand {
  std::string trace, host_bandwidth;
  MemoryQuestion question;
  std::int64_t top = 10;
  AllocatorOption allocator;
  FormatOption format{{"text", "json", "csv"}, "text"};
  OutputOption output, html;
  ReadingOptions reading;
  bool quiet = false;
  const CLI::App* app = nullptr;

  void add_to(CLI::App& command) {
    app = &command;
    command.add_option("TRACE", trace,
                       "A trace or memory snapshot, or a folder with those of all ranks");
    command
        .add_option("--device", question.device, "The device to describe, instead of the fullest")
        ->type_name("NUMBER");
    command
        .add_option("--step", question.step,
                    "Only this step, by the number in its name; all of the recording if not given")
        ->type_name("NUMBER");
    command.add_option("--top", top, "Rows of each list")
        ->type_name("COUNT")
        ->capture_default_str();
    command
        .add_option("--host-bandwidth", host_bandwidth,
                    "Of copies to the host and back, 24GB/s, or 6.3GB/s,6.4GB/s for each way; if "
                    "not given that of the device")
        ->type_name("RATE");
    allocator.add_to(command);
    html.add_to(command, "--html",
                "Also write a page with all blocks over time there; it needs no network");
    format.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_part_to(command);
    reading.add_execution_trace_to(command);
    reading.add_to(command);
  }

  void read_bandwidth() {
    if (host_bandwidth.empty()) return;
    within("--host-bandwidth", [&] {
      const std::size_t comma = host_bandwidth.find(',');
      question.out = positive_bandwidth(host_bandwidth.substr(0, comma));
      question.in = comma == std::string::npos
                        ? question.out
                        : positive_bandwidth(host_bandwidth.substr(comma + 1));
    });
  }

  void run(Session& session) {
    if (!app->get_subcommands().empty()) return;  // `memory replay` has answered.
    if (trace.empty()) throw Error("memory: which TRACE? See `foretrace help memory`");
    format.check();
    if (top < 1) throw Error("--top: must be at least 1, got " + std::to_string(top));
    question.top = static_cast<std::size_t>(top);
    read_bandwidth();
    AllocatorSettings settings;
    allocator.set(settings);
    say_if_large(trace, reading.options(), quiet);
    Rank shown;
    const MemoryReport report = [&] {
      const Progress progress("examining " + trace, quiet);
      const std::vector<Trace> traces = import_all(trace, reading.options());
      return describe(traces, settings, shown);
    }();
    if (!html.path.empty()) {
      html.write(session,
                 [&](std::ostream& out) { write_memory_html(report, shown.inference.graph, out); });
    }
    output.write(session, [&](std::ostream& out) { write(report, shown.inference.graph, out); });
    session.exit_code = fits(report) ? kAnswered : kCheckFailed;
  }

  /// Of the fullest rank, with a summary of all. Moves that rank to `shown`, as the blocks of the
  /// report are those of its graph.
  MemoryReport describe(const std::vector<Trace>& traces, const AllocatorSettings& settings,
                        Rank& shown) const {
    std::vector<MemorySummary> ranks;
    Notes notes;
    for (const Trace& one : traces) {
      Rank rank = examine(one, traces.size() > 1, settings, notes);
      if (!rank.trace) continue;
      ranks.push_back(rank.fullest);
      if (!shown.trace || is_worse(rank.fullest, shown.fullest)) shown = std::move(rank);
    }
    if (!shown.trace) throw TraceError(trace + ": " + std::string(kNoMemoryEvents));
    MemoryReport report =
        describe_memory(shown.inference.graph, shown.inference.recorded, question);
    report.trace = trace;
    report.rank = shown.trace->rank;
    report.limit = settings.limit;
    report.has_times = shown.trace->has_times;
    if (ranks.size() > 1) report.ranks = std::move(ranks);
    if (const AllocatorRun* run = run_of(shown.runs, report.device))
      report.allocator = replayed(shown.inference, *run);
    add_runs(*shown.trace, shown.runs, report.devices);
    add_recorded(*shown.trace, report);
    notes.merge(report.notes);
    report.notes = std::move(notes);
    return report;
  }

  /// No trace in the result if it has no memory events; that is said of one rank among others.
  Rank examine(const Trace& one, bool is_rank, const AllocatorSettings& settings,
               Notes& notes) const {
    Rank rank;
    const std::string name = "rank " + std::to_string(one.rank);
    const std::string place = is_rank ? trace + ": " + name : trace;
    try {
      if (one.memory.empty()) throw TraceError(std::string(kNoMemoryEvents));
      rank.inference = infer(one);
      if (rank.inference.graph.allocations().empty())
        throw TraceError(std::string(kNoMemoryEvents));
    } catch (const TraceError& error) {
      if (!is_rank) throw TraceError(place + ": " + error.what());
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

  static MemorySummary fullest(const Rank& rank) {
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

  void write(const MemoryReport& report, const Graph& graph, std::ostream& out) const {
    if (format.chosen == "json") return print_json(to_json(report), out);
    if (format.chosen == "csv") return write_memory_csv(report, graph, out);
    write_memory_text(report, out);
  }
};

}  // namespace

void add_memory(CLI::App& command, Session& session) {
  add_command<MemoryCommand>(command, session);
  add_memory_replay(*command.add_subcommand(
                        "replay", "Run a few lines of malloc and free on the caching allocator"),
                    session);
}

}  // namespace foretrace

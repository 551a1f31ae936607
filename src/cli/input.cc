#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/progress.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/input_report.h"
#include "foretrace/select.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"

namespace foretrace {
namespace {

/// Of the ranks of a job the one with the longest step: that is what the others wait for.
Inference slowest_rank(const std::string& path, const ImportOptions& reading) {
  std::optional<Inference> slowest;
  Nanoseconds longest{-1};
  for (const Trace& trace : import_all(path, reading)) {
    if (is_snapshot(trace))
      throw TraceError(path + ": must be a trace with times, but is a memory snapshot");
    Inference inference = within(path, [&] { return infer(trace); });
    const Nanoseconds step = step_times(inference.graph, inference.recorded).step_time;
    if (step <= longest) continue;
    longest = step;
    slowest = std::move(inference);
  }
  if (!slowest) throw TraceError(path + ": must hold a trace with steps");
  return std::move(*slowest);
}

/// Loading on the training threads. What waits for workers is no work of theirs.
std::vector<TaskId> loading_tasks(const Graph& graph) {
  std::vector<TaskId> loading;
  for (const TaskId id : Selector("input").select(graph)) {
    if (graph.lane(graph.lane_of(id)).kind == LaneKind::host_thread) loading.push_back(id);
  }
  return loading;
}

struct InputCommand {
  std::string trace, synthetic, cached;
  double samples = 0;
  std::int64_t workers = 0;
  double cached_share = -1;
  std::string policy = "page_cache";
  AnswerOptions options;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    command.add_option("--synthetic", synthetic, "The same job with batches made up on the device")
        ->type_name("TRACE");
    command.add_option("--cached", cached, "The same job with all its data in memory")
        ->type_name("TRACE");
    command.add_option("--samples", samples, "Samples of a batch, for rates")
        ->check(CLI::Range(0.0, 1e12));
    command.add_option("--workers", workers, "Loader processes of the recorded job")
        ->check(CLI::Range(0, 100'000));
    command
        .add_option("--cached-share", cached_share,
                    "Share of its data that was cached when TRACE was recorded")
        ->check(CLI::Range(0.0, 1.0));
    command
        .add_option("--cache-policy", policy,
                    "How it was cached: minio, page_cache or lru (help transform loader)")
        ->check(CLI::IsMember({"minio", "page_cache", "lru"}));
    options.reading.add_part_to(command);
    options.add_to(command);
  }

  void run(Session& session) const {
    options.format.check();
    const InputReport report = [&] {
      const Progress progress("reading " + trace, options.quiet);
      return examine_input();
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print_json(to_json(report), out);
      write_input(report, out);
    });
  }

  InputReport examine_input() const {
    ImportOptions reading = options.reading.options();
    say_if_large(trace, reading, options.quiet);
    Inference inference = slowest_rank(trace, reading);
    reading.part = {};  // The other traces have steps of their own.
    InputReport report;
    report.stalls = input_stalls(inference.graph, inference.recorded);
    report.notes = inference.notes;
    report.has_steps = !inference.graph.steps().empty();
    report.replayed = replayed_step_time(inference.graph);
    report.samples = samples;
    report.recorded_workers = workers;
    report.set = {.policy = policy, .cached = std::max(0.0, cached_share)};
    report.knows_cache = cached_share >= 0;
    find_workers(inference.graph, report);
    take_away(inference.graph, report);
    const auto step_of = [&](const std::string& path) -> std::optional<Nanoseconds> {
      if (path.empty()) return std::nullopt;
      const Inference other = slowest_rank(path, reading);
      return step_times(other.graph, other.recorded).step_time;
    };
    report.synthetic = step_of(synthetic);
    report.cached = step_of(cached);
    return report;
  }

  /// The counterfactuals: the same graph, with loading and then also copies that take no time.
  static void take_away(Graph& graph, InputReport& report) {
    for (const TaskId id : loading_tasks(graph)) graph.task(id).duration = 0ns;
    report.without_loading = replayed_step_time(graph);
    for (const TaskId id : Selector("copy_in").select(graph)) graph.task(id).duration = 0ns;
    report.without_copies = replayed_step_time(graph);
  }

  /// As many as keep up with the training thread, which itself still takes batches over; found by
  /// replaying, as what it takes over depends on their number.
  static void find_workers(const Graph& graph, InputReport& report) {
    const InputStalls& stalls = report.stalls;
    Nanoseconds work{0};
    for (const InputStalls::Part& part : {stalls.reading, stalls.preparing, stalls.untold}) {
      work += part.stall + part.hidden;
    }
    report.work = work;
    // Recorded workers have their work elsewhere.
    if (stalls.waiting.stall + stalls.waiting.hidden > 0ns || work < report.replayed / 50) return;
    const auto with = [&](std::int64_t count) {
      Graph edited = graph.clone();
      read_transform_text("loader:workers=" + std::to_string(count))->apply(edited);
      return replayed_step_time(edited);
    };
    const Nanoseconds enough = scaled(with(kMany), 1.02);
    const double keeps_up = static_cast<double>(work.count()) /
                            static_cast<double>(std::max(enough, Nanoseconds(1)).count());
    auto high = std::clamp<std::int64_t>(std::llround(std::ceil(keeps_up)), 1, kMany);
    while (high < kMany && with(high) > enough) high = std::min(kMany, high + 1 + high / 8);
    while (high > 1 && with(high - 1) <= enough) --high;
    report.workers = high;
    report.with_workers = with(high);
  }

  static constexpr std::int64_t kMany = 1024;
};

}  // namespace

void add_input(CLI::App& command, Session& session) { add_command<InputCommand>(command, session); }

}  // namespace foretrace

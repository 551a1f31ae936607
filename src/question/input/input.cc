#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <optional>

#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/question/examine.h"
#include "foretrace/simulate.h"
#include "foretrace/transform.h"
#include "graph/select.h"
#include "job/chosen_rank.h"
#include "job/job.h"
#include "job/step_cost.h"
#include "question/advise/bounds.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxWorkers = 1024;  ///< Most workers that are tried.

/// The rank of a job with the longest step, which the others wait for.
Inference slowest_rank(const std::string& path, const ImportOptions& reading) {
  JobRanks job = read_job(path, {.reading = reading});
  if (job.has_snapshots())
    throw TraceError(path + ": must be a trace with times, but is a memory snapshot");
  SlowestRank slowest;
  for (std::size_t i = 0; i < job.ranks.size(); ++i) {
    const Inference& inference = job.ranks[i].inference;
    slowest.consider(i, step_times(inference.graph, inference.recorded).step_time);
  }
  return std::move(job.ranks[slowest.rank()].inference);
}

/// Loading tasks on the training threads. Waiting for workers is not their work.
std::vector<TaskId> loading_tasks(const Graph& graph) {
  std::vector<TaskId> loading;
  for (const TaskId id : Selector("input").select(graph)) {
    if (graph.lane(graph.lane_of(id)).kind == LaneKind::host_thread) loading.push_back(id);
  }
  return loading;
}

/// Replays the graph with loading that takes no time, and then with copies that take none either.
void replay_without_loading(Graph& graph, InputReport& report) {
  for (const TaskId id : loading_tasks(graph)) graph.task(id).duration = 0ns;
  report.without_loading = replayed_step_time(graph);
  for (const TaskId id : Selector("copy_in").select(graph)) graph.task(id).duration = 0ns;
  report.without_copies = replayed_step_time(graph);
}

/// Finds the least number of workers that keep up with the training thread, which itself still
/// receives batches; by replaying, because that cost depends on their number.
void find_workers(const Graph& graph, InputReport& report) {
  const InputStalls& stalls = report.stalls;
  Nanoseconds work{0};
  for (const InputStalls::StallTime& part : {stalls.reading, stalls.preparing, stalls.unknown}) {
    work += part.stall + part.hidden;
  }
  report.work = work;
  // The work of recorded workers is not on the training thread.
  if (stalls.waiting.stall + stalls.waiting.hidden > 0ns || work <= report.replayed / 50) return;
  const auto with = [&](std::int64_t count) {
    Graph edited = graph.clone();
    read_transform_text(fmt::format("loader:workers={}", count))->apply(edited, {});
    return replayed_step_time(edited);
  };
  const Nanoseconds enough = scaled(with(kMaxWorkers), 1.02);
  const double keeps_up = static_cast<double>(work.count()) /
                          static_cast<double>(std::max(enough, Nanoseconds(1)).count());
  auto high = std::clamp<std::int64_t>(std::llround(std::ceil(keeps_up)), 1, kMaxWorkers);
  while (high < kMaxWorkers && with(high) > enough)
    high = std::min(kMaxWorkers, high + 1 + high / 8);
  while (high > 1 && with(high - 1) <= enough) --high;
  report.with_workers = with(high);
  if (report.with_workers < report.replayed) report.workers = high;
}

/// Finds the bound of a step as advise() does.
StepBound find_bound(const Graph& graph, Nanoseconds now) {
  const PathPart largest =
      path_shares(graph, simulate(graph, {.reasons = true, .memory = false})).largest();
  return bound_of(ladder_of(graph, now),
                  speed_ups_of(graph, {group_named(graph, "kernels")}, now, {}), largest, now);
}

}  // namespace

InputReport examine_input(const std::string& path, const InputQuestion& question,
                          const ImportOptions& reading) {
  Inference inference = slowest_rank(path, reading);
  InputReport report;
  report.stalls = input_stalls(inference.graph, inference.recorded);
  report.notes = inference.notes;
  report.has_steps = !inference.graph.steps().empty();
  report.replayed = replayed_step_time(inference.graph);
  report.samples = question.samples;
  report.recorded_workers = question.workers;
  report.set = {.policy = question.policy, .cached = std::max(0.0, question.cached_share)};
  report.knows_cache = question.cached_share >= 0;
  report.bound = find_bound(inference.graph, report.replayed);
  find_workers(inference.graph, report);
  replay_without_loading(inference.graph, report);
  // The part of the trace that was asked for does not apply to the other traces.
  ImportOptions whole_trace = reading;
  whole_trace.part = {};
  const auto step_of = [&](const std::string& other_path) -> std::optional<Nanoseconds> {
    if (other_path.empty()) return std::nullopt;
    const Inference other = slowest_rank(other_path, whole_trace);
    return step_times(other.graph, other.recorded).step_time;
  };
  report.synthetic = step_of(question.synthetic);
  report.cached = step_of(question.cached);
  return report;
}

}  // namespace foretrace

// Upper bounds on the rate of samples, from training, preparation and reading, each alone:
//
//     G = batch / step time with batches that are available at once
//     P = batch / (time to prepare a batch / workers), or less where cores are few
//     F = batch / time to read a batch
//
//     speed = min(F, P, G)          (Mohan et al., VLDB'21: equation 2 and section 3.3)
//
// Stalls are differences of step times, as the paper measures them: t1 with batches that are
// available at once, t2 if they must be prepared, t3 if they must also be read. They are closed
// forms; the step time of the answer comes from the replay of the edited graph.

#include <algorithm>
#include <tuple>

#include "base/numbers/scaling.h"
#include "foretrace/simulate.h"
#include "transform/input/loader.h"

namespace foretrace {
namespace {

/// Makes tasks take no time and move no bytes, and restores both in its destructor.
class ZeroedTasks {
 public:
  ZeroedTasks(Graph& graph, std::vector<TaskId> tasks) : graph_(graph), tasks_(std::move(tasks)) {
    for (const TaskId id : tasks_) {
      Task& task = graph_.task(id);
      work_.emplace_back(task.duration, task.bytes);
      task.duration = 0ns, task.bytes = {};
    }
  }
  ~ZeroedTasks() {
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      Task& task = graph_.task(tasks_[i]);
      std::tie(task.duration, task.bytes) = work_[i];
    }
  }
  ZeroedTasks(const ZeroedTasks&) = delete;
  ZeroedTasks& operator=(const ZeroedTasks&) = delete;

 private:
  Graph& graph_;
  std::vector<TaskId> tasks_;
  std::vector<std::pair<Nanoseconds, Bytes>> work_;
};

/// Returns the tasks that read batches, as FetchLanes adds them.
std::vector<TaskId> reading(const Graph& graph) {
  std::vector<TaskId> tasks;
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).kind != LaneKind::storage) continue;
    for (TaskId task = graph.first(LaneId{i}); task != kNoTask; task = graph.next(task))
      tasks.push_back(task);
  }
  return tasks;
}

double samples_a_second(double samples, Nanoseconds step) {
  return step <= 0ns ? 0 : samples * 1e9 / static_cast<double>(step.count());
}

}  // namespace

StageTimes times_without_loading(Graph& graph, const std::vector<TaskId>& loading) {
  const std::vector<TaskId> copies = Selector("copy_in").select(graph);
  StageTimes times;
  const ZeroedTasks nothing_to_read(graph, reading(graph));
  const ZeroedTasks nothing_to_load(graph, loading);
  times.train = replayed_step_time(graph);
  if (copies.empty()) return times;
  const ZeroedTasks nothing_to_copy(graph, copies);
  times.copy = std::max(0ns, times.train - replayed_step_time(graph));
  return times;
}

StageTimes stage_times(const LoaderSettings& settings, StageTimes times, CpuWork work) {
  const FetchLanes fetch(settings, kNoLane);
  const Nanoseconds read = scaled(fetch.time(), work.batches);
  if (settings.workers == 0) {
    times.prep = times.train + work.loading;
    times.fetch = times.prep + read;
    return times;
  }
  const double each = 1 / static_cast<double>(settings.workers);
  times.prep = std::max(times.train, scaled(work.loading, each));
  if (const auto cores = settings.cores_of_job(); cores && settings.prep_rates.empty()) {
    times.prep = std::max(times.prep, scaled(work.loading + work.host, 1 / *cores));
  }
  times.fetch = std::max(
      {times.prep, scaled(fetch.slower(), work.batches), scaled(work.loading + read, each)});
  return times;
}

std::string bottleneck(const StageTimes& times) {
  if (times.fetch > times.prep) return "reading";
  return times.prep > times.train ? "preparation" : "training";
}

std::vector<Figure> loader_figures(const LoaderSettings& settings, const StageTimes& times,
                                   CpuWork work) {
  std::vector<Figure> figures;
  const auto add = [&](const char* name, auto value) { figures.push_back({name, value}); };
  const BatchCost cost = cost_of_batch(settings);
  const auto jobs = static_cast<double>(settings.set.jobs);
  add("fetch_stall", ratio(times.fetch - times.prep, times.fetch));
  add("prep_stall", ratio(times.prep - times.train, times.fetch));
  add("copy_stall", ratio(times.copy, times.fetch));
  add("train_time", times.train);
  // `loading` is the work of this job; with coordinated preparation, its part of one pass.
  add("prep_work", scaled(work.loading, jobs));
  add("prep_passes", settings.coordinated ? 1.0 : jobs);
  if (settings.samples > 0) {
    const double samples = static_cast<double>(settings.samples) * work.batches;
    add("samples_per_second", samples_a_second(samples, times.fetch));
    add("train_rate", samples_a_second(samples, times.train));
    const Nanoseconds prep = settings.workers == 0
                                 ? work.loading
                                 : scaled(work.loading, 1 / static_cast<double>(settings.workers));
    if (prep > 0ns) add("prep_rate", samples_a_second(samples, prep));
    const Nanoseconds read = scaled(FetchLanes(settings, kNoLane).slower(), work.batches);
    if (read > 0ns) add("fetch_rate", samples_a_second(samples, read));
  }
  add("miss_share", cost.shares.disk);
  if (settings.dataset_bytes.count == 0) return figures;
  const double set = static_cast<double>(settings.dataset_bytes.count);
  const double of_server = set / static_cast<double>(settings.set.servers);
  const double passes = settings.coordinated ? 1 : jobs;
  add("disk_bytes", rounded(of_server * cost.shares.disk * passes));
  add("remote_bytes", rounded(of_server * cost.shares.remote * passes));
  if (settings.samples > 0)
    add("disk_bytes_per_step", rounded(static_cast<double>(cost.disk.count) * work.batches));
  CachedSet alone = settings.set;
  alone.jobs = 1;
  const double one = item_shares(alone).disk;
  if (one > 0) add("amplification", cost.shares.disk * passes / one);
  return figures;
}

}  // namespace foretrace

#include "job/retimed_replay.h"

#include <span>
#include <utility>

#include "foretrace/error.h"
#include "graph/recorder_time.h"
#include "job/job_graph.h"

namespace foretrace {

void retime(Graph& graph, const Retiming& retiming) {
  for (const auto& [task, duration] : retiming.durations) graph.task(task).duration = duration;
  for (const auto& [task, gap] : retiming.gaps) graph.task(task).gap = gap;
  if (retiming.lags.empty()) return;
  auto next = retiming.lags.begin();
  std::size_t number = 0;
  graph.change_dependencies([&](Dependency& wait) {
    if (next != retiming.lags.end() && next->first == number) wait.lag = (next++)->second;
    ++number;
  });
}

RetimedReplay::RetimedReplay(const JobGraph& job) : compiled_(job.graph()) {
  JobProbes probes(job);
  std::vector<Nanoseconds> work = probes.work(job.graph());
  const std::span<const Nanoseconds> durations = compiled_.durations();
  const std::span<const std::int64_t> lags = compiled_.lags();
  graph_ =
      std::make_shared<const Recorded>(Recorded{.probes = std::move(probes),
                                                .work = std::move(work),
                                                .places = compiled_.lag_indices(job.graph()),
                                                .durations = {durations.begin(), durations.end()},
                                                .lags = {lags.begin(), lags.end()}});
}

template <class LagAt>
void RetimedReplay::set_lags(const Retiming& retiming, const LagAt& lag_at) {
  const std::span<std::int64_t> lags = compiled_.lags();
  for (const auto& [task, gap] : retiming.gaps) {
    const std::uint32_t place = graph_->places.of_gap[index(task)];
    if (place != Compiled::LagIndices::kNone) lags[place] = lag_at(place, gap);
  }
  for (const auto& [wait, lag] : retiming.lags) {
    const std::uint32_t place = graph_->places.of_dependency[wait];
    lags[place] = lag_at(place, lag);
  }
}

void RetimedReplay::apply(const Retiming& retiming, std::vector<Nanoseconds>& work) {
  for (const auto& [task, duration] : retiming.durations) {
    Nanoseconds& now = compiled_.durations()[compiled_.order()[index(task)]];
    const std::int32_t stream = graph_->probes.stream_of()[index(task)];
    if (stream != StepProbes::kNoStream) work[static_cast<std::size_t>(stream)] += duration - now;
    now = duration;
  }
  set_lags(retiming, [](std::uint32_t, Nanoseconds lag) { return lag.count(); });
}

void RetimedReplay::undo(const Retiming& retiming) {
  for (const auto& [task, duration] : retiming.durations) {
    const std::uint32_t place = compiled_.order()[index(task)];
    compiled_.durations()[place] = graph_->durations[place];
  }
  set_lags(retiming, [&](std::uint32_t place, Nanoseconds) { return graph_->lags[place]; });
}

Nanoseconds RetimedReplay::step_time(const Retiming& retiming) {
  std::vector<Nanoseconds> work = graph_->work;
  apply(retiming, work);
  compiled_.replay();
  const auto finish = [&](TaskId task) {
    return compiled_.finish()[compiled_.order()[index(task)]];
  };
  const auto start = [&](TaskId task) {
    return finish(task) - compiled_.durations()[compiled_.order()[index(task)]];
  };
  const Nanoseconds step_time = graph_->probes.slowest(start, finish, std::move(work)).step_time;
  undo(retiming);
  return step_time;
}

Nanoseconds unprofiled_step_time(const Graph& graph) {
  const Nanoseconds per_record = graph.unexplained().per_record;
  if (per_record <= 0ns || !all_lanes_fifo(graph)) return 0ns;
  return RetimedReplay(graph).step_time(
      {.durations = without_recorder(graph, per_record), .gaps = {}, .lags = {}});
}

}  // namespace foretrace

#include "job/job_graph.h"

#include <algorithm>
#include <utility>

#include "job/chosen_rank.h"

namespace foretrace {

JobProbes::JobProbes(const JobGraph& job)
    : stream_of_(job.graph().task_count(), StepProbes::kNoStream) {
  for (std::size_t i = 0; i < job.rank_count(); ++i) add_rank(job, i);
}

void JobProbes::add_rank(const JobGraph& job, std::size_t rank) {
  const Graph& graph = job.recorded(rank);
  ranks_.push_back(
      {.probes = StepProbes(graph), .first_stream = streams_, .begins = job.begins(rank)});
  Rank& added = ranks_.back();
  streams_ += added.probes.stream_count();
  for (const TaskId probe : added.probes.tasks()) {
    added.starts_at.push_back(job.start_of(rank, probe));
    added.tasks.push_back(job.task(rank, probe));
  }
  const std::span<const std::int32_t> streams = added.probes.stream_of();
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId task = job.task(rank, TaskId{i}), enter = job.start_of(rank, TaskId{i});
    if (graph.steps().empty() && !graph.removed(TaskId{i})) added.without_steps.push_back(task);
    if (streams.empty() || streams[i] == StepProbes::kNoStream) continue;
    const std::size_t stream = added.first_stream + static_cast<std::size_t>(streams[i]);
    stream_of_[index(task)] = static_cast<std::int32_t>(stream);
    if (enter != task) waits_.push_back({enter, task, stream});
  }
}

std::vector<Nanoseconds> JobProbes::work(const Graph& graph) const {
  std::vector<Nanoseconds> sums(streams_, 0ns);
  for (std::uint32_t i = 0; i < stream_of_.size() && streams_ > 0; ++i) {
    if (stream_of_[i] != StepProbes::kNoStream)
      sums[static_cast<std::size_t>(stream_of_[i])] += graph.task(TaskId{i}).duration;
  }
  return sums;
}

JobProbes::Slowest JobProbes::slowest(const TimeOf& start, const TimeOf& finish,
                                      std::vector<Nanoseconds> work) const {
  for (const Wait& wait : waits_) work[wait.stream] += start(wait.task) - finish(wait.enter);
  SlowestRank slowest;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const Rank& rank = ranks_[i];
    std::vector<Nanoseconds> starts, finishes;
    for (const TaskId task : rank.starts_at) starts.push_back(start(task) - rank.begins);
    for (const TaskId task : rank.tasks) finishes.push_back(finish(task) - rank.begins);
    Nanoseconds length{0};
    for (const TaskId task : rank.without_steps)
      length = std::max(length, finish(task) - rank.begins);
    const ProbedTimes times{
        .starts = starts,
        .finishes = finishes,
        .work = std::span(work).subspan(rank.first_stream, rank.probes.stream_count()),
        .length = length};
    slowest.consider(i, rank.probes.step_times(times).step_time);
  }
  return {slowest.rank(), slowest.most()};
}

bool all_lanes_fifo(const Graph& graph) {
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    if (graph.lane(LaneId{i}).discipline != Discipline::fifo) return false;
  }
  return true;
}

JobGraph::JobGraph(std::shared_ptr<const JointGraph> ranks, std::size_t advised)
    : rank_(ranks->rank(advised).graph), ranks_(std::move(ranks)), advised_(advised) {
  if (all_lanes_fifo(graph())) probes_ = std::make_shared<const JobProbes>(*this);
}

TaskId JobGraph::of_advised(TaskId task) const {
  if (!ranks_) return task;
  const std::uint32_t first = index(this->task(advised_, TaskId{0}));
  const bool is_own = index(task) >= first && index(task) - first < rank_->task_count();
  return is_own ? TaskId{index(task) - first} : kNoTask;
}

void JobGraph::visit_rank(std::size_t rank, const Graph& edited, const Timeline& replayed,
                          const std::function<void(const RankReplay&)>& visit) const {
  if (!ranks_) return visit({edited, replayed, 0, static_cast<std::uint32_t>(edited.lane_count())});
  const Timeline timeline = ranks_->of_rank(rank, replayed, false);
  const Graph graph = ranks_->graph_of_rank(rank, edited, timeline);
  visit({graph, timeline, ranks_->first_lane(rank), ranks_->first_lane(rank + 1)});
}

JobProbes::Slowest JobGraph::slowest(const Graph& edited, const Timeline& replayed) const {
  if (probes_)
    return probes_->slowest([&](TaskId task) { return replayed.start[index(task)]; },
                            [&](TaskId task) { return replayed.finish[index(task)]; },
                            probes_->work(edited));
  SlowestRank slowest;
  for (std::size_t i = 0; i < rank_count(); ++i) {
    visit_rank(i, edited, replayed, [&](const RankReplay& rank) {
      slowest.consider(i, step_times(rank.graph, rank.timeline).step_time);
    });
  }
  return {slowest.rank(), slowest.most()};
}

JobGraph::Step JobGraph::step(const Graph& edited, const Timeline& replayed) const {
  const JobProbes::Slowest found = slowest(edited, replayed);
  Step step{.time = found.step_time, .path = {}};
  if (replayed.reasons.empty()) return step;
  PathSpan span;
  visit_rank(found.rank, edited, replayed,
             [&](const RankReplay& rank) { span = path_span(rank.graph, rank.timeline); });
  if (span.last != kNoTask) {
    span.last = start_of(found.rank, span.last);
    span.from += begins(found.rank), span.to += begins(found.rank);
  }
  step.path = path_shares(edited, replayed, span);
  return step;
}

}  // namespace foretrace

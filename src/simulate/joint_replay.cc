#include "simulate/joint_replay.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <utility>

#include "base/threads.h"
#include "foretrace/error.h"
#include "simulate/fold.h"
#include "simulate/joint_rows.h"
#include "simulate/transfer_time.h"

namespace foretrace {
JointGraph::JointGraph(std::span<const RankGraph> ranks,
                       const std::vector<MatchedCollective>& collectives)
    : ranks_(ranks.begin(), ranks.end()) {
  reserve(collectives);
  for (const RankGraph& rank : ranks_) {
    const Graph::IdOffsets& ids = id_offsets_.emplace_back(graph_.absorb(*rank.graph));
    for (std::uint32_t i = ids.first_lane; i < graph_.lane_count(); ++i) {
      Lane& lane = graph_.lane(LaneId{i});
      lane.name.insert(0, fmt::format("rank {} ", lane.rank));
    }
    if (rank.begins > 0ns) begin_later(ids.first_lane, rank.begins);
  }
  enters_.assign(graph_.task_count(), kNoTask);
  for (const MatchedCollective& collective : collectives) add(collective);
  graph_.change_dependencies([&](Dependency& wait) {
    if (wait.tail.empty() || wait.anchor == Anchor::start) return;
    const auto found = full_durations_.find(wait.before);
    if (found == full_durations_.end()) return;
    const Overlap overlap =
        shortened({wait.tail, wait.lag}, found->second, graph_.task(wait.before).duration);
    wait.tail = overlap.tail, wait.lag = overlap.lag;
  });
}

/// A member adds at most two tasks, and the waits of its own task a second time.
void JointGraph::reserve(const std::vector<MatchedCollective>& collectives) {
  std::size_t tasks = 0, waits = 0;
  for (const RankGraph& rank : ranks_) {
    tasks += rank.graph->task_count() + 1;
    waits += rank.graph->dependency_count() + rank.graph->lane_count();
  }
  for (const MatchedCollective& collective : collectives) {
    tasks += 2 * collective.members.size();
    waits += 6 * collective.members.size();
  }
  graph_.reserve(tasks, waits);
}

void JointGraph::begin_later(std::uint32_t first_lane, Nanoseconds begins) {
  const auto end = static_cast<std::uint32_t>(graph_.lane_count());
  const LaneId lane = graph_.add_lane({.name = "(begin)", .kind = LaneKind::origin});
  const TaskId begin = graph_.append(lane, {.duration = begins,
                                            .name = graph_.names().intern("start of its recording"),
                                            .kind = TaskKind::marker});
  for (std::uint32_t i = first_lane; i < end; ++i) {
    const bool in_line = graph_.lane(LaneId{i}).discipline == Discipline::fifo;
    for (TaskId task = graph_.first(LaneId{i}); task != kNoTask; task = graph_.next(task)) {
      graph_.add({.before = begin, .after = task, .why = Rule::recorded_start});
      if (in_line) break;
    }
  }
}

TaskId JointGraph::start_of(std::size_t rank, TaskId rank_task) const {
  const TaskId joint_task = task(rank, rank_task);
  const TaskId enter = enters_[index(joint_task)];
  return enter == kNoTask ? joint_task : enter;
}

TaskId JointGraph::add_enter(TaskId task) {
  const Task old = graph_.task(task);
  const TaskId enter = graph_.insert_before(task, {.gap = old.gap,
                                                   .name = graph_.names().intern("(enters)"),
                                                   .step = old.step,
                                                   .kind = TaskKind::marker});
  graph_.task(enter).tail = old.tail;
  graph_.task(task).gap = 0ns;
  std::vector<Dependency> waits;
  graph_.each_wait(task, [&](const Dependency& wait) { waits.push_back(wait); });
  for (Dependency& wait : waits) {
    wait.after = enter;
    graph_.add(wait);
  }
  enters_[index(task)] = enter;
  return enter;
}

void JointGraph::add(const MatchedCollective& collective) {
  std::vector<std::pair<const CollectiveMember*, TaskId>> members;
  each_member(
      collective, [&](std::uint32_t rank) -> const Graph& { return *ranks_[rank].graph; },
      [&](const CollectiveMember& member) {
        members.emplace_back(&member, task(member.rank, member.task));
      });
  std::vector<TaskId> enters;
  for (const auto& [member, task] : members) enters.push_back(add_enter(task));
  const Task marker{.name = graph_.names().intern("(all ranks have entered)"),
                    .kind = TaskKind::marker};
  TaskId all = kNoTask;
  for (const auto& [member, task] : members) {
    if (member->left_early) continue;
    if (all == kNoTask) {
      all = graph_.insert_before(task, marker);
      for (const TaskId enter : enters)
        graph_.add({.before = enter,
                    .after = all,
                    .provenance = collective.matched,
                    .why = Rule::other_ranks});
    }
    graph_.add(
        {.before = all, .after = task, .provenance = collective.matched, .why = Rule::other_ranks});
    const Nanoseconds before = graph_.task(task).duration;
    const Nanoseconds after = transfer_of(*member, before);
    graph_.task(task).duration = after;
    full_durations_.emplace(task, before);
    if (const TaskId next = graph_.next(task); next != kNoTask) {
      Task& behind = graph_.task(next);
      if (behind.tail.empty()) continue;
      const Overlap overlap = shortened({behind.tail, behind.gap}, before, after);
      behind.tail = overlap.tail, behind.gap = overlap.lag;
    }
  }
}

Timeline JointGraph::of_rank(std::size_t rank, const Timeline& joint, bool memory) const {
  const Graph& graph = *ranks_[rank].graph;
  const Graph::IdOffsets& ids = id_offsets_[rank];
  const Nanoseconds begins = ranks_[rank].begins;
  const auto count = static_cast<std::uint32_t>(graph.task_count());
  Timeline timeline;
  timeline.start.reserve(count), timeline.finish.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const TaskId task = ids.shifted(TaskId{i});
    // A removed task without waits finishes before the rank begins.
    timeline.start.push_back(std::max(0ns, joint.start[index(start_of(rank, TaskId{i}))] - begins));
    timeline.finish.push_back(std::max(0ns, joint.finish[index(task)] - begins));
    if (!graph.removed(TaskId{i}))
      timeline.length = std::max(timeline.length, timeline.finish.back());
  }
  const auto is_of_rank = [&](TaskId task) {
    return index(task) >= ids.first_task && index(task) < ids.first_task + count;
  };
  for (std::uint32_t i = 0; i < count && !joint.reasons.empty(); ++i) {
    StartReason reason = joint.reasons[index(start_of(rank, TaskId{i}))];
    if (reason.before != kNoTask && is_of_rank(reason.before))
      reason.before = TaskId{index(reason.before) - ids.first_task};
    else if (reason.before != kNoTask)
      reason = {.before = kNoTask, .why = Rule::other_ranks, .lag = reason.lag};
    timeline.reasons.push_back(reason);
  }
  if (memory) timeline.memory = memory_curves(graph, timeline);
  return timeline;
}

Graph JointGraph::graph_of_rank(std::size_t rank, const Graph& edited,
                                const Timeline& replayed) const {
  Graph graph = ranks_[rank].graph->clone();
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId joint = task(rank, TaskId{i});
    graph.task(TaskId{i}).duration = enters_[index(joint)] == kNoTask
                                         ? edited.task(joint).duration
                                         : replayed.finish[i] - replayed.start[i];
  }
  return graph;
}

namespace {

/// Replays the joint graph: for reasons, and for lanes that need a clock.
void replay_graph(std::span<const RankGraph> graphs,
                  const std::vector<MatchedCollective>& collectives, const JointOptions& options,
                  JointReplay& replay) {
  const auto joint = std::make_shared<const JointGraph>(graphs, collectives);
  Timeline times = simulate(joint->graph(), {.reasons = options.reasons, .memory = false});
  on_all_cores(graphs.size(), [&](std::size_t i) {
    replay.timelines[replay.kept[i]] = joint->of_rank(i, times, options.memory);
  });
  if (options.reasons) replay.joint = joint, replay.times = std::move(times);
}

}  // namespace

JointReplay simulate_jointly(std::span<const RankGraph> ranks,
                             const std::vector<MatchedCollective>& collectives,
                             const JointOptions& options) {
  JointReplay replay;
  if (options.folds) {
    replay.first_alike = alike_ranks(ranks, collectives);
  } else {
    replay.first_alike.resize(ranks.size());
    std::iota(replay.first_alike.begin(), replay.first_alike.end(), 0U);
  }
  std::vector<std::uint32_t> place(ranks.size());
  std::vector<std::uint32_t>& kept = replay.kept;
  std::vector<RankGraph> graphs;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (replay.first_alike[rank] != rank) continue;
    place[rank] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(rank);
    graphs.push_back(ranks[rank]);
  }
  std::vector<MatchedCollective> folded = folded_collectives(collectives, replay.first_alike);
  for (MatchedCollective& collective : folded) {
    for (CollectiveMember& member : collective.members) member.rank = place[member.rank];
  }
  replay.timelines.resize(ranks.size());
  std::size_t tasks = 0;
  for (const RankGraph& rank : graphs) tasks += rank.graph->task_count();
  const bool keeps_rows = tasks <= options.most_rows_kept;
  auto rows = keeps_rows || !options.reasons ? JointRows::make(graphs, folded) : std::nullopt;
  if (options.reasons || !rows) {
    replay_graph(graphs, folded, options, replay);
  } else {
    std::vector<Timeline> timelines = rows->replay();
    on_all_cores(kept.size(), [&](std::size_t i) {
      Timeline& timeline = replay.timelines[kept[i]];
      timeline = std::move(timelines[i]);
      if (options.memory) timeline.memory = memory_curves(*graphs[i].graph, timeline);
    });
  }
  if (keeps_rows && rows) replay.rows = std::make_shared<const JointRows>(std::move(*rows));
  return replay;
}

}  // namespace foretrace

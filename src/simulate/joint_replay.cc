#include "simulate/joint_replay.h"

#include <algorithm>
#include <fmt/core.h>
#include <numeric>
#include <utility>

#include "base/threads.h"
#include "foretrace/error.h"
#include "simulate/fold.h"
#include "simulate/joint_rows.h"
#include "simulate/meeting_time.h"

namespace foretrace {
JointGraph::JointGraph(std::span<const JoinedGraph> ranks, const std::vector<Meeting>& meetings)
    : ranks_(ranks.begin(), ranks.end()) {
  reserve(meetings);
  for (const JoinedGraph& rank : ranks_) {
    const Graph::Absorbed& place = places_.emplace_back(graph_.absorb(*rank.graph));
    for (std::uint32_t i = place.first_lane; i < graph_.lane_count(); ++i) {
      Lane& lane = graph_.lane(LaneId{i});
      lane.name.insert(0, fmt::format("rank {} ", lane.rank));
    }
    if (rank.begins > 0ns) begin_later(place.first_lane, rank.begins);
  }
  enters_.assign(graph_.task_count(), kNoTask);
  for (const Meeting& meeting : meetings) add(meeting);
  graph_.change_dependencies([&](Dependency& wait) {
    if (wait.tail.empty() || wait.anchor == Anchor::start) return;
    const auto found = before_.find(wait.before);
    if (found == before_.end()) return;
    const Overlap overlap =
        shortened({wait.tail, wait.lag}, found->second, graph_.task(wait.before).duration);
    wait.tail = overlap.tail, wait.lag = overlap.lag;
  });
}

/// A member adds at most two tasks, and the waits of its own task a second time.
void JointGraph::reserve(const std::vector<Meeting>& meetings) {
  std::size_t tasks = 0, waits = 0;
  for (const JoinedGraph& rank : ranks_) {
    tasks += rank.graph->task_count() + 1;
    waits += rank.graph->dependency_count() + rank.graph->lane_count();
  }
  for (const Meeting& meeting : meetings) {
    tasks += 2 * meeting.members.size();
    waits += 6 * meeting.members.size();
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

TaskId JointGraph::start_of(std::size_t rank, TaskId own) const {
  const TaskId here = task(rank, own);
  const TaskId enter = enters_[index(here)];
  return enter == kNoTask ? here : enter;
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

void JointGraph::add(const Meeting& meeting) {
  std::vector<std::pair<const MeetingMember*, TaskId>> members;
  each_member(
      meeting, [&](std::uint32_t rank) -> const Graph& { return *ranks_[rank].graph; },
      [&](const MeetingMember& one) { members.emplace_back(&one, task(one.rank, one.task)); });
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
                    .provenance = meeting.matched,
                    .why = Rule::other_ranks});
    }
    graph_.add(
        {.before = all, .after = task, .provenance = meeting.matched, .why = Rule::other_ranks});
    const Nanoseconds before = graph_.task(task).duration;
    const Nanoseconds after = transfer_of(*member, before);
    graph_.task(task).duration = after;
    before_.emplace(task, before);
    if (const TaskId next = graph_.next(task); next != kNoTask) {
      Task& behind = graph_.task(next);
      if (behind.tail.empty()) continue;
      const Overlap overlap = shortened({behind.tail, behind.gap}, before, after);
      behind.tail = overlap.tail, behind.gap = overlap.lag;
    }
  }
}

Timeline JointGraph::of_rank(std::size_t rank, const Timeline& joint, bool memory) const {
  const Graph& own = *ranks_[rank].graph;
  const Graph::Absorbed& place = places_[rank];
  const Nanoseconds begins = ranks_[rank].begins;
  const auto count = static_cast<std::uint32_t>(own.task_count());
  Timeline timeline;
  timeline.start.reserve(count), timeline.finish.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const TaskId task = place.here(TaskId{i});
    // A removed task without waits finishes before the rank begins.
    timeline.start.push_back(std::max(0ns, joint.start[index(start_of(rank, TaskId{i}))] - begins));
    timeline.finish.push_back(std::max(0ns, joint.finish[index(task)] - begins));
    if (!own.removed(TaskId{i}))
      timeline.length = std::max(timeline.length, timeline.finish.back());
  }
  const auto is_own = [&](TaskId task) {
    return index(task) >= place.first_task && index(task) < place.first_task + count;
  };
  for (std::uint32_t i = 0; i < count && !joint.reasons.empty(); ++i) {
    Reason reason = joint.reasons[index(start_of(rank, TaskId{i}))];
    if (reason.before != kNoTask && is_own(reason.before))
      reason.before = TaskId{index(reason.before) - place.first_task};
    else if (reason.before != kNoTask)
      reason = {.before = kNoTask, .why = Rule::other_ranks, .lag = reason.lag};
    timeline.reasons.push_back(reason);
  }
  if (memory) timeline.memory = memory_curves(own, timeline);
  return timeline;
}

namespace {

/// Replays the joint graph: for reasons, and for lanes that need a clock.
void replay_graph(std::span<const JoinedGraph> graphs, const std::vector<Meeting>& meetings,
                  const JointOptions& options, JointReplay& replay) {
  const auto joint = std::make_shared<const JointGraph>(graphs, meetings);
  Timeline times = simulate(joint->graph(), {.reasons = options.reasons, .memory = false});
  on_all_cores(graphs.size(), [&](std::size_t i) {
    replay.timelines[replay.kept[i]] = joint->of_rank(i, times, options.memory);
  });
  if (options.reasons) replay.joint = joint, replay.times = std::move(times);
}

}  // namespace

JointReplay simulate_jointly(std::span<const JoinedGraph> ranks,
                             const std::vector<Meeting>& meetings, const JointOptions& options) {
  JointReplay replay;
  if (options.folds) {
    replay.alike = alike_ranks(ranks, meetings);
  } else {
    replay.alike.resize(ranks.size());
    std::iota(replay.alike.begin(), replay.alike.end(), 0U);
  }
  std::vector<std::uint32_t> place(ranks.size());
  std::vector<std::uint32_t>& kept = replay.kept;
  std::vector<JoinedGraph> graphs;
  for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (replay.alike[rank] != rank) continue;
    place[rank] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(rank);
    graphs.push_back(ranks[rank]);
  }
  std::vector<Meeting> folded = folded_meetings(meetings, replay.alike);
  for (Meeting& meeting : folded) {
    for (MeetingMember& member : meeting.members) member.rank = place[member.rank];
  }
  replay.timelines.resize(ranks.size());
  std::size_t tasks = 0;
  for (const JoinedGraph& rank : graphs) tasks += rank.graph->task_count();
  const bool keeps_rows = tasks <= options.most_rows_kept;
  auto rows = keeps_rows || !options.reasons ? JointRows::of(graphs, folded) : std::nullopt;
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

#include "generate/pipeline_tasks.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"

namespace foretrace {
namespace {

TimeRow row_of(const Action& action, bool in_pair) {
  switch (action.kind) {
    case ActionKind::forward:
      return in_pair ? TimeRow::forward_in_pair : TimeRow::forward;
    case ActionKind::backward:
      if (action.half > 0) return action.half == 1 ? TimeRow::first_half : TimeRow::second_half;
      return in_pair ? TimeRow::backward_in_pair : TimeRow::backward;
    case ActionKind::input_gradient:
      return TimeRow::input_gradient;
    case ActionKind::weight_gradient:
      return TimeRow::weight_gradient;
    case ActionKind::reduce:
      return TimeRow::all_reduce;
    case ActionKind::update:
      break;
  }
  return TimeRow::update;
}

TimeRow send_row(const Action& action) {
  if (action.kind == ActionKind::forward) return TimeRow::send_forward;
  if (action.half == 0) return TimeRow::send_backward;
  return action.half == 1 ? TimeRow::send_first_half : TimeRow::send_second_half;
}

bool is_backward(const Action& action) {
  return action.kind == ActionKind::backward || action.kind == ActionKind::input_gradient;
}

Phase phase_of(ActionKind kind) {
  if (kind == ActionKind::forward) return Phase::forward;
  return kind == ActionKind::update ? Phase::update : Phase::backward;
}

class PipelineBuilder {
 public:
  PipelineBuilder(const Schedule& schedule, const PipelineKind& kind,
                  const std::vector<Nanoseconds>& table, bool named)
      : schedule_(schedule), kind_(kind), table_(table), named_(named) {}

  PipelineTasks build() {
    std::size_t actions = 0;
    for (const auto& order : schedule_.orders) actions += order.size();
    const std::size_t tasks = kind_.sends == Sends::queued ? 2 * actions : actions;
    built_.graph.reserve(tasks, tasks);
    built_.times.reserve(tasks);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) add_passes(rank);
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) add_sends(rank);
    if (kind_.updates) add_reductions();
    return std::move(built_);
  }

 private:
  struct RankSlot {
    std::int32_t rank = -1, slot = -1;
  };

  const std::vector<Action>& order(std::int32_t rank) const {
    return schedule_.orders[static_cast<std::size_t>(rank)];
  }
  TaskId& task_at(RankSlot position) {
    return built_
        .tasks[static_cast<std::size_t>(position.rank)][static_cast<std::size_t>(position.slot)];
  }
  /// The pass that consumes a result: forward passes first, then backward passes by half.
  RankSlot& consumer(std::size_t result, std::int32_t stage, std::int32_t micro_batch) {
    const auto stages = static_cast<std::size_t>(schedule_.stages);
    const auto micro_batches = static_cast<std::size_t>(schedule_.micro_batches);
    if (consumers_.empty()) consumers_.resize(3 * stages * micro_batches);
    return consumers_[(result * stages + static_cast<std::size_t>(stage)) * micro_batches +
                      static_cast<std::size_t>(micro_batch)];
  }

  TaskId append(LaneId lane, TimeRow row, std::int32_t stage, Task task) {
    const std::uint32_t time = time_index(row, stage, schedule_.stages);
    task.duration = table_[time];
    task.layer = stage;
    built_.times.push_back(time);
    return built_.graph.append(lane, task);
  }
  void wait(TaskId before, TaskId after, TimeRow row = TimeRow::none, std::int32_t stage = 0) {
    const std::uint32_t time = time_index(row, stage, schedule_.stages);
    built_.lags.push_back(time);
    built_.graph.add(
        {.before = before, .after = after, .lag = table_[time], .provenance = Provenance::assumed});
  }
  NameId name(const std::string& text) {
    return named_ ? built_.graph.names().intern(text) : NameId{};
  }

  void add_passes(std::int32_t rank) {
    const LaneId lane =
        built_.graph.add_lane({.name = fmt::format("rank {}", rank), .device = 0, .rank = rank});
    auto& tasks = built_.tasks.emplace_back(order(rank).size(), kNoTask);
    for (std::size_t slot = 0; slot < tasks.size(); ++slot) {
      const Action& action = order(rank)[slot];
      if (action.kind == ActionKind::reduce) continue;
      if (action.kind == ActionKind::update && !kind_.updates) continue;
      const bool in_pair =
          action.overlaps_next || (slot > 0 && order(rank)[slot - 1].overlaps_next);
      tasks[slot] = append(lane, row_of(action, in_pair), action.stage,
                           {.name = name(to_string(action)), .phase = phase_of(action.kind)});
      note_consumer(action, {rank, static_cast<std::int32_t>(slot)});
    }
  }

  void note_consumer(const Action& action, RankSlot position) {
    const auto note = [&](std::size_t result) {
      consumer(result, action.stage, action.micro_batch) = position;
    };
    if (action.kind == ActionKind::forward) note(0);
    if (is_backward(action) && action.half != 2) note(1);
    if (is_backward(action) && action.half != 1) note(2);
  }

  void add_sends(std::int32_t rank) {
    for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(order(rank).size()); ++slot) {
      const Action& action = order(rank)[static_cast<std::size_t>(slot)];
      if (action.kind == ActionKind::forward && action.stage + 1 < schedule_.stages)
        send({rank, slot}, consumer(0, action.stage + 1, action.micro_batch));
      if (is_backward(action) && action.stage > 0)
        send({rank, slot},
             consumer(action.half == 2 ? 2 : 1, action.stage - 1, action.micro_batch));
    }
  }

  void send(RankSlot from, RankSlot to) {
    if (from.rank == to.rank) return;  // The order of the rank is enough.
    const Action& action = order(from.rank)[static_cast<std::size_t>(from.slot)];
    const TaskId released = task_at({from.rank, from.slot + (action.sends_late ? 1 : 0)});
    // A pair begins when both passes have what they wait for.
    if (to.slot > 0 && order(to.rank)[static_cast<std::size_t>(to.slot) - 1].overlaps_next)
      --to.slot;
    const TaskId user = task_at(to);
    if (kind_.sends == Sends::instant) return wait(released, user);
    const TimeRow row = send_row(action);
    if (kind_.sends == Sends::overlapping) return wait(released, user, row, action.stage);
    Task task{.name = name(fmt::format("{} to rank {}", to_string(action), to.rank)),
              .kind = TaskKind::copy_peer,
              .phase = phase_of(action.kind)};
    const TaskId sent = append(link(from.rank, to.rank), row, action.stage, task);
    wait(released, sent);
    wait(sent, user);
  }

  LaneId link(std::int32_t from, std::int32_t to) {
    const auto [at, added] = links_.try_emplace({from, to});
    if (added)
      at->second = built_.graph.add_lane({.name = fmt::format("rank {} to {}", from, to),
                                          .kind = LaneKind::link,
                                          .device = 0,
                                          .rank = from});
    return at->second;
  }

  /// An all-reduce of a stage, with the ranks that take part in it.
  struct Reduction {
    std::vector<RankSlot> members;
  };

  void add_reductions() {
    std::map<std::pair<std::int32_t, std::int32_t>, Reduction> reductions;  // By number and stage.
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) {
      std::map<std::int32_t, std::int32_t> numbers;
      for (std::size_t slot = 0; slot < order(rank).size(); ++slot) {
        const Action& action = order(rank)[slot];
        if (action.kind != ActionKind::reduce) continue;
        reductions[{numbers[action.stage]++, action.stage}].members.push_back(
            {rank, static_cast<std::int32_t>(slot)});
      }
      reduction_lanes_.push_back(kNoLane);
    }
    for (std::int32_t rank = 0; rank < schedule_.ranks; ++rank) add_markers(rank, reductions);
    for (const auto& [key, reduction] : reductions) transfer(key.second, reduction);
  }

  template <class Reductions>
  void add_markers(std::int32_t rank, const Reductions& reductions) {
    std::map<std::int32_t, std::int32_t> numbers;
    for (std::size_t slot = 0; slot < order(rank).size(); ++slot) {
      const Action& action = order(rank)[slot];
      if (action.kind != ActionKind::reduce) continue;
      const RankSlot position{rank, static_cast<std::int32_t>(slot)};
      const auto& members = reductions.at({numbers[action.stage]++, action.stage}).members;
      const LaneId lane = reduction_lane(rank);
      const TaskId entry = append(lane, members.size() > 1 ? TimeRow::none : TimeRow::all_reduce,
                                  action.stage, reduction_task(action, members.size() == 1));
      const TaskId in_front = task_before(position);
      if (in_front != kNoTask) wait(in_front, entry);
      task_at(position) = entry;
      if (members.size() > 1)
        exits_[{rank, position.slot}] =
            append(lane, TimeRow::none, action.stage, reduction_task(action, false));
      wait_for_reduction(position, action);
    }
  }

  Task reduction_task(const Action& action, bool transfers) {
    return {.name = name(to_string(action)),
            .kind = transfers ? TaskKind::collective : TaskKind::marker,
            .phase = Phase::backward};
  }

  LaneId reduction_lane(std::int32_t rank) {
    LaneId& lane = reduction_lanes_[static_cast<std::size_t>(rank)];
    if (lane == kNoLane)
      lane = built_.graph.add_lane(
          {.name = fmt::format("rank {} gradients", rank), .device = 0, .rank = rank});
    return lane;
  }

  TaskId task_before(RankSlot position) {
    while (--position.slot >= 0) {
      const auto kind = order(position.rank)[static_cast<std::size_t>(position.slot)].kind;
      if (kind != ActionKind::reduce && task_at(position) != kNoTask) return task_at(position);
    }
    return kNoTask;
  }

  /// Makes the stage's next update wait for the reduction.
  void wait_for_reduction(RankSlot position, const Action& action) {
    const auto& actions = order(position.rank);
    const auto exit = exits_.find({position.rank, position.slot});
    const TaskId last = exit == exits_.end() ? task_at(position) : exit->second;
    for (std::size_t slot = static_cast<std::size_t>(position.slot); slot < actions.size();
         ++slot) {
      if (actions[slot].kind != ActionKind::update || actions[slot].stage != action.stage) continue;
      wait(last, task_at({position.rank, static_cast<std::int32_t>(slot)}));
      return;
    }
  }

  void transfer(std::int32_t stage, const Reduction& reduction) {
    if (reduction.members.size() < 2) return;
    const auto [at, added] = transfer_lanes_.try_emplace(stage);
    if (added)
      at->second = built_.graph.add_lane({.name = fmt::format("gradients of stage {}", stage),
                                          .kind = LaneKind::link,
                                          .device = 0,
                                          .rank = reduction.members.front().rank});
    const Action action{.kind = ActionKind::reduce, .stage = stage};
    const TaskId transferred =
        append(at->second, TimeRow::all_reduce, stage, reduction_task(action, true));
    for (const RankSlot member : reduction.members) {
      wait(task_at(member), transferred);
      wait(transferred, exits_.at({member.rank, member.slot}));
    }
  }

  const Schedule& schedule_;
  const PipelineKind& kind_;
  const std::vector<Nanoseconds>& table_;
  bool named_;
  PipelineTasks built_;
  std::vector<RankSlot> consumers_;
  std::map<std::pair<std::int32_t, std::int32_t>, LaneId> links_;
  std::vector<LaneId> reduction_lanes_;                            ///< By rank.
  std::map<std::int32_t, LaneId> transfer_lanes_;                  ///< By stage.
  std::map<std::pair<std::int32_t, std::int32_t>, TaskId> exits_;  ///< By rank and slot.
};

}  // namespace

PipelineKind kind_of(const Schedule& schedule, const PipelineCosts& costs) {
  PipelineKind kind;
  bool sends = false;
  for (const StageCosts& stage : costs.stages) {
    kind.updates |= stage.all_reduce > 0ns || stage.update > 0ns;
    sends |= stage.send_forward > 0ns || stage.send_backward > 0ns;
  }
  if (sends) kind.sends = sends_queue(schedule, costs) ? Sends::queued : Sends::overlapping;
  return kind;
}

bool sends_queue(const Schedule& schedule, const PipelineCosts& costs) {
  // Two sends of a rank begin at least as far apart as the duration of the pass between them,
  // unless one is held back.
  Nanoseconds longest{0}, shortest = Nanoseconds::max();
  for (const StageCosts& stage : costs.stages) {
    longest = std::max({longest, stage.send_forward, stage.send_backward});
    shortest = std::min({shortest, stage.forward, stage.input_gradient + stage.recompute});
  }
  if (longest == 0ns) return false;
  for (const auto& order : schedule.orders) {
    for (const Action& action : order) {
      if (action.sends_late || action.half > 0) return true;
    }
  }
  return longest > scaled(shortest, 1 - costs.overlap);
}

std::vector<Nanoseconds> time_table(const Schedule& schedule, const PipelineCosts& costs) {
  if (costs.stages.size() != static_cast<std::size_t>(schedule.stages))
    throw Error(fmt::format("stages: must have costs for each of the {} stages, got {}",
                            schedule.stages, costs.stages.size()));
  if (!(costs.overlap >= 0 && costs.overlap < 1))
    throw Error("overlap: must be at least 0 and less than 1, got " + to_text(costs.overlap));
  std::vector<Nanoseconds> table(kTimeRows * costs.stages.size());
  for (std::int32_t i = 0; i < schedule.stages; ++i) {
    const StageCosts& stage = costs.stages[static_cast<std::size_t>(i)];
    const auto set = [&](TimeRow row, Nanoseconds time) {
      if (time < 0ns) throw Error("costs: must be at least 0, got " + to_text(time));
      table[time_index(row, i, schedule.stages)] = time;
    };
    const Nanoseconds input = stage.recompute + stage.input_gradient;
    const Nanoseconds backward = input + stage.weight_gradient;
    set(TimeRow::forward, stage.forward);
    set(TimeRow::backward, backward);
    set(TimeRow::first_half, backward / 2);
    set(TimeRow::second_half, backward - backward / 2);
    set(TimeRow::input_gradient, input);
    set(TimeRow::weight_gradient, stage.weight_gradient);
    set(TimeRow::forward_in_pair, scaled(stage.forward, 1 - costs.overlap));
    set(TimeRow::backward_in_pair, scaled(backward, 1 - costs.overlap));
    set(TimeRow::send_forward, stage.send_forward);
    set(TimeRow::send_backward, stage.send_backward);
    set(TimeRow::send_first_half, stage.send_backward / 2);
    set(TimeRow::send_second_half, stage.send_backward - stage.send_backward / 2);
    set(TimeRow::all_reduce, stage.all_reduce);
    set(TimeRow::update, stage.update);
  }
  return table;
}

PipelineTasks pipeline_tasks(const Schedule& schedule, const PipelineKind& kind,
                             const std::vector<Nanoseconds>& table, bool named) {
  return PipelineBuilder(schedule, kind, table, named).build();
}

}  // namespace foretrace

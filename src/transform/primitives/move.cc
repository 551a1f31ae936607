#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Puts tasks on another lane, where they run beside the old one. Only the requested part of the
/// order on the old lane stays, as dependencies:
///
///     stream  |AAAAcccBBBB|   where c, front no  ->  stream  |AAAABBBB|
///                                                    copies  |ccc.....|
class Move final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to move");
    fields.text("to", to_, "Name of the lane; added on the same device and rank if there is none");
    fields.flag("front", front_, "They still wait for the task that was before them");
    fields.flag("behind", behind_, "The task that was after them still waits for them");
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (to_.empty()) throw Error("to: must be the name of a lane");
    std::vector<TaskId> tasks = where_.select_some(graph);
    const std::vector<Group> runs = grouped(graph, tasks, "run");
    Effect effect;
    for (const Group& run : runs) keep_lane_order(graph, run, effect);
    sort_by_start(tasks, simulate(graph, {.memory = false}).start);
    std::map<LaneId, LaneId> goal;
    for (const TaskId task : tasks) {
      const LaneId from = graph.lane_of(task);
      const auto [to, added] = goal.try_emplace(from, kNoLane);
      if (added) to->second = lane_named(graph, to_, from);
      if (to->second == from) continue;
      graph.move_to_end(task, to->second);
      ++effect.changed;
    }
    effect.summary = fmt::format("{} moved to \"{}\"", counted(tasks.size(), "task"), to_);
    effect.assumptions.push_back(
        fmt::format("work that runs at the same time on \"{}\" and on the old lane does not slow "
                    "each other down",
                    to_));
    return effect;
  }

 private:
  void keep_lane_order(Graph& graph, const Group& run, Effect& effect) const {
    const TaskId in_front = graph.previous(run.front());
    const TaskId behind = graph.next(run.back());
    const WaitReason why = wait_reason_named(graph.names(), "order before move");
    const auto add = [&](TaskId before, TaskId after) {
      graph.add({.before = before, .after = after, .provenance = Provenance::assumed, .why = why});
      ++effect.changed;
    };
    if (graph.lane(graph.lane_of(run.front())).name == to_) return;
    if (front_ && in_front != kNoTask) add(in_front, run.front());
    if (behind_ && behind != kNoTask) add(run.back(), behind);
  }

  Selector where_;
  std::string to_;
  bool front_ = true;
  bool behind_ = true;
};

}  // namespace

TransformEntry move_entry() {
  return {.make = create<Move>,
          .assumes =
              "The lanes run at full speed side by side. Dependencies of the moved tasks stay; "
              "\"front\" and \"behind\" decide what stays of the order on the old lane.",
          .advice = {.why_not = "a manual edit: you choose what to move"}};
}

}  // namespace foretrace

#include <algorithm>
#include <fmt/core.h>
#include <set>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Makes a lane run its most urgent ready task first, preempting a less urgent one at the end of a
/// slice:
///
///     link  |cccccaab|   by layer (a is the front)  ->  link  |ccaabccc|
class Priority final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks that get a priority; others on their lanes have 0");
    fields.choice(
        "by", by_, {"front_layers", "back_layers", "value"},
        "Which tasks are urgent: layers at the front of the model, at its back, or all alike");
    fields.integer("value", value_, "The priority for \"by\": \"value\"; greater runs first",
                   -1'000'000, 1'000'000);
    fields.time("slice", slice_,
                "A running task can be preempted each time this has passed; 0ns: at any time",
                Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    std::int32_t last_layer = 0;
    for (const TaskId task : tasks) last_layer = std::max(last_layer, graph.task(task).layer);
    std::set<LaneId> lanes;
    for (const TaskId id : tasks) {
      Task& task = graph.task(id);
      task.priority = priority_of(task, last_layer);
      lanes.insert(graph.lane_of(id));
    }
    for (const LaneId id : lanes) {
      Lane& lane = graph.lane(id);
      if (lane.kind == LaneKind::host_thread || lane.kind == LaneKind::worker) {
        throw Error(
            fmt::format("where: must select work of streams, copy engines, links or disks, got the "
                        "thread \"{}\", which runs its work in order",
                        lane.name));
      }
      lane.discipline = Discipline::priority;
      lane.slice = slice_;
    }
    Effect effect;
    effect.changed = tasks.size();
    effect.summary = fmt::format("{} on {} run in order of urgency", counted(tasks.size(), "task"),
                                 counted(lanes.size(), "lane"));
    effect.assumptions.push_back(
        "tasks on those lanes wait for their dependencies and not for the task before them");
    return effect;
  }

 private:
  std::int32_t priority_of(const Task& task, std::int32_t last_layer) const {
    if (by_ == "value") return static_cast<std::int32_t>(value_);
    if (task.layer < 0) return 0;
    return 1 + (by_ == "front_layers" ? last_layer - task.layer : task.layer);
  }

  Selector where_{"transfer"};
  std::string by_ = "front_layers";
  std::int64_t value_ = 1;
  Nanoseconds slice_{0};
};

}  // namespace

TransformEntry priority_entry() {
  return {.make = create<Priority>,
          .assumes =
              "Preempting a task and resuming it cost nothing. A lane with priorities has no order "
              "of its own: order that must stay needs a dependency. Only a task that waits for "
              "nothing else still waits for the one before it.",
          .advice = {.why_not = "a manual edit: you choose the priorities"}};
}

}  // namespace foretrace

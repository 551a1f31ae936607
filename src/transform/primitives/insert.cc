#include <algorithm>
#include <fmt/core.h>

#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Adds work: beside each selected task, or once per step next to the first (before) or last
/// (behind) one. On the same lane it is queued there; on a lane of its own a dependency ties it to
/// its neighbour:
///
///     stream  |AAABBB|   behind A, lane "side"  ->  stream  |AAABBB|
///                                                   side    |...XX.|
class Insert final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The neighbours");
    fields.choice("place", place_, {"before", "behind"}, "On which side of its neighbour");
    fields.choice("per", per_, {"each", "step"},
                  "One for each selected task, or one for each step");
    fields.text("name", name_, "Name of the new tasks");
    fields.choice("kind", kind_, task_kind_names(), "Kind of the new tasks");
    fields.time("duration", duration_, "Duration of each new task", Nanoseconds(0));
    fields.bytes("bytes", bytes_, "Bytes that each new task moves");
    fields.text("lane", lane_,
                "Lane to put them on, added if there is none; empty: the neighbour's");
    fields.optional_time("launch", launch_,
                         "Also add a launch call of this length on the thread that launched the "
                         "neighbour",
                         Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> neighbours = chosen(graph);
    const Launches launches(graph);
    Effect effect;
    std::size_t launched = 0;
    for (const TaskId neighbour : neighbours) {
      const TaskId added = add_beside(graph, neighbour);
      if (launch_ && add_launch(graph, launches.launch_of(neighbour), added)) ++launched;
    }
    effect.changed = neighbours.size();
    effect.summary =
        fmt::format("{} added, {} in all", counted(neighbours.size(), "task"),
                    to_text(scaled(duration_, static_cast<double>(neighbours.size()))));
    if (launch_ && launched < neighbours.size()) {
      effect.notes.add(Severity::warning, "inserted tasks whose neighbour has no launch call",
                       name_, static_cast<std::int64_t>(neighbours.size() - launched));
    }
    return effect;
  }

 private:
  bool before() const { return place_ == "before"; }

  /// Returns the neighbours in order of time, the order of the new tasks on a lane of their own.
  std::vector<TaskId> chosen(const Graph& graph) const {
    std::vector<TaskId> tasks = where_.select_some(graph);
    sort_by_start(tasks, simulate(graph, {.memory = false}).start);
    if (per_ == "each") return tasks;
    if (!before()) std::reverse(tasks.begin(), tasks.end());
    tasks = first_of_each_step(graph, tasks);
    if (!before()) std::reverse(tasks.begin(), tasks.end());
    return tasks;
  }

  Task made_like(Graph& graph, TaskId neighbour, TaskKind kind, Nanoseconds duration) const {
    const Task& like = graph.task(neighbour);
    return {.duration = duration,
            .name = graph.names().intern(kind == TaskKind::launch ? "launch " + name_ : name_),
            .module = like.module,
            .step = like.step,
            .layer = like.layer,
            .kind = kind,
            .phase = like.phase};
  }

  TaskId add_beside(Graph& graph, TaskId neighbour) const {
    Task task = made_like(graph, neighbour, *task_kind_named(kind_), duration_);
    task.bytes = bytes_;
    const LaneId own = graph.lane_of(neighbour);
    const LaneId lane = lane_.empty() ? own : lane_named(graph, lane_, own);
    if (lane == own) {
      return before() ? graph.insert_before(neighbour, task) : graph.insert_behind(neighbour, task);
    }
    const TaskId added = graph.append(lane, task);
    graph.add({.before = before() ? added : neighbour,
               .after = before() ? neighbour : added,
               .provenance = Provenance::assumed,
               .why = wait_reason_named(graph.names(), "insert")});
    return added;
  }

  bool add_launch(Graph& graph, TaskId beside, TaskId launched) const {
    if (beside == kNoTask) return false;
    const Task call = made_like(graph, beside, TaskKind::launch, *launch_);
    const TaskId added =
        before() ? graph.insert_before(beside, call) : graph.insert_behind(beside, call);
    graph.add({.before = added,
               .after = launched,
               .provenance = Provenance::assumed,
               .why = Rule::launch});
    return true;
  }

  Selector where_;
  std::string place_ = "behind";
  std::string per_ = "each";
  std::string name_ = "inserted";
  std::string kind_ = "kernel";
  Nanoseconds duration_{0};
  Bytes bytes_{};
  std::string lane_;
  std::optional<Nanoseconds> launch_;
};

}  // namespace

TransformEntry insert_entry() {
  return {.make = create<Insert>,
          .assumes =
              "The new work slows only the tasks that wait for it: on its own lane it runs beside "
              "the others at full speed. Its duration is the one you give.",
          .advice = {.why_not = "a manual edit: you choose what to insert"}};
}

}  // namespace foretrace

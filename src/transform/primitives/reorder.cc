#include <algorithm>
#include <fmt/core.h>

#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Sorts the selected tasks of a lane and step among their places; the others keep theirs:
///
///     link  |cccbba|   by layer  ->  link  |abbccc|
class Reorder final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to reorder");
    fields.choice("by", by_, {"layer", "layer_reversed", "name", "duration", "reversed"},
                  "Their new order; layer: the front of the model first");
  }

  Effect apply(Graph& graph, const Context&) const override {
    Effect effect;
    std::size_t groups = 0;
    for (const Group& group : grouped(graph, where_.select_some(graph), "step")) {
      const std::size_t moved = place(graph, group, in_new_order(graph, group));
      effect.changed += moved;
      if (moved > 0) ++groups;
    }
    effect.summary = fmt::format("{} in a new place, in {} of one lane and step",
                                 counted(effect.changed, "task"), counted(groups, "group"));
    return effect;
  }

 private:
  std::vector<TaskId> in_new_order(const Graph& graph, Group tasks) const {
    if (by_ == "reversed") {
      std::reverse(tasks.begin(), tasks.end());
      return tasks;
    }
    std::stable_sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      if (by_ == "name") return graph.name(a) < graph.name(b);
      const Task& x = graph.task(a);
      const Task& y = graph.task(b);
      if (by_ == "duration") return x.duration < y.duration;
      return by_ == "layer" ? x.layer < y.layer : x.layer > y.layer;
    });
    return tasks;
  }

  /// Rebuilds the stretch of the line from the first to the last place of `places`.
  static std::size_t place(Graph& graph, const Group& places, const std::vector<TaskId>& order) {
    std::vector<TaskId> line;
    std::size_t moved = 0;
    std::size_t n = 0;
    for (TaskId task = places.front(); n < places.size(); task = graph.next(task)) {
      const bool changes = task == places[n];
      line.push_back(changes ? order[n] : task);
      if (changes && order[n] != task) ++moved;
      if (changes) ++n;
    }
    if (moved == 0) return 0;
    if (line.front() != places.front()) graph.move_before(line.front(), places.front());
    for (std::size_t i = 1; i < line.size(); ++i) {
      if (graph.previous(line[i]) != line[i - 1]) graph.move_behind(line[i], line[i - 1]);
    }
    return moved;
  }

  Selector where_;
  std::string by_ = "layer";
};

}  // namespace

TransformEntry reorder_entry() {
  return {.make = create<Reorder>,
          .assumes =
              "Lanes stay first in, first out: a task still blocks those behind it while it waits. "
              "An order that the dependencies forbid is reported as a cycle.",
          .advice = {.why_not = "a manual edit: you choose the order"}};
}

}  // namespace foretrace

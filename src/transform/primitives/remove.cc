#include <fmt/core.h>

#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Deletes tasks from their lanes. Waits pass through them, as if they took no time:
///
///     cpu     |Ll....|                  cpu     |Ll..|
///     stream  |.AAAB.|   where A   ->   stream  |..B.|
class Remove final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to delete");
    fields.flag("launches", launches_, "Also delete the calls that launched nothing else");
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    const Nanoseconds total = total_duration(graph, tasks);
    const Launches launches(graph);
    for (const TaskId task : tasks) graph.remove(task);
    const std::size_t calls = launches_ ? remove_launches_of(graph, launches, tasks) : 0;
    Effect effect;
    effect.changed = tasks.size() + calls;
    effect.summary = fmt::format("{} of {} removed", counted(tasks.size(), "task"), to_text(total));
    if (launches_) effect.summary += ", with " + counted(calls, "launch call");
    return effect;
  }

 private:
  Selector where_;
  bool launches_ = false;
};

}  // namespace

TransformEntry remove_entry() {
  return {.make = create<Remove>,
          .assumes =
              "Nothing else changes: tasks that waited for a deleted task wait for what it waited "
              "for. Memory it allocated stays allocated.",
          .advice = {.why_not = "a manual edit: you choose what to delete"}};
}

}  // namespace foretrace

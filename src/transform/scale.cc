#include <algorithm>

#include "foretrace/error.h"
#include "foretrace/select.h"
#include "transform/edit.h"
#include "transform/registered.h"

namespace foretrace {
namespace {

/// Multiplies durations, then adds to them:
///
///     stream  |AAAABBBB|   factor 0.5  ->  stream  |AABB|
class Scale final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to change");
    fields.number("factor", factor_, "Every duration is multiplied by this", 0);
    fields.time("by", by_, "Then this is added, down to no time; negative makes tasks faster");
  }

  Effect apply(Graph& graph) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    const Nanoseconds before = total_duration(graph, tasks);
    Effect effect;
    for (const TaskId id : tasks) {
      Nanoseconds& duration = graph.task(id).duration;
      const Nanoseconds wanted = std::max(scaled(duration, factor_) + by_, Nanoseconds(0));
      if (wanted != duration) ++effect.changed;
      duration = wanted;
    }
    effect.summary = counted(tasks.size(), "task") + " from " + to_text(before) + " to " +
                     to_text(total_duration(graph, tasks)) + " in all";
    return effect;
  }

 private:
  Selector where_;
  double factor_ = 1;
  Nanoseconds by_{0};
};

}  // namespace

std::unique_ptr<Transform> make_scale() { return std::make_unique<Scale>(); }

std::string_view assumes_scale() {
  return "Only the work of the tasks changes: who waits for whom, bytes and memory stay.";
}

}  // namespace foretrace

#include <algorithm>
#include <fmt/core.h>

#include "graph/select.h"
#include "transform/edit/fuse.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Fuses each group of tasks into one task, and keeps only the first of their launches:
///
///     cpu     |LMN......|                  cpu     |L.....|
///     stream  |.AABBCC..|   per run   ->   stream  |.AAAAAA|
class Replace final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to fuse");
    fields.choice(
        "per", per_, {"run", "layer", "step", "all"},
        "What becomes one task on each lane: tasks that directly follow each other, those of a "
        "layer in one step and phase, of a step, or all");
    fields.text("name", name_, "Name of the new tasks; empty: that of the first");
    fields.choice("duration", duration_, {"sum", "max"},
                  "Duration of the new task, from those it replaces");
    fields.number("factor", factor_, "Its duration is multiplied by this", 0);
    fields.flag("launches", launches_, "Keep only the launch call of the first of each group");
  }

  Effect apply(Graph& graph, const Context&) const override {
    std::vector<Fusion> fusions;
    for (Group& group : grouped(graph, where_.select_some(graph), per_)) {
      const Nanoseconds duration = scaled(
          duration_ == "sum" ? total_duration(graph, group) : longest(graph, group), factor_);
      fusions.push_back({.tasks = std::move(group), .duration = duration});
    }
    Effect effect;
    for (const Fusion& fusion : fusions) {
      const Task& first = graph.task(fusion.tasks.front());
      if (first.duration != fusion.duration || !name_.empty()) ++effect.changed;
    }
    const NameId name = graph.names().intern(name_);
    const FusionCount fused = fuse(graph, fusions, name, launches_);
    effect.changed += fused.tasks + fused.launches;
    effect.summary =
        fmt::format("{} became {}, {} fewer", counted(fusions.size() + fused.tasks, "task"),
                    grouped(fusions.size()), counted(fused.launches, "launch call"));
    return effect;
  }

 private:
  static Nanoseconds longest(const Graph& graph, const Group& group) {
    Nanoseconds longest(0);
    for (const TaskId task : group) longest = std::max(longest, graph.task(task).duration);
    return longest;
  }

  Selector where_{"kernel"};
  std::string per_ = "run";
  std::string name_;
  std::string duration_ = "sum";
  double factor_ = 1;
  bool launches_ = true;
};

}  // namespace

TransformEntry replace_entry() {
  return {.make = create<Replace>,
          .assumes =
              "The fused task takes the place of the first of its group, waits for everything on "
              "other lanes that one of them waited for, and everything that waited for one of them "
              "waits for it. Host work between the launches stays: delete it with \"remove\" where "
              "fusing saves it.",
          .advice = {.why_not = "a manual edit: you choose what to fuse"}};
}

}  // namespace foretrace

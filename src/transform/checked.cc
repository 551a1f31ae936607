#include "transform/checked.h"

#include <algorithm>

#include "foretrace/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/quiet_fields.h"

namespace foretrace {
namespace {

class RankFinder final : public QuietFields {
 public:
  void optional_integer(std::string_view name, std::optional<std::int64_t>& value, std::string_view,
                        std::int64_t) override {
    if (name == "rank" && value) ranks.insert(static_cast<std::int32_t>(*value));
  }
  void object(std::string_view, Described& value, std::string_view) override {
    value.describe(*this);
  }

  std::set<std::int32_t> ranks;
};

/// Notes which tasks selectors leave out because work of a device has the name.
class LeftOut final : public QuietFields {
 public:
  LeftOut(const Graph& graph, Notes& notes) : graph_(graph), notes_(notes) {}

  void object(std::string_view name, Described& value, std::string_view) override {
    const auto* const selector = dynamic_cast<const Selector*>(&value);
    if (selector == nullptr) return value.describe(*this);
    const std::size_t others = selector->left_out(graph_);
    if (others == 0) return;
    notes_.add(Severity::info,
               "a name matches both device work and host work; only the device work is selected "
               "(kind \"all\" selects both)",
               std::string(name) + ": " + tasks_by_kind(graph_, selector->select(graph_)) +
                   ", without " + counted(others, "host task"));
  }

 private:
  const Graph& graph_;
  Notes& notes_;
};

/// Calls `visit` with all that neither a dependency nor an order of their lane makes wait.
template <class Visit>
void each_free_task(const Graph& graph, const Visit& visit) {
  for (std::uint32_t i = 0; i < graph.lane_count(); ++i) {
    const LaneId lane{i};
    if (graph.lane(lane).discipline == Discipline::fifo) continue;
    for (TaskId task = graph.first(lane); task != kNoTask; task = graph.next(task)) {
      if (!has_waits(graph, task)) visit(task);
    }
  }
}

/// Lets tasks that nothing makes wait any more wait for the one in front. `free_before` is sorted.
void keep_places(Graph& graph, const std::vector<TaskId>& free_before) {
  each_free_task(graph, [&](TaskId task) {
    const TaskId front = graph.previous(task);
    if (front == kNoTask) return;
    if (std::binary_search(free_before.begin(), free_before.end(), task)) return;
    graph.add({.before = front, .after = task, .lag = graph.task(task).gap, .why = Rule::in_line});
  });
}

}  // namespace

std::set<std::int32_t> ranks_named(Transform& transform) {
  RankFinder finder;
  transform.describe(finder);
  return finder.ranks;
}

Effect apply_checked(Transform& transform, Graph& graph, const Context& context) {
  std::vector<TaskId> free_before;
  each_free_task(graph, [&](TaskId task) { free_before.push_back(task); });
  std::sort(free_before.begin(), free_before.end());
  Notes notes;
  LeftOut left_out(graph, notes);
  transform.describe(left_out);
  Effect effect = transform.apply(graph, context);
  keep_places(graph, free_before);
  effect.notes.merge(notes);
  return effect;
}

}  // namespace foretrace

#include "transform/checked.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/fields/settings.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/parallel/contention.h"

namespace foretrace {
namespace {

/// Collects the selectors among the settings of a transform, with their names.
class SelectorCollector final : public Fields {
 public:
  explicit SelectorCollector(Transform& transform) { transform.describe(*this); }

  void visit(const Setting& setting) override {
    auto* const* const nested = std::get_if<Described*>(&setting.value);
    if (nested == nullptr) return;
    const auto* const selector = dynamic_cast<const Selector*>(*nested);
    if (selector == nullptr) return (*nested)->describe(*this);
    found.emplace_back(setting.name, selector);
  }

  std::vector<std::pair<std::string, const Selector*>> found;
};

/// Collects the ranks that the settings of a transform name, including the ranks of its selectors.
class RankCollector final : public Fields {
 public:
  explicit RankCollector(Transform& transform) { transform.describe(*this); }

  void visit(const Setting& setting) override {
    if (auto* const* const nested = std::get_if<Described*>(&setting.value))
      return (*nested)->describe(*this);
    auto* const* const value = std::get_if<std::optional<std::int64_t>*>(&setting.value);
    if (value != nullptr && *value != nullptr && setting.name == "rank" && (*value)->has_value())
      found.insert(static_cast<std::int32_t>(***value));
  }

  std::set<std::int32_t> found;
};

/// Adds a note for each selector that leaves out host tasks because device tasks match its name
/// too.
void note_left_out(Transform& transform, const Graph& graph, Notes& notes) {
  for (const auto& [name, selector] : SelectorCollector(transform).found) {
    const std::size_t others = selector->left_out(graph);
    if (others == 0) continue;
    notes.add(Severity::info,
              "a name matches both device work and host work; only the device work is selected "
              "(kind \"all\" selects both)",
              fmt::format("{}: {}, without {}", name, tasks_by_kind(graph, selector->select(graph)),
                          counted(others, "host task")));
  }
}

/// Calls `visit` with each task that nothing makes wait: it has no dependency, and its lane is not
/// FIFO.
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

/// Makes each task that has nothing left to wait for wait for the task in front of it on its lane.
/// Tasks in `free_before`, which is sorted, stay free.
void keep_order(Graph& graph, const std::vector<TaskId>& free_before) {
  each_free_task(graph, [&](TaskId task) {
    const TaskId front = graph.previous(task);
    if (front == kNoTask) return;
    if (std::binary_search(free_before.begin(), free_before.end(), task)) return;
    graph.add({.before = front, .after = task, .lag = graph.task(task).gap, .why = Rule::in_line});
  });
}

}  // namespace

std::set<std::int32_t> ranks_named(Transform& transform) { return RankCollector(transform).found; }

Effect apply_checked(Transform& transform, Graph& graph, const Context& context) {
  std::vector<TaskId> free_before;
  each_free_task(graph, [&](TaskId task) { free_before.push_back(task); });
  std::sort(free_before.begin(), free_before.end());
  Notes notes;
  note_left_out(transform, graph, notes);
  Applicability applies = transform.applies(graph);
  release_contention(graph);
  Effect effect = transform.apply(graph, context);
  effect.applies = std::move(applies);
  keep_order(graph, free_before);
  restore_contention(graph);
  effect.notes.merge(notes);
  return effect;
}

}  // namespace foretrace

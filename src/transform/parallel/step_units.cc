#include "transform/parallel/step_units.h"

#include <algorithm>
#include <set>

#include "base/numbers/scaling.h"

namespace foretrace {
namespace {

/// Units if the trace names no layers. Chosen: the models at hand have as many layers.
constexpr std::size_t kUnits = 24;

class Division {
 public:
  Division(const Graph& graph, const Timeline& timeline) : graph_(graph), timeline_(timeline) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId id{i};
      const Task& task = graph.task(id);
      if (graph.removed(id) || !runs_on_device(task.kind)) continue;
      if (task.phase == Phase::update) {
        TaskId& last = found_.steps[task.step].last_update;
        if (last == kNoTask || finish(id) > finish(last)) last = id;
      }
      if (task.phase != Phase::forward && task.phase != Phase::backward) continue;
      work_[task.step].push_back(id);
      if (task.layer >= 0) layers_.insert(task.layer);
    }
  }

  UnitsOfSteps divide(std::size_t units) {
    const bool by_layer = units == 0 && layers_.size() > 1;
    if (units == 0) units = by_layer ? layers_.size() : kUnits;
    for (auto& [step, tasks] : work_) {
      std::ranges::stable_sort(tasks, {}, [&](TaskId id) { return timeline_.start[index(id)]; });
      StepUnits& into = found_.steps[step];
      into.forward.resize(units), into.backward.resize(units);
      if (by_layer)
        by_layers(tasks, into);
      else
        by_time(tasks, into);
    }
    return std::move(found_);
  }

 private:
  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  void put(TaskId task, std::size_t unit, StepUnits& into) {
    UnitWork& work =
        graph_.task(task).phase == Phase::forward ? into.forward[unit] : into.backward[unit];
    work.tasks.push_back(task);
    if (work.last == kNoTask || finish(task) > finish(work.last)) work.last = task;
    found_.unit[task] = unit;
  }

  void by_layers(const std::vector<TaskId>& tasks, StepUnits& into) {
    std::size_t unit = 0;  // Work without a layer belongs to the layer in front.
    for (const TaskId id : tasks) {
      const auto layer = layers_.find(graph_.task(id).layer);
      if (layer != layers_.end())
        unit = static_cast<std::size_t>(std::distance(layers_.begin(), layer));
      put(id, unit, into);
    }
  }

  void by_time(const std::vector<TaskId>& tasks, StepUnits& into) {
    const std::size_t units = into.forward.size();
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      Nanoseconds total{0}, done{0};
      for (const TaskId id : tasks)
        if (graph_.task(id).phase == phase) total += graph_.task(id).duration;
      for (const TaskId id : tasks) {
        if (graph_.task(id).phase != phase) continue;
        const auto piece = std::min(
            units - 1, static_cast<std::size_t>(ratio(done, total) * static_cast<double>(units)));
        put(id, phase == Phase::forward ? piece : units - 1 - piece, into);
        done += graph_.task(id).duration;
      }
    }
  }

  const Graph& graph_;
  const Timeline& timeline_;
  UnitsOfSteps found_;
  std::map<std::int32_t, std::vector<TaskId>> work_;  ///< By step.
  std::set<std::int32_t> layers_;
};

}  // namespace

UnitsOfSteps units_of_steps(const Graph& graph, const Timeline& timeline, std::size_t units) {
  return Division(graph, timeline).divide(units);
}

}  // namespace foretrace

#include "transform/parallel/step_units.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/numbers/scaling.h"

namespace foretrace {
namespace {

/// Units if the trace names no blocks or layers. Chosen: the models at hand have as many layers.
constexpr std::size_t kUnits = 24;

/// "Model/Layer/Linear" for "Model_0/Layer_7/Linear_3".
std::string class_path(std::string_view module) {
  std::string classes;
  const auto drop_number = [&] { classes.erase(classes.find_last_not_of("0123456789") + 1); };
  for (const char c : module) {
    if (c == '/') drop_number();
    classes += c;
  }
  drop_number();
  return classes;
}

/// Finds the blocks of a model by the paths of the modules that do its work: the outermost modules
/// of which several of one class are in one parent, and which have modules themselves. Stages are
/// no blocks: each has more modules of a class than it has siblings.
///
///     Model_0/Layer_7/Linear_3        Layer_7; Linear_3 has no modules
///     Model_0/Stage_1/Layer_3/MLP_3   Layer_3 if a stage has more layers than the model has stages
class ModelBlocks {
 public:
  explicit ModelBlocks(const std::set<std::string_view>& modules) {
    std::set<std::string_view> seen;
    std::map<std::string_view, std::size_t> siblings;
    for (const std::string_view module : modules) {
      for (std::size_t end = inner(module, 0); end < module.size(); end = inner(module, end)) {
        const std::string_view outer = module.substr(0, end);
        if (!seen.insert(outer).second) continue;
        const std::size_t number = outer.find_last_not_of("0123456789") + 1;
        std::size_t& most = most_siblings_[class_path(outer)];
        most = std::max(most, ++siblings[outer.substr(0, number)]);
      }
    }
    std::erase_if(most_siblings_, [](const auto& one) { return one.second < 2; });
    std::set<std::string> stages;
    for (const auto& [path, most] : most_siblings_) {
      const auto parent = most_siblings_.find(path.substr(0, path.rfind('/')));
      if (parent != most_siblings_.end() && parent->second < most) stages.insert(parent->first);
    }
    std::erase_if(most_siblings_, [&](const auto& one) { return stages.contains(one.first); });
  }

  /// Returns the path of the block that `module` is or belongs to; empty if it is outside of all.
  std::string_view block_of(std::string_view module) const {
    for (std::size_t end = 0; end < module.size();) {
      end = inner(module, end);
      const std::string_view outer = module.substr(0, end);
      if (most_siblings_.contains(class_path(outer))) return outer;
    }
    return {};
  }

 private:
  /// Returns the end of the next component behind `end`; the first one, the model, is skipped.
  static std::size_t inner(std::string_view module, std::size_t end) {
    if (end == 0) end = module.find('/');
    return end >= module.size() ? module.size()
                                : std::min(module.find('/', end + 1), module.size());
  }

  std::map<std::string, std::size_t> most_siblings_;  ///< Most in one parent, by path of classes.
};

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
      if (task.layer >= 0) modules_.try_emplace(task.layer, task.module);
    }
    number_units();
  }

  UnitsOfSteps divide(std::size_t units) {
    const bool by_layer = units == 0 && units_ > 1;
    if (units == 0) units = by_layer ? units_ : kUnits;
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
  /// Numbers the blocks of the model in order; its layers, if it has no blocks.
  void number_units() {
    const auto path = [&](NameId module) { return graph_.names()[module]; };
    std::set<std::string_view> paths;
    for (const auto& [layer, module] : modules_) paths.insert(path(module));
    const ModelBlocks model(paths);
    std::map<std::string_view, std::size_t> blocks;
    for (const auto& [layer, module] : modules_) {
      const std::string_view block = model.block_of(path(module));
      if (!block.empty())
        unit_of_layer_[layer] = blocks.try_emplace(block, blocks.size()).first->second;
    }
    units_ = blocks.size();
    if (units_ > 0) return;
    for (const auto& [layer, module] : modules_) unit_of_layer_[layer] = units_++;
  }

  Nanoseconds finish(TaskId task) const { return timeline_.finish[index(task)]; }

  void put(TaskId task, std::size_t unit, StepUnits& into) {
    UnitWork& work =
        graph_.task(task).phase == Phase::forward ? into.forward[unit] : into.backward[unit];
    work.tasks.push_back(task);
    if (work.last == kNoTask || finish(task) > finish(work.last)) work.last = task;
    found_.unit[task] = unit;
  }

  void by_layers(const std::vector<TaskId>& tasks, StepUnits& into) {
    std::size_t unit = 0;  // Work outside of all units belongs to the one in front.
    for (const TaskId id : tasks) {
      const auto found = unit_of_layer_.find(graph_.task(id).layer);
      if (found != unit_of_layer_.end()) unit = found->second;
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
  std::map<std::int32_t, NameId> modules_;            ///< By layer.
  std::map<std::int32_t, std::size_t> unit_of_layer_;
  std::size_t units_ = 0;
};

}  // namespace

UnitsOfSteps units_of_steps(const Graph& graph, const Timeline& timeline, std::size_t units) {
  return Division(graph, timeline).divide(units);
}

}  // namespace foretrace

#include "transform/edit/fuse.h"

namespace foretrace {
namespace {

class Fuser {
 public:
  Fuser(Graph& graph, const std::vector<Fusion>& fusions)
      : graph_(graph), launches_(graph), fused_into_(graph.task_count()) {
    for (std::size_t i = 0; i < fused_into_.size(); ++i) fused_into_[i] = static_cast<TaskId>(i);
    for (const Fusion& fusion : fusions) {
      for (const TaskId task : fusion.tasks) {
        fused_into_[index(task)] = fusion.tasks.front();
        if (task != fusion.tasks.front()) removed_.push_back(task);
      }
    }
  }

  FusionCount run(bool without_launches) {
    redirect(without_launches);
    for (Allocation& allocation : graph_.allocations()) {
      redirect(allocation.made_by);
      redirect(allocation.freed_by);
    }
    FusionCount count{.tasks = removed_.size()};
    for (const TaskId task : removed_) graph_.remove(task);
    drop_dependencies_of(graph_, removed_);
    if (without_launches) count.launches = remove_launches_of(graph_, launches_, removed_);
    return count;
  }

 private:
  void redirect(TaskId& task) const {
    if (task != kNoTask) task = fused_into_[index(task)];
  }

  void redirect(bool without_launches) {
    std::vector<Dependency> redirected;
    graph_.each_dependency([&](const Dependency& dependency) {
      Dependency moved = dependency;
      redirect(moved.before);
      redirect(moved.after);
      if (moved.before == dependency.before && moved.after == dependency.after) return;
      if (moved.before == moved.after) return;
      // Tasks of one lane need no dependency: the lane keeps their order.
      if (graph_.lane_of(moved.before) == graph_.lane_of(moved.after)) return;
      const bool launch = launches_.launch_of(dependency.after) == dependency.before;
      if (launch && without_launches) return;
      redirected.push_back(moved);
    });
    for (const Dependency& dependency : redirected) graph_.add(dependency);
  }

  Graph& graph_;
  Launches launches_;
  std::vector<TaskId> fused_into_;
  std::vector<TaskId> removed_;
};

}  // namespace

FusionCount fuse(Graph& graph, const std::vector<Fusion>& fusions, NameId name, bool launches) {
  for (const Fusion& fusion : fusions) {
    Task fused = graph.task(fusion.tasks.front());
    fused.duration = fusion.duration;
    fused.bytes = {};
    fused.flops = 0;
    fused.inner = 0;
    for (const TaskId task : fusion.tasks) {
      fused.bytes += graph.task(task).bytes;
      fused.flops += graph.task(task).flops;
    }
    if (name != NameId{}) fused.name = name;
    graph.task(fusion.tasks.front()) = fused;
  }
  return Fuser(graph, fusions).run(launches);
}

}  // namespace foretrace

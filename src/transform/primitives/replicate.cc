#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <unordered_map>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMaxAddedTasks = 10'000'000;  ///< About 2 GB.

/// Runs copies of tasks on lanes of their own, as further devices, threads or ranks would:
///
///     stream  |AABB|   1 copy  ->  stream    |AABB|
///                                  stream#2  |AABB|
class Replicate final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to copy");
    fields.integer("copies", copies_, "How many copies to add", 1, 100'000);
    fields.flag("ranks", ranks_, "Each copy is a rank of its own");
    fields.flag("join", join_, "Tasks that wait for a task wait for its copies too");
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    if (static_cast<std::int64_t>(tasks.size()) > kMaxAddedTasks / copies_) {
      throw Error(fmt::format("copies: must add at most {} tasks, got {} times {}",
                              grouped(kMaxAddedTasks), grouped(copies_),
                              counted(tasks.size(), "task")));
    }
    const std::vector<Dependency> touching = dependencies_of(graph, tasks);
    const std::int32_t last_rank = greatest_rank(graph);
    for (std::int64_t copy = 1; copy <= copies_; ++copy) {
      add_copy(graph, tasks, touching, static_cast<std::int32_t>(copy), last_rank);
    }
    Effect effect;
    effect.changed = tasks.size() * static_cast<std::size_t>(copies_);
    effect.summary = fmt::format("{} copied {}", counted(tasks.size(), "task"),
                                 copies_ == 1 ? "once" : fmt::format("{} times", copies_));
    effect.assumptions.push_back(
        "the copies run at the same speed and do not slow each other down");
    return effect;
  }

 private:
  static std::vector<Dependency> dependencies_of(const Graph& graph,
                                                 const std::vector<TaskId>& tasks) {
    std::vector<char> copied(graph.task_count(), 0);
    for (const TaskId task : tasks) copied[index(task)] = 1;
    std::vector<Dependency> touching;
    graph.each_dependency([&](const Dependency& dependency) {
      if (copied[index(dependency.before)] != 0 || copied[index(dependency.after)] != 0) {
        touching.push_back(dependency);
      }
    });
    return touching;
  }

  static std::int32_t greatest_rank(const Graph& graph) {
    std::int32_t rank = 0;
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      rank = std::max(rank, graph.lane(static_cast<LaneId>(i)).rank);
    }
    return rank;
  }

  void add_copy(Graph& graph, const std::vector<TaskId>& tasks,
                const std::vector<Dependency>& touching, std::int32_t number,
                std::int32_t last_rank) const {
    std::map<LaneId, LaneId> lanes;
    std::unordered_map<TaskId, TaskId> copy_of;
    copy_of.reserve(tasks.size());
    for (const TaskId id : tasks) {
      const auto [at, added] = lanes.try_emplace(graph.lane_of(id), kNoLane);
      if (added) {
        Lane lane = graph.lane(at->first);
        lane.name += "#" + std::to_string(number + 1);
        if (ranks_) lane.rank = last_rank + number;
        at->second = graph.add_lane(std::move(lane));
      }
      Task task = graph.task(id);
      const auto front = copy_of.find(graph.previous(id));
      const bool follows = front != copy_of.end() && front->second == graph.last(at->second);
      if (!follows) task.tail = {};
      copy_of.emplace(id, graph.append(at->second, task));
    }
    for (const Dependency& dependency : touching) {
      Dependency copied = dependency;
      const auto before = copy_of.find(dependency.before);
      const auto after = copy_of.find(dependency.after);
      if (after == copy_of.end() && !join_) continue;
      if (before != copy_of.end()) copied.before = before->second;
      if (after != copy_of.end()) copied.after = after->second;
      graph.add(copied);
    }
  }

  Selector where_;
  std::int64_t copies_ = 1;
  bool ranks_ = false;
  bool join_ = true;
};

}  // namespace

TransformEntry replicate_entry() {
  return {.make = create<Replicate>,
          .assumes =
              "Copies run at full speed beside the originals: nothing they might share (links, "
              "memory, cores) slows them. They wait for what the originals wait for, or for copies "
              "of it. Their memory is not counted.",
          .advice = {.why_not = "a manual edit: you choose what is replicated"}};
}

}  // namespace foretrace

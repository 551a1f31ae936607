#include "transform/memory/recompute_replay.h"

#include <algorithm>
#include <unordered_map>

namespace foretrace {
namespace {

constexpr Nanoseconds kMostGap = 1us;   // Recalled: gap of kernels that wait only for each other.
constexpr int kMostHostTasks = 10'000;  // Most host tasks before one launch.

class Replay {
 public:
  Replay(Graph& graph, const MemoryView& view, const RecomputePlan& plan, bool host_work)
      : graph_(graph),
        view_(view),
        plan_(plan),
        host_work_(host_work),
        copy_(graph.task_count(), kNoTask),
        launch_copy_(graph.task_count(), kNoTask) {}

  RecomputeTally run() {
    for (const RecomputeUnit& unit : plan_.units) copy_work(unit);
    update_lifetimes();
    for (const RecomputeUnit& unit : plan_.units) add_waits_for_copies(unit);
    return tally_;
  }

 private:
  void copy_work(const RecomputeUnit& unit) {
    const TaskId launch_before = view_.launches.launch_of(unit.before);
    const Task& user = graph_.task(unit.before);
    const Phase phase = user.phase;
    const std::int32_t step = user.step;
    const auto as_late = [&](Task task, std::int32_t of_step) {
      task.phase = phase;
      task.step = of_step;
      task.record = 0xffffffff;
      task.gap = std::min(task.gap, kMostGap);
      task.tail = {};
      return task;
    };
    TaskId last_call = kNoTask;
    for (const TaskId task : unit.work) {
      const TaskId copy = graph_.insert_before(unit.before, as_late(Task(graph_.task(task)), step));
      copy_[index(task)] = copy;
      tally_.device_time += graph_.task(copy).duration;
      ++tally_.kernels;
      const TaskId call = view_.launches.launch_of(task);
      if (call == kNoTask || launch_before == kNoTask) continue;
      if (call != last_call) {
        const std::int32_t host_step = graph_.task(launch_before).step;
        if (host_work_) copy_host_work(call, launch_before, host_step, as_late);
        Task again = as_late(Task(graph_.task(call)), host_step);
        tally_.host_time += again.duration;
        launch_copy_[index(call)] = graph_.insert_before(launch_before, again);
        last_call = call;
      }
      add_launch(call, task, copy);
    }
  }

  /// Copies the host work of the thread between the previous launch and `call`.
  template <class AsLate>
  void copy_host_work(TaskId call, TaskId launch_before, std::int32_t step, const AsLate& as_late) {
    std::vector<TaskId> work;
    const Phase phase = graph_.task(call).phase;
    for (TaskId task = graph_.previous(call); task != kNoTask; task = graph_.previous(task)) {
      const Task& host = graph_.task(task);
      if (host.kind != TaskKind::host || host.phase != phase || work.size() >= kMostHostTasks)
        break;
      work.push_back(task);
    }
    for (auto task = work.rbegin(); task != work.rend(); ++task) {
      const Task again = as_late(Task(graph_.task(*task)), step);
      tally_.host_time += again.duration;
      graph_.insert_before(launch_before, again);
    }
  }

  void add_launch(TaskId call, TaskId task, TaskId copy) {
    Dependency launched;
    graph_.each_wait(task, [&](const Dependency& wait) {
      if (wait.before == call) launched = wait;
    });
    launched.before = launch_copy_[index(call)];
    launched.after = copy;
    launched.provenance = Provenance::assumed;
    graph_.add(launched);
  }

  /// The task that requests `block` from the allocator when the copy of `task` uses it.
  TaskId copy_allocation_task(std::uint32_t block, TaskId task) const {
    const TaskId side = allocating_task(view_.graph, view_.launches, view_.block(block), task);
    if (side == task) return copy_[index(task)];
    const TaskId call = launch_copy_[index(side)];
    return call == kNoTask ? copy_[index(task)] : call;
  }

  TaskId allocation_task(std::uint32_t block, TaskId task) const {
    return allocating_task(view_.graph, view_.launches, view_.block(block), task);
  }

  void update_lifetimes() {
    std::vector<LifetimeCut> splits;
    for (const Activation& activation : plan_.dropped) {
      // A block that no copy writes stays: its writers are on another device than the first task
      // that needs it.
      const TaskId writer = first_copied_writer(activation.allocation);
      if (writer != kNoTask) splits.push_back(split_of(activation, writer));
    }
    extend_kept_blocks();
    const std::vector<std::uint32_t> second = split_lifetimes(graph_, splits, view_.timeline.start);
    for (std::size_t i = 0; i < second.size(); ++i) new_numbers_[splits[i].allocation] = second[i];
    for (const auto& [block, task] : plan_.freed_with_segment) {
      const auto found = new_numbers_.find(block);
      if (found != new_numbers_.end()) free_behind(found->second, allocation_task(block, task));
    }
    for (const auto& [block, task] : plan_.kept_for_copy) {
      const auto found = new_numbers_.find(block);
      if (found != new_numbers_.end())
        free_behind(found->second, copy_allocation_task(block, task));
    }
    for (const auto& [block, life] : plan_.temporaries) add_temporary(block, life);
    copy_accesses();
  }

  TaskId first_copied_writer(std::uint32_t block) const {
    for (const Access& access : view_.uses.of_block(block)) {
      if (access.writes && copy_[index(access.task)] != kNoTask) return access.task;
    }
    return kNoTask;
  }

  LifetimeCut split_of(const Activation& activation, TaskId first) const {
    const std::uint32_t block = activation.allocation;
    const TaskId freed =
        allocating_task(view_.graph, view_.launches, view_.block(block), activation.last_forward);
    return {.allocation = block,
            .first_behind = activation.first_backward,
            .freed = end_of(graph_, freed),
            .made = start_of(copy_allocation_task(block, first))};
  }

  void free_behind(std::uint32_t block, TaskId task) {
    const TaskTime end = end_of(graph_, task);
    graph_.allocations()[block].freed_by = end.task;
    graph_.allocations()[block].freed_after = end.after;
  }

  void extend_kept_blocks() {
    for (const auto& [block, task] : plan_.kept_until) {
      if (copy_[index(task)] != kNoTask) free_behind(block, copy_allocation_task(block, task));
    }
  }

  void add_temporary(std::uint32_t block, const ExtraLifetime& life) {
    Allocation again = view_.block(block);
    const TaskTime made = start_of(copy_allocation_task(block, life.first));
    const TaskTime freed = end_of(graph_, copy_allocation_task(block, life.last));
    again.made_by = made.task;
    again.made_after = made.after;
    again.freed_by = freed.task;
    again.freed_after = freed.after;
    again.use = again.use == MemoryUse::workspace ? MemoryUse::workspace : MemoryUse::temporary;
    new_numbers_[block] = static_cast<std::uint32_t>(graph_.allocations().size());
    graph_.allocations().push_back(again);
  }

  void copy_accesses() {
    for (const RecomputeUnit& unit : plan_.units) {
      for (const TaskId task : unit.work) {
        for (const Access& access : view_.uses.of_task(task)) {
          const bool as_kept = !access.writes && plan_.kept_until.contains(access.allocation);
          const auto found = as_kept ? new_numbers_.end() : new_numbers_.find(access.allocation);
          graph_.accesses().push_back(
              {.allocation = found == new_numbers_.end() ? access.allocation : found->second,
               .task = copy_[index(task)],
               .writes = access.writes,
               .provenance = Provenance::assumed});
        }
      }
    }
  }

  /// Makes uses on other lanes, which no order puts behind the copies, wait for them.
  void add_waits_for_copies(const RecomputeUnit& unit) {
    const WaitReason why = wait_reason_named(graph_.names(), "recomputed");
    for (const std::uint32_t block : unit.restored) {
      TaskId writer = kNoTask;
      std::vector<LaneId> lanes = {graph_.lane_of(unit.before)};
      for (const Access& access : view_.uses.of_block(block)) {
        const TaskId copy = copy_[index(access.task)];
        if (access.writes && copy != kNoTask) writer = copy;
        if (copy != kNoTask || !view_.is_late(access.task) || writer == kNoTask) continue;
        const LaneId lane = graph_.lane_of(access.task);
        if (std::find(lanes.begin(), lanes.end(), lane) != lanes.end()) continue;
        lanes.push_back(lane);
        graph_.add({.before = writer,
                    .after = access.task,
                    .provenance = Provenance::assumed,
                    .why = why});
      }
    }
  }

  Graph& graph_;
  const MemoryView& view_;
  const RecomputePlan& plan_;
  bool host_work_;
  std::vector<TaskId> copy_;         ///< Copy of each repeated task.
  std::vector<TaskId> launch_copy_;  ///< Copy of each repeated call.
  std::unordered_map<std::uint32_t, std::uint32_t>
      new_numbers_;  ///< New numbers of restored blocks.
  RecomputeTally tally_;
};

}  // namespace

RecomputeTally replay_recompute(Graph& graph, const MemoryView& view, const RecomputePlan& plan,
                                bool host_work) {
  return Replay(graph, view, plan, host_work).run();
}

}  // namespace foretrace

// Activation checkpointing: memory for time. Activations are freed after their last forward use and
// computed again before their first backward one (Chen et al., Training Deep Nets with Sublinear
// Memory Cost, 2016):
//
//     n layers, one kept at the end of each of sqrt(n) segments:  about 2 sqrt(n) layers of memory
//     instead of n, for at most one more forward pass
//
// Ignored: work that the trace does not show (restoring random state takes no time), and changes in
// fragmentation, which the replay of the allocator shows.

#include <algorithm>
#include <fmt/core.h>
#include <unordered_map>

#include "foretrace/error.h"
#include "transform/edit/allocation_selector.h"
#include "transform/edit/registered.h"
#include "transform/memory/recompute_choice.h"
#include "transform/memory/recompute_plan.h"

namespace foretrace {
namespace {

// Carries out a plan of recompute_plan.h: inserts copies of forward work, in order, before the
// first backward use; inserts their launches, with the host work around them, before the launch of
// that use; and cuts the lifetimes of dropped blocks in two.
//
//     cpu     LA LB LC | .. LA' LB' Lc        stream   A B C .. A' B' c

struct RecomputeTally {
  std::size_t kernels = 0;     ///< Device tasks that run again.
  Nanoseconds device_time{0};  ///< Time of those tasks.
  Nanoseconds host_time{0};    ///< Time that the host spends on launching them.
};

constexpr Nanoseconds kMaxGap = 1us;   // Recalled: gap of kernels that wait only for each other.
constexpr int kMaxHostTasks = 10'000;  // Most host tasks before one launch.

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
      task.gap = std::min(task.gap, kMaxGap);
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
      if (host.kind != TaskKind::host || host.phase != phase || work.size() >= kMaxHostTasks) break;
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

/// REQUIRES: `view` shows `graph` before the edit. With `host_work`, the host also repeats its work
/// before each launch, otherwise only the launches.
RecomputeTally replay_recompute(Graph& graph, const MemoryView& view, const RecomputePlan& plan,
                                bool host_work) {
  return Replay(graph, view, plan, host_work).run();
}

class Recompute final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The activations that may be dropped");
    fields.choice("policy", settings_.policy, {"sqrt", "every", "selected", "all", "budget"},
                  "sqrt: about sqrt(n) segments of the forward pass, restored one at a time (Chen "
                  "et al. 2016). every: segments of \"layers\" layers. selected: everything "
                  "that \"where\" selects, recomputed from as far back as needed. all: the same "
                  "with every activation, so that the whole pass exists again before its backward "
                  "pass and the peak falls little. "
                  "budget: the activations that meet \"save\", \"peak\" or \"share\" in the least "
                  "time");
    fields.integer(
        "layers", settings_.layers,
        "For every: layers per segment (where layers are unknown: ops that make an activation)", 1,
        1'000'000);
    fields.number(
        "share", settings_.share,
        "Share of the bytes that the policy would drop, those made first; for budget any of them",
        0, 1);
    fields.bytes("save", settings_.save,
                 "For budget: bytes to drop in each forward pass; 0B: by share");
    fields.bytes("peak", settings_.peak,
                 "For budget: drop until the peak is no higher than this; 0B: by save or share");
    fields.flag("exact", settings_.exact,
                "For budget: search for the least time; otherwise choose greedily by bytes saved "
                "per time (MSPS of Capuchin, ASPLOS'20)");
    fields.flag("host_work", host_work_,
                "The host also repeats the work before each launch, as running the forward code "
                "again does; otherwise only the launches");
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (settings_.policy != "budget" && (settings_.save > Bytes{} || settings_.peak > Bytes{}))
      throw Error(fmt::format("{}: is for policy budget, got policy {}",
                              settings_.save > Bytes{} ? "save" : "peak", settings_.policy));
    if (settings_.save > Bytes{} && settings_.peak > Bytes{})
      throw Error("peak: cannot be given together with save");
    const AllocationSelector every("activation");
    const std::vector<std::uint32_t> blocks =
        (settings_.policy == "all" ? every : where_).select_some(graph);
    const MemoryView view(graph);
    const std::vector<Activation> activations = find_activations(graph, view.uses, blocks);
    if (activations.empty()) no_activation(graph, blocks);
    const RecomputeChoice choice = choose_recompute(view, activations, settings_);
    if (choice.droppable == Bytes{}) nothing_to_drop(choice, activations.size());
    return apply_choice(graph, view, choice);
  }

 private:
  [[noreturn]] void nothing_to_drop(const RecomputeChoice& choice, std::size_t activations) const {
    std::string why = fmt::format("policy: {} leaves nothing to drop of {}", settings_.policy,
                                  counted(activations, "activation"));
    if (choice.impossible > 0)
      why += ": the kernels that write them are unknown, or cannot run again";
    else if (settings_.policy == "every" || settings_.policy == "sqrt")
      why += ": each is used by another segment or is in the last, which is needed at once";
    if (settings_.policy == "every" && choice.impossible == 0)
      why += "; with a greater \"layers\", more activations stay inside one segment";
    throw Error(why);
  }

  Effect apply_choice(Graph& graph, const MemoryView& view, const RecomputeChoice& choice) const {
    const Bytes peak = peak_memory(graph, view.timeline);
    const Nanoseconds device_time = device_time_of(graph);
    const RecomputeTally tally = replay_recompute(graph, view, choice.plan, host_work_);
    const Bytes new_peak = choice.plan.units.empty() ? peak : peak_memory(graph);
    Effect effect;
    effect.changed = choice.plan.dropped.size() + tally.kernels;
    effect.summary =
        fmt::format("{} dropped, {} in a forward pass, and computed again by {} in {}",
                    counted(choice.plan.dropped.size(), "activation"), to_text(choice.saved),
                    counted(tally.kernels, "task"), counted(choice.plan.units.size(), "place"));
    const double share = device_time > 0ns ? static_cast<double>(tally.device_time.count()) /
                                                 static_cast<double>(device_time.count())
                                           : 0;
    effect.figures = {{"saved_bytes", choice.saved},
                      {"droppable_bytes", choice.droppable},
                      {"peak_before", peak},
                      {"peak_after", new_peak},
                      {"added_time", tally.device_time},
                      {"added_host_time", tally.host_time},
                      {"added_share", share},
                      {"recomputed_kernels", static_cast<double>(tally.kernels)}};
    add_assumptions(choice, effect);
    if (settings_.policy == "budget" && choice.reached && settings_.peak > Bytes{} &&
        new_peak > settings_.peak) {
      effect.notes.add(Severity::warning, "recompute does not stay under its peak",
                       fmt::format("the peak is {}, the target is {}", to_text(new_peak),
                                   to_text(settings_.peak)));
    }
    return effect;
  }

  static Nanoseconds device_time_of(const Graph& graph) {
    Nanoseconds time{0};
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      const auto task = static_cast<TaskId>(i);
      if (!graph.removed(task) && runs_on_device(graph.task(task).kind))
        time += graph.task(task).duration;
    }
    return time;
  }

  void add_assumptions(const RecomputeChoice& choice, Effect& effect) const {
    effect.assumptions.push_back(
        "work that is done again takes as long as the first time and is done at most once more "
        "(at most one more forward pass: Chen et al. 2016)");
    effect.assumptions.push_back(
        "restoring random state and recording for autograd again take no time");
    if (!choice.by_layer && choice.length >= 0 &&
        (settings_.policy == "every" || settings_.policy == "sqrt"))
      effect.assumptions.push_back(
          choice.by_repetition
              ? "layers are unknown: the parts of a forward pass that repeat count as layers"
              : "layers are unknown: each task that completes an activation counts as one");
    note_count(
        effect, Severity::info,
        "activations kept, because the tasks that write them are unknown or cannot run again",
        choice.impossible);
    if (settings_.policy != "budget") return;
    if (!choice.reached) {
      effect.notes.add(Severity::warning,
                       settings_.peak > Bytes{}
                           ? "no plan stays under \"peak\"; the plan with the lowest peak is used"
                           : "all that can be dropped is less than \"save\"",
                       {}, 1);
    }
    if (settings_.exact && settings_.peak == Bytes{} && !choice.least) {
      effect.notes.add(Severity::info,
                       "the search for the least time was given up; the best plan found is used",
                       {}, 1);
    }
  }

  AllocationSelector where_{"activation"};
  RecomputeSettings settings_{.policy = "sqrt"};
  bool host_work_ = true;
};

}  // namespace

TransformEntry recompute_entry() {
  return {.make = create<Recompute>,
          .assumes =
              "Each dropped activation is freed after its last forward use. Before the first "
              "backward use of anything that depends on it, the kernels that made it run again, "
              "with their launches and the host's work around them on the thread of the backward "
              "pass; so do kernels whose results they need and that are gone. Everything runs "
              "again at most once, as long as the first time, so that the price is at most one "
              "more forward pass (Chen et al. 2016). With segments, what one passes to another is "
              "kept, and so is the last one. Layers are those that the trace names; for policy "
              "every, else the parts of a pass that repeat. Not modelled: random state, recording "
              "for autograd, "
              "other fragmentation.",
          .advice = {.goal = Goal::memory, .tries = {"recompute"}, .applies_to = {"activations"}}};
}

}  // namespace foretrace

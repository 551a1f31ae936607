#include <algorithm>
#include <string>
#include <utility>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/memory/memory_edit.h"
#include "transform/memory/swap.h"

namespace foretrace {

Nanoseconds SwapLink::out_time(Bytes size) const { return std::max(time_for(size, out), 1ns); }
Nanoseconds SwapLink::in_time(Bytes size) const { return std::max(time_for(size, in), 1ns); }

std::vector<TimedAccess> timed_accesses(const Graph& graph, const Timeline& timeline,
                                        const AccessLists& accesses, std::uint32_t allocation) {
  std::vector<TimedAccess> result;
  for (const Access& access : accesses.of(allocation)) {
    if (access.task == kNoTask || graph.removed(access.task)) continue;
    const Nanoseconds start = timeline.start[index(access.task)];
    result.push_back({access.task, start, timeline.finish[index(access.task)], access.writes});
  }
  std::sort(result.begin(), result.end(), [](const TimedAccess& a, const TimedAccess& b) {
    return std::pair(a.start, a.task) < std::pair(b.start, b.task);
  });
  return result;
}

bool freed_by_calls(const Graph& graph, const Allocation& block) {
  const auto called = [&](TaskId task) { return !runs_on_device(graph.task(task).kind); };
  if (block.made_by != kNoTask) return called(block.made_by);
  if (block.freed_by != kNoTask) return called(block.freed_by);
  // The block exists for the whole run; other blocks show how this program allocates.
  for (const Allocation& other : graph.allocations()) {
    if (other.made_by != kNoTask) return called(other.made_by);
  }
  return false;
}

namespace {

/// The two copies of a swap, and the calls that issue them.
struct Copies {
  TaskId out = kNoTask, in = kNoTask;
  TaskId in_call = kNoTask;
};

class SwapEdit {
 public:
  SwapEdit(Graph& graph, const Timeline& timeline, const Launches& launches, const SwapLink& link,
           const SwapPlan& plan, Nanoseconds call_time)
      : graph_(graph),
        timeline_(timeline),
        launches_(launches),
        link_(link),
        swaps_(plan.swaps),
        by_access_(plan.in_access_order),
        call_time_(call_time),
        copies_(plan.swaps.size()),
        why_out_(wait_reason_named(graph.names(), "swapped out")),
        why_in_(wait_reason_named(graph.names(), "swapped in")) {}

  void add_copies() {
    // Copies are appended to their lanes in the order in which the link carries them.
    for (const std::size_t i : in_order(&Swap::out_start, &Swap::out_after, by_access_)) add_out(i);
    for (const std::size_t i : in_order(&Swap::in_start, &Swap::back, by_access_)) add_in(i);
    split_blocks();
  }

  SwapOutcome outcome(const Timeline& after) const {
    SwapOutcome result{.copies = 2 * swaps_.size()};
    const std::vector<char> waited = waited_for(after);
    std::vector<std::pair<Nanoseconds, std::int64_t>> changes;
    for (std::size_t i = 0; i < swaps_.size(); ++i) {
      const Bytes size = graph_.task(copies_[i].out).bytes;
      result.offloaded += size;
      changes.emplace_back(after.start[index(copies_[i].out)], size.count);
      changes.emplace_back(after.finish[index(copies_[i].in)], -size.count);
      for (const TaskId copy : {copies_[i].out, copies_[i].in}) {
        if (waited[index(copy)] != 0) ++result.late;
      }
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t level = 0;
    for (const auto& [time, change] : changes) {
      level += change;
      result.host_memory = std::max(result.host_memory, Bytes{level});
    }
    return result;
  }

 private:
  std::vector<std::size_t> in_order(Nanoseconds Swap::*planned, TaskId Swap::*access,
                                    bool by_access) const {
    std::vector<std::size_t> order(swaps_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::size_t i) {
      const Swap& swap = swaps_[i];
      const Nanoseconds at = timeline_.start[index(swap.*access)];
      return std::tuple(by_access ? at : swap.*planned, swap.*planned, i);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return order;
  }

  LaneId lane_for(const Swap& swap, std::string_view name) {
    const LaneId near = graph_.lane_of(swap.back);
    const auto [at, added] = lanes_.try_emplace(
        {graph_.allocations()[swap.allocation].device, graph_.lane(near).rank, std::string(name)},
        kNoLane);
    if (added) {
      at->second = graph_.add_lane({.name = std::string(name),
                                    .kind = LaneKind::copy_engine,
                                    .device = std::get<0>(at->first),
                                    .rank = std::get<1>(at->first)});
    }
    return at->second;
  }

  void wait(TaskId before, TaskId after, WaitReason why, Anchor anchor = Anchor::finish) {
    graph_.add({.before = before,
                .after = after,
                .anchor = anchor,
                .provenance = Provenance::assumed,
                .why = why});
  }

  /// Adds a call on the host behind the one that launched `near`. Adds none, and returns kNoTask,
  /// if the next task overlaps the tail of that call, so that there is no room, or if `near` has no
  /// call.
  TaskId add_call(TaskId near, std::string_view name) {
    const TaskId call = launches_.launch_of(near);
    if (call == kNoTask) return kNoTask;
    TaskId behind = call;
    if (const auto known = last_call_.find(call); known != last_call_.end()) behind = known->second;
    const TaskId next = graph_.next(behind);
    if (next != kNoTask && !graph_.task(next).tail.empty()) return kNoTask;
    const Task like = graph_.task(call);
    const TaskId added = graph_.insert_behind(behind, {.duration = call_time_,
                                                       .name = graph_.names().intern(name),
                                                       .step = like.step,
                                                       .kind = TaskKind::launch,
                                                       .phase = like.phase});
    last_call_[call] = added;
    return added;
  }

  TaskId add_copy(const Swap& swap, TaskId near, bool out) {
    const Bytes size = graph_.allocations()[swap.allocation].bytes;
    const Task like = graph_.task(near);
    return graph_.append(lane_for(swap, out ? "swap out" : "swap in"),
                         {.duration = out ? link_.out_time(size) : link_.in_time(size),
                          .bytes = size,
                          .name = graph_.names().intern(out ? "o swap out" : "i swap in"),
                          .module = like.module,
                          .step = like.step,
                          .layer = like.layer,
                          .kind = out ? TaskKind::copy_out : TaskKind::copy_in,
                          .phase = like.phase});
  }

  void add_out(std::size_t i) {
    const Swap& swap = swaps_[i];
    const TaskId copy = add_copy(swap, swap.out_after, true);
    copies_[i].out = copy;
    const TaskId call = add_call(swap.out_after, "launch swap out");
    if (call != kNoTask) wait(call, copy, Rule::launch);
    wait(swap.out_after, copy, why_out_, swap.out_anchor);
    if (swap.out_behind != kNoTask && !by_access_) wait(swap.out_behind, copy, why_out_);
    if (swap.freed_at != kNoTask) wait(copy, swap.freed_at, why_out_);
  }

  void add_in(std::size_t i) {
    const Swap& swap = swaps_[i];
    const TaskId near = swap.trigger == kNoTask ? swap.out_after : swap.trigger;
    const TaskId copy = add_copy(swap, near, false);
    copies_[i].in = copy;
    copies_[i].in_call = add_call(near, "launch swap in");
    if (copies_[i].in_call != kNoTask) wait(copies_[i].in_call, copy, Rule::launch);
    wait(copies_[i].out, copy, why_out_);
    if (swap.trigger != kNoTask) wait(swap.trigger, copy, why_in_, swap.trigger_anchor);
    if (swap.in_behind != kNoTask && !by_access_) wait(swap.in_behind, copy, why_in_);
    if (swap.synced != kNoTask) wait(copy, swap.synced, why_in_);
    wait(copy, swap.back, why_in_);
  }

  /// Each trip cuts the lifetime of its block.
  void split_blocks() {
    std::vector<LifetimeCut> splits;
    for (std::size_t i = 0; i < swaps_.size(); ++i) splits.push_back(split_of(i));
    const std::map<std::uint32_t, TaskId> last = last_backward_uses();
    const std::vector<std::uint32_t> behind = split_lifetimes(graph_, splits, timeline_.start);
    std::map<std::uint32_t, std::uint32_t> front;  // For each block, the part before the next trip.
    for (const std::size_t i : in_order(&Swap::in_start, &Swap::back, true)) {
      const std::uint32_t number = swaps_[i].allocation;
      const std::uint32_t now = front.try_emplace(number, number).first->second;
      add_access(now, copies_[i].out, false);
      add_access(behind[i], copies_[i].in, true);
      // At the same moment, this memory is freed before other allocations and allocated after them.
      graph_.allocations()[now].freed_order = 0;
      graph_.allocations()[behind[i]].made_order = 0xffffffff;
      front[number] = behind[i];
    }
    for (const auto& [number, task] : last) free_part(front.at(number), task);
  }

  LifetimeCut split_of(std::size_t i) {
    const Swap& swap = swaps_[i];
    const bool calls = freed_by_calls(graph_, graph_.allocations()[swap.allocation]);
    const TaskId freed_call = calls ? launches_.launch_of(swap.freed_at) : kNoTask;
    const bool by_call = calls && copies_[i].in_call != kNoTask;
    return {.allocation = swap.allocation,
            .first_behind = swap.back,
            .freed = freed_call == kNoTask ? end_of(graph_, copies_[i].out) : start_of(freed_call),
            .made = start_of(by_call ? copies_[i].in_call : copies_[i].in)};
  }

  void add_access(std::uint32_t part, TaskId task, bool writes) {
    graph_.accesses().push_back({part, task, writes, Provenance::assumed});
  }

  /// Last backward use of activations that leave.
  std::map<std::uint32_t, TaskId> last_backward_uses() const {
    std::map<std::uint32_t, TaskId> last;
    for (const Swap& swap : swaps_) {
      if (graph_.allocations()[swap.allocation].use == MemoryUse::activation)
        last.try_emplace(swap.allocation, swap.back);
    }
    for (const Access& access : graph_.accesses()) {
      const auto found = last.find(access.allocation);
      if (found == last.end() || access.task == kNoTask || graph_.removed(access.task)) continue;
      if (index(access.task) >= timeline_.start.size()) continue;
      const auto moment = [&](TaskId task) {
        return std::pair(timeline_.start[index(task)], task);
      };
      if (moment(found->second) < moment(access.task)) found->second = access.task;
    }
    std::erase_if(
        last, [&](const auto& use) { return graph_.task(use.second).phase != Phase::backward; });
    return last;
  }

  /// A block fetched for the backward pass is freed after its last use there, because only that
  /// pass holds the copy; a block that the program itself held would have stayed as long as
  /// recorded.
  void free_part(std::uint32_t part, TaskId last) {
    Allocation& block = graph_.allocations()[part];
    const TaskId call = freed_by_calls(graph_, block) ? launches_.launch_of(last) : kNoTask;
    const TaskId side = call == kNoTask ? last : call;
    if (block.freed_by == kNoTask || index(block.freed_by) >= timeline_.start.size()) return;
    const Nanoseconds recorded = timeline_.start[index(block.freed_by)] + block.freed_after;
    if (timeline_.finish[index(side)] >= recorded) return;
    block.freed_by = side;
    block.freed_after = graph_.task(side).duration;
  }

  /// For each task, whether it decides when another task starts that is no swap copy.
  std::vector<char> waited_for(const Timeline& after) const {
    std::vector<char> waited(graph_.task_count(), 0);
    for (std::uint32_t i = 0; i < waited.size(); ++i) {
      const TaskId before = after.reasons[i].before;
      if (before != kNoTask && !runs_swap(TaskId{i})) waited[index(before)] = 1;
    }
    return waited;
  }

  bool runs_swap(TaskId task) const {
    const auto lane = graph_.lane_of(task);
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [&](const auto& known) { return known.second == lane; });
  }

  Graph& graph_;
  const Timeline& timeline_;
  const Launches& launches_;
  const SwapLink& link_;
  const std::vector<Swap>& swaps_;
  bool by_access_;
  Nanoseconds call_time_;
  std::vector<Copies> copies_;
  WaitReason why_out_, why_in_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, LaneId> lanes_;
  std::map<TaskId, TaskId> last_call_;
};

}  // namespace

SwapOutcome apply_swaps(Graph& graph, const Timeline& timeline, const Launches& launches,
                        const SwapLink& link, const SwapPlan& plan, Nanoseconds call_time,
                        Timeline& after) {
  SwapEdit edit(graph, timeline, launches, link, plan, call_time);
  edit.add_copies();
  after = simulate(graph, {.reasons = true, .memory = false});
  return edit.outcome(after);
}

}  // namespace foretrace

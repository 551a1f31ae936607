#include <algorithm>
#include <string>
#include <utility>

#include "foretrace/error.h"
#include "transform/block_size.h"
#include "transform/swap.h"

namespace foretrace {

Nanoseconds SwapLink::out_time(Bytes size) const { return std::max(time_for(size, out), 1ns); }
Nanoseconds SwapLink::in_time(Bytes size) const { return std::max(time_for(size, in), 1ns); }

std::vector<Touch> touches_of(const Graph& graph, const Timeline& timeline,
                              const AccessLists& accesses, std::uint32_t allocation) {
  std::vector<Touch> touches;
  for (const Access& access : accesses.of(allocation)) {
    if (access.task == kNoTask || graph.removed(access.task)) continue;
    const Nanoseconds start = timeline.start[index(access.task)];
    touches.push_back({access.task, start, timeline.finish[index(access.task)], access.writes});
  }
  std::sort(touches.begin(), touches.end(), [](const Touch& a, const Touch& b) {
    return std::pair(a.start, a.task) < std::pair(b.start, b.task);
  });
  return touches;
}

bool freed_by_calls(const Graph& graph, const Allocation& block) {
  const auto called = [&](TaskId task) { return !runs_on_device(graph.task(task).kind); };
  if (block.made_by != kNoTask) return called(block.made_by);
  if (block.freed_by != kNoTask) return called(block.freed_by);
  // It stays for the whole run; the others tell how this program allocates.
  for (const Allocation& other : graph.allocations()) {
    if (other.made_by != kNoTask) return called(other.made_by);
  }
  return false;
}

namespace {

/// The two copies of a swap, and the calls that give them to the device.
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
        why_out_(graph.names().intern("swapped out")),
        why_in_(graph.names().intern("swapped in")) {}

  void add_copies() {
    // In line on each lane as the link is to carry them.
    for (const std::size_t i : in_order(&Swap::out_start, &Swap::out_after)) add_out(i);
    for (const std::size_t i : in_order(&Swap::in_start, &Swap::back)) add_in(i);
    split_blocks();
  }

  SwapOutcome outcome(const Timeline& after) const {
    SwapOutcome result{.copies = 2 * swaps_.size()};
    std::vector<std::pair<Nanoseconds, std::int64_t>> changes;
    for (std::size_t i = 0; i < swaps_.size(); ++i) {
      const Bytes size = graph_.task(copies_[i].out).bytes;
      result.offloaded += size;
      changes.emplace_back(after.start[index(copies_[i].out)], size.count);
      changes.emplace_back(after.finish[index(copies_[i].in)], -size.count);
      if (waited_for(after, copies_[i].out)) ++result.late;
      if (waited_for(after, copies_[i].in)) ++result.late;
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
  std::vector<std::size_t> in_order(Nanoseconds Swap::*planned, TaskId Swap::*access) const {
    std::vector<std::size_t> order(swaps_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::size_t i) {
      const Swap& swap = swaps_[i];
      const Nanoseconds at = timeline_.start[index(swap.*access)];
      return std::tuple(by_access_ ? at : swap.*planned, swap.*planned, i);
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

  void wait(TaskId before, TaskId after, NameId why, Anchor anchor = Anchor::finish) {
    graph_.add({.before = before,
                .after = after,
                .anchor = anchor,
                .provenance = Provenance::assumed,
                .why = why});
  }

  /// A call on the host behind the one that launched `near`. Where the next call overlaps that
  /// one's tail there is no room for it, and without a call no need.
  TaskId add_call(TaskId near, std::string_view name) {
    const TaskId call = launches_.launch_of(near);
    if (call == kNoTask) return kNoTask;
    TaskId behind = call;
    if (const auto known = last_call_.find(call); known != last_call_.end()) behind = known->second;
    const TaskId next = graph_.next(behind);
    if (next != kNoTask && graph_.task(next).gap < 0ns) return kNoTask;
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
    if (call != kNoTask) wait(call, copy, graph_.names().intern("launch"));
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
    if (copies_[i].in_call != kNoTask)
      wait(copies_[i].in_call, copy, graph_.names().intern("launch"));
    wait(copies_[i].out, copy, why_out_);
    if (swap.trigger != kNoTask) wait(swap.trigger, copy, why_in_, swap.trigger_anchor);
    if (swap.in_behind != kNoTask && !by_access_) wait(swap.in_behind, copy, why_in_);
    if (swap.synced != kNoTask) wait(copy, swap.synced, why_in_);
    wait(copy, swap.back, why_in_);
  }

  /// Each trip cuts the lifetime of its block in two. The first part keeps the number.
  void split_blocks() {
    std::map<std::uint32_t, std::vector<std::size_t>> trips;
    for (std::size_t i = 0; i < swaps_.size(); ++i) trips[swaps_[i].allocation].push_back(i);
    std::map<std::uint32_t, std::vector<std::uint32_t>> parts;
    for (auto& [number, of_block] : trips) {
      std::sort(of_block.begin(), of_block.end(), [&](std::size_t a, std::size_t b) {
        return back_at(swaps_[a]) < back_at(swaps_[b]);
      });
      for (const std::size_t i : of_block) {
        const std::uint32_t now = parts[number].empty() ? number : parts[number].back();
        parts[number].push_back(split(now, i));
      }
    }
    for (Access& access : graph_.accesses()) {
      const auto found = trips.find(access.allocation);
      if (found == trips.end() || access.task == kNoTask) continue;
      const std::vector<std::size_t>& of_block = found->second;
      const auto behind = std::upper_bound(
          of_block.begin(), of_block.end(), timeline_.start[index(access.task)],
          [&](Nanoseconds time, std::size_t i) { return time < back_at(swaps_[i]); });
      if (behind == of_block.begin()) continue;
      access.allocation =
          parts[found->first][static_cast<std::size_t>(behind - of_block.begin()) - 1];
    }
    add_accesses(trips, parts);
  }

  Nanoseconds back_at(const Swap& swap) const { return timeline_.start[index(swap.back)]; }

  std::uint32_t split(std::uint32_t number, std::size_t i) {
    const bool calls = freed_by_calls(graph_, graph_.allocations()[number]);
    Allocation& first = graph_.allocations()[number];
    Allocation second = first;
    const TaskId freed_call = calls ? launches_.launch_of(swaps_[i].freed_at) : kNoTask;
    first.freed_by = freed_call == kNoTask ? copies_[i].out : freed_call;
    first.freed_after = freed_call == kNoTask ? graph_.task(copies_[i].out).duration : 0ns;
    first.freed_order = 0;  // In front of what the same moment makes.
    const bool by_call = calls && copies_[i].in_call != kNoTask;
    second.made_by = by_call ? copies_[i].in_call : copies_[i].in;
    second.made_after = 0ns;
    second.made_order = 0xffffffff;  // Behind what the same moment frees.
    graph_.allocations().push_back(second);
    return static_cast<std::uint32_t>(graph_.allocations().size() - 1);
  }

  void add_accesses(const std::map<std::uint32_t, std::vector<std::size_t>>& trips,
                    const std::map<std::uint32_t, std::vector<std::uint32_t>>& parts) {
    for (const auto& [number, of_block] : trips) {
      std::uint32_t now = number;
      for (std::size_t k = 0; k < of_block.size(); ++k) {
        const std::uint32_t next = parts.at(number)[k];
        const auto touch = [&](std::uint32_t part, TaskId task, bool writes) {
          graph_.accesses().push_back({part, task, writes, Provenance::assumed});
        };
        touch(now, copies_[of_block[k]].out, false);
        touch(next, copies_[of_block[k]].in, true);
        now = next;
      }
    }
  }

  /// Whether a task that needs nothing else any more waits for `copy`.
  bool waited_for(const Timeline& after, TaskId copy) const {
    bool waited = false;
    const Nanoseconds done = after.finish[index(copy)];
    graph_.each_dependent(copy, [&](const Dependency& wait) {
      if (waited || runs_swap(wait.after) || after.start[index(wait.after)] != done) return;
      Nanoseconds ready = Nanoseconds::min();
      const TaskId front = graph_.previous(wait.after);
      if (front != kNoTask)
        ready = std::max(after.finish[index(front)] + graph_.task(wait.after).gap, 0ns);
      graph_.each_wait(wait.after, [&](const Dependency& other) {
        if (runs_swap(other.before)) return;
        const auto& from = other.anchor == Anchor::start ? after.start : after.finish;
        ready = std::max(ready, from[index(other.before)] + other.lag);
      });
      waited = ready < done;
    });
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
  NameId why_out_, why_in_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::string>, LaneId> lanes_;
  std::map<TaskId, TaskId> last_call_;
};

}  // namespace

SwapOutcome carry_out(Graph& graph, const Timeline& timeline, const Launches& launches,
                      const SwapLink& link, const SwapPlan& plan, Nanoseconds call_time,
                      Timeline& after) {
  SwapEdit edit(graph, timeline, launches, link, plan, call_time);
  edit.add_copies();
  after = fifo_timeline(graph);
  return edit.outcome(after);
}

}  // namespace foretrace

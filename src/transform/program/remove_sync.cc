// The host no longer waits for the device where it did, and runs ahead:
//
//     cpu     |LsssssMsss|                 cpu     |LM......|
//     stream  |.AAAAA.BBB|   ->            stream  |.AAAAABBB|
//
// The value that the host read may still be needed: at the start of the next step, if it is only
// shown or compared. The launch queue limits how far it gets ahead: launch n waits for the activity
// of launch n - queue. Ignored: shapes or branches that may depend on the value.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "trace/wait_call.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class RemoveSync final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The calls that wait for the device");
    fields.choice("needed", needed_, {"never", "next_step"},
                  "When the host needs the value it waited for: never, or before its next step");
    fields.choice("copies", copies_, {"stay", "go"},
                  "What happens to copies to the host that only these calls waited for");
    fields.integer("queue", queue_,
                   "Launches that the host may be ahead of the device (1022 on the devices seen)",
                   1, 1'000'000'000);
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> waiting = waiting_calls(graph);
    const std::vector<TaskId> calls = without_driver_allocations(graph, waiting);
    const std::vector<Dependency> waits = waits_of(graph, calls);
    const Launches launches(graph);
    const Nanoseconds ahead_before =
        furthest_ahead(graph, launches, simulate(graph, {.memory = false}).start);
    if (needed_ == "next_step") wait_in_later_step(graph, waits);
    std::vector<char> calling(graph.task_count(), 0);
    for (const TaskId call : calls) calling[index(call)] = 1;
    const std::vector<TaskId> copies =
        copies_ == "go" ? copies_for(graph, waits, calling) : std::vector<TaskId>();
    graph.remove_dependencies([&](const Dependency& wait) {
      return calling[index(wait.after)] != 0 && is_wait(graph, wait);
    });
    for (const TaskId call : calls) {
      if (graph.task(call).kind == TaskKind::sync) graph.remove(call);
    }
    for (const TaskId copy : copies) graph.remove(copy);
    remove_launches_of(graph, launches, copies);
    const std::size_t added = limit_queue(graph, launches);

    Effect effect;
    if (calls.size() < waiting.size()) {
      effect.assumptions.push_back(
          fmt::format("{} still {} for the device: driver calls that free or allocate memory",
                      counted(waiting.size() - calls.size(), "call"),
                      waiting.size() - calls.size() == 1 ? "waits" : "wait"));
    }
    effect.changed = calls.size() + copies.size();
    effect.summary = fmt::format("{} no longer {} for the device", counted(calls.size(), "call"),
                                 calls.size() == 1 ? "waits" : "wait");
    if (!copies.empty())
      effect.summary += fmt::format(", {} gone", counted(copies.size(), "copy task"));
    effect.figures.push_back({"waits_gone", static_cast<double>(calls.size())});
    effect.figures.push_back({"copies_gone", static_cast<double>(copies.size())});
    effect.figures.push_back({"ahead_before", ahead_before});
    effect.figures.push_back(
        {"ahead_after", furthest_ahead(graph, launches, simulate(graph, {.memory = false}).start)});
    effect.assumptions.push_back(needed_ == "never"
                                     ? "nothing the host does depends on what it waited for"
                                     : "the host needs what it waited for only in its next step");
    if (added > 0) {
      effect.assumptions.push_back(
          fmt::format("the host is at most {} ahead of the device", counted(queue_, "launch")));
    }
    return effect;
  }

 private:
  std::size_t queue_count() const { return static_cast<std::size_t>(queue_); }

  static bool is_wait(const Graph& graph, const Dependency& wait) {
    return runs_on_device(graph.task(wait.before).kind) &&
           runs_on_host(graph.task(wait.after).kind) && wait.why != Rule::launch_queue;
  }

  std::vector<TaskId> waiting_calls(const Graph& graph) const {
    std::vector<TaskId> calls;
    for (const TaskId task : where_.select_some(graph)) {
      bool waits = false;
      graph.each_wait(task, [&](const Dependency& wait) { waits = waits || is_wait(graph, wait); });
      if (waits) calls.push_back(task);
    }
    if (calls.empty()) {
      throw Error(fmt::format("no task of \"where\" ({}) is a call that waits for the device",
                              where_.to_text()));
    }
    return calls;
  }

  /// Leaves out cudaFree, hipMalloc and the like: they wait because they change the device's
  /// memory, so only a program that allocates less has fewer of these waits.
  std::vector<TaskId> without_driver_allocations(const Graph& graph,
                                                 std::vector<TaskId> calls) const {
    std::erase_if(calls, [&](TaskId call) { return is_driver_allocation(graph.name(call)); });
    if (!calls.empty()) return calls;
    throw Error(fmt::format(
        "the calls of \"where\" ({}) that wait for the device are driver calls that free or "
        "allocate memory, which wait by themselves; use a caching allocator instead",
        where_.to_text()));
  }

  static std::vector<Dependency> waits_of(const Graph& graph, const std::vector<TaskId>& calls) {
    std::vector<Dependency> waits;
    for (const TaskId call : calls) {
      graph.each_wait(call, [&](const Dependency& wait) {
        if (is_wait(graph, wait)) waits.push_back(wait);
      });
    }
    return waits;
  }

  /// Makes the first task of a later step, on the thread of the call, wait instead of the call.
  static void wait_in_later_step(Graph& graph, const std::vector<Dependency>& waits) {
    std::vector<TaskId> later(graph.task_count(), kNoTask);
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      TaskId first = kNoTask;
      for (TaskId task = graph.last(static_cast<LaneId>(i)); task != kNoTask;
           task = graph.previous(task)) {
        const TaskId next = graph.next(task);
        if (next != kNoTask && graph.task(next).step > graph.task(task).step) first = next;
        later[index(task)] = first;
      }
    }
    for (const Dependency& wait : waits) {
      const TaskId after = later[index(wait.after)];
      if (after == kNoTask || graph.task(wait.after).step < 0) continue;
      graph.add({.before = wait.before,
                 .after = after,
                 .provenance = Provenance::assumed,
                 .why = wait_reason_named(graph.names(), "value of the last step")});
    }
  }

  /// Returns the copies to the host that only the calls wait for.
  static std::vector<TaskId> copies_for(const Graph& graph, const std::vector<Dependency>& waits,
                                        const std::vector<char>& calling) {
    std::vector<TaskId> copies;
    for (const Dependency& wait : waits) {
      if (graph.task(wait.before).kind != TaskKind::copy_out) continue;
      bool others = false;
      graph.each_dependent(wait.before, [&](const Dependency& dependent) {
        others = others || (calling[index(dependent.after)] == 0 && is_wait(graph, dependent));
      });
      if (!others) copies.push_back(wait.before);
    }
    std::sort(copies.begin(), copies.end());
    copies.erase(std::unique(copies.begin(), copies.end()), copies.end());
    return copies;
  }

  /// Makes launches wait for a place in the launch queue. Returns how many may have to.
  std::size_t limit_queue(Graph& graph, const Launches& launches) const {
    const std::vector<Nanoseconds> starts = simulate(graph, {.memory = false}).start;
    std::vector<TaskId> last(graph.task_count(), kNoTask);
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      for (TaskId task = graph.first(static_cast<LaneId>(i)); task != kNoTask;
           task = graph.next(task)) {
        const TaskId launch = launches.launch_of(task);
        if (launch != kNoTask && !graph.removed(launch)) last[index(launch)] = task;
      }
    }
    std::vector<TaskId> calls;
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      for (TaskId task = graph.first(static_cast<LaneId>(i)); task != kNoTask;
           task = graph.next(task)) {
        if (last[index(task)] != kNoTask) calls.push_back(task);
      }
    }
    std::stable_sort(calls.begin(), calls.end(),
                     [&](TaskId a, TaskId b) { return starts[index(a)] < starts[index(b)]; });
    std::map<std::int32_t, std::vector<TaskId>> by_rank;
    std::vector<std::size_t> place(graph.task_count(), 0);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      place[index(calls[i])] = i;
      by_rank[graph.lane(graph.lane_of(calls[i])).rank].push_back(calls[i]);
    }
    // A wait from a lesser to a greater place closes no cycle.
    const std::vector<std::size_t> latest = greatest_awaited(graph, place);
    std::size_t added = 0;
    for (const auto& [rank, own] : by_rank) {
      for (std::size_t i = queue_count(); i < own.size(); ++i) {
        const TaskId work = last[index(own[i - queue_count()])];
        // Work may wait for something launched later: on a stream that threads share, for an event,
        // or for room on the device. Such work has already left the queue and holds back no launch.
        if (latest[index(work)] >= place[index(own[i])]) continue;
        graph.add({.before = work,
                   .after = own[i],
                   .provenance = Provenance::assumed,
                   .why = Rule::launch_queue});
        ++added;
      }
    }
    return added;
  }

  /// Returns the longest delay between a launch and its activity.
  static Nanoseconds furthest_ahead(const Graph& graph, const Launches& launches,
                                    const std::vector<Nanoseconds>& starts) {
    Nanoseconds most(0);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const auto task = static_cast<TaskId>(i);
      const TaskId launch = launches.launch_of(task);
      if (launch == kNoTask || graph.removed(task) || graph.removed(launch)) continue;
      most = std::max(most, starts[i] - starts[index(launch)]);
    }
    return most;
  }

  Selector where_{"sync"};
  std::string needed_ = "never";
  std::string copies_ = "stay";
  std::int64_t queue_ = 1022;
};

}  // namespace

TransformEntry remove_sync_entry() {
  return {.make = create<RemoveSync>,
          .assumes =
              "The host no longer waits for the device in these calls, and the calls go away; "
              "launches and waits on the device stay. The value that the host read is needed never "
              "or, if requested, in its next step. The host runs ahead as far as the launch queue "
              "allows. Driver calls that free or allocate memory (cudaFree, hipMalloc) still "
              "wait. Not modelled: shapes and branches that depend on a value the host read, "
              "such as those after nonzero().",
          .advice = {.goal = Goal::time,
                     .tries = {"remove_sync:needed=next_step", "remove_sync"},
                     .applies_to = {"waits"}}};
}

}  // namespace foretrace

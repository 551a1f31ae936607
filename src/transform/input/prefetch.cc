#include <fmt/core.h>
#include <map>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/applies.h"
#include "transform/edit/copy_waits.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

constexpr std::string_view kAhead = "+prefetch";  ///< Ends the name of the lane of moved copies.

/// Puts input copies on a lane of their own, as a data loader with pinned memory and a second
/// stream does. A copy then waits for a free buffer instead of for the kernels before it:
///
///     stream  |iiAAAAjjBBBB|      stream           |..AAAABBBB|
///                             ->  stream+prefetch  |iijj......|
///
/// A copy still waits for the call that issued it; that call no longer waits for the copy, and is
/// made before the host waits for the previous step:
///
///     cpu     |LMw...LMw...|   w waits for the device   ->   cpu |LLMw...Mw...|
class Prefetch final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The copies to run ahead");
    fields.integer("buffers", buffers_, "Inputs that fit on the device at once; 1 hides nothing", 1,
                   1'000'000);
  }

  /// A copy from pinned memory on a stream without kernels runs ahead already, and so does one that
  /// this moved.
  Applicability applies(const Graph& graph) const override {
    if (Applicability known = applies_to_frameworks(graph); known.share <= 0) return known;
    const std::vector<char> computes = lanes_with_kernels(graph);
    Nanoseconds all{0}, ahead{0};
    for (const TaskId id : where_.select(graph)) {
      const Task& task = graph.task(id);
      all += task.duration;
      // The name of a copy says if it used pinned memory.
      const LaneId lane = graph.lane_of(id);
      const bool is_moved = graph.lane(lane).name.ends_with(kAhead);
      if (is_moved || (contains(graph.name(id), "Pinned") && computes[index(lane)] == 0))
        ahead += task.duration;
    }
    if (ahead == 0ns) return {};
    return {.share = 1 - ratio(ahead, all),
            .why_not = fmt::format("{} of the time of its copies is on a stream of their own, from "
                                   "pinned memory, already",
                                   to_share(ratio(ahead, all)))};
  }

  Effect apply(Graph& graph, const Context&) const override {
    std::map<LaneId, std::vector<Input>> inputs = find_inputs(graph);
    const Launches launches(graph);
    Effect effect;
    std::size_t count = 0;
    Bytes memory{};
    pass_on_implicit_waits(graph, copies_of(inputs));
    for (const auto& [lane, of_lane] : inputs) {
      count += of_lane.size();
      memory += add_buffers(graph, lane, of_lane);
      effect.changed += run_ahead(graph, lane, of_lane);
    }
    const std::size_t waits = drop_waits_for_copies(graph, launches, copies_of(inputs));
    effect.changed += waits;
    std::size_t calls = 0;
    for (const auto& [lane, of_lane] : inputs) calls += call_ahead(graph, launches, of_lane);
    effect.changed += calls;
    effect.summary =
        fmt::format("{} copied ahead, {} at once on the device", counted(count, "input"), buffers_);
    if (memory.count > 0) effect.summary += fmt::format(": {} more memory", to_text(memory));
    effect.assumptions.push_back(
        "inputs are copied from pinned memory on a stream of their own, beside kernels and at the "
        "same speed");
    note_count(effect, Severity::info, "waits of the host for input copies dropped", waits);
    if (calls > 0) {
      effect.assumptions.push_back(
          "the copy of the next input is issued before the host waits for the step before it, once "
          "that input is loaded");
    }
    return effect;
  }

 private:
  /// The input of one iteration: consecutive copies fill one buffer.
  struct Input {
    Group copies;
    TaskId last_user = kNoTask;  ///< Last task before the next input; kNoTask for the last input.
  };

  static std::vector<char> lanes_with_kernels(const Graph& graph) {
    std::vector<char> computes(graph.lane_count(), 0);
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (graph.task(TaskId{i}).kind == TaskKind::kernel && !graph.removed(TaskId{i}))
        computes[index(graph.lane_of(TaskId{i}))] = 1;
    }
    return computes;
  }

  std::map<LaneId, std::vector<Input>> find_inputs(const Graph& graph) const {
    std::map<LaneId, std::vector<Input>> inputs;
    for (Group& copies : grouped(graph, where_.select_some(graph), "run")) {
      std::vector<Input>& of_lane = inputs[graph.lane_of(copies.front())];
      if (!of_lane.empty()) of_lane.back().last_user = graph.previous(copies.front());
      of_lane.push_back({.copies = std::move(copies)});
    }
    return inputs;
  }

  static std::vector<TaskId> copies_of(const std::map<LaneId, std::vector<Input>>& inputs) {
    std::vector<TaskId> copies;
    for (const auto& [lane, of_lane] : inputs) {
      for (const Input& input : of_lane) {
        copies.insert(copies.end(), input.copies.begin(), input.copies.end());
      }
    }
    return copies;
  }

  /// A stream made for copies is non-blocking. Where CUDA itself ordered tasks before a copy,
  /// because the copy ran on the default stream or on a blocking one, the tasks behind the copy
  /// wait for them instead.
  static void pass_on_implicit_waits(Graph& graph, const std::vector<TaskId>& copies) {
    std::vector<char> is_moved(graph.task_count(), 0);
    for (const TaskId copy : copies) is_moved[index(copy)] = 1;
    std::vector<Dependency> waits;
    const auto is_implicit = [&](const Dependency& wait) {
      return wait.why == Rule::default_stream && is_moved[index(wait.after)] != 0;
    };
    graph.each_dependency([&](const Dependency& wait) {
      if (is_implicit(wait)) waits.push_back(wait);
    });
    if (waits.empty()) return;
    graph.remove_dependencies(is_implicit);
    for (Dependency& wait : waits) {
      while (wait.after != kNoTask && is_moved[index(wait.after)] != 0)
        wait.after = graph.next(wait.after);
      if (wait.after != kNoTask) graph.add(wait);
    }
  }

  /// Adds memory for all buffers but one, each as large as the largest input. Returns its size.
  Bytes add_buffers(Graph& graph, LaneId lane, const std::vector<Input>& inputs) const {
    Bytes largest{};
    for (const Input& input : inputs) {
      Bytes size{};
      for (const TaskId copy : input.copies) size += graph.task(copy).bytes;
      largest = std::max(largest, size);
    }
    const Bytes added = times(largest, buffers_ - 1);
    if (added.count > 0) {
      graph.allocations().push_back(
          {.bytes = added, .device = std::max(graph.lane(lane).device, 0), .stream = lane});
    }
    return added;
  }

  std::size_t run_ahead(Graph& graph, LaneId lane, const std::vector<Input>& inputs) const {
    const auto buffers = static_cast<std::size_t>(buffers_);
    const WaitReason ready = wait_reason_named(graph.names(), "input copied");
    const WaitReason free = wait_reason_named(graph.names(), "free buffer");
    Lane ahead = graph.lane(lane);
    ahead.name += kAhead;
    const LaneId to = graph.add_lane(std::move(ahead));
    std::size_t changed = 0;
    const auto wait = [&](TaskId before, TaskId after, WaitReason why) {
      graph.add({.before = before, .after = after, .provenance = Provenance::assumed, .why = why});
      ++changed;
    };
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Group& copies = inputs[i].copies;
      const TaskId first_user = graph.next(copies.back());
      if (first_user != kNoTask) wait(copies.back(), first_user, ready);
      if (i >= buffers) wait(inputs[i - buffers].last_user, copies.front(), free);
      for (const TaskId copy : copies) {
        graph.task(copy).gap = Nanoseconds(0);
        graph.task(copy).step = -1;  // It may run in an earlier step, and begins none.
        graph.move_to_end(copy, to);
      }
      changed += copies.size();
    }
    return changed;
  }

  /// Moves the calls of each input behind those of the input `buffers` - 1 before it, if the host
  /// waits in between. Begins with the last input, so that the calls of earlier inputs are still in
  /// their old places. Returns how many calls moved.
  std::size_t call_ahead(Graph& graph, const Launches& launches,
                         const std::vector<Input>& inputs) const {
    const auto ahead = static_cast<std::size_t>(buffers_ - 1);
    std::vector<TaskId> moved;
    for (std::size_t i = inputs.size(); ahead > 0 && i-- > 1;) {
      const Group& earlier = inputs[i - std::min(i, ahead)].copies;
      const std::vector<TaskId> calls = calls_of(launches, inputs[i].copies);
      const TaskId last = launches.launch_of(earlier.back());
      if (calls.empty() || last == kNoTask) continue;
      TaskId place = earliest_place(graph, calls.front(), last);
      if (place == kNoTask) continue;
      for (const TaskId call : calls) {
        if (graph.lane_of(call) != graph.lane_of(place) || waits_for_host(graph, call)) break;
        graph.task(call).gap = Nanoseconds(0);
        graph.task(call).step = -1;  // As its copy: it begins no step.
        graph.move_behind(call, place);
        moved.push_back(place = call);
      }
    }
    drop_device_waits(graph, moved);
    return moved.size();
  }

  static std::vector<TaskId> calls_of(const Launches& launches, const Group& copies) {
    std::vector<TaskId> calls;
    for (const TaskId copy : copies) {
      const TaskId call = launches.launch_of(copy);
      if (call == kNoTask) return {};
      if (calls.empty() || calls.back() != call) calls.push_back(call);
    }
    return calls;
  }

  /// Returns the task to put the call behind: `earliest`, or the last loading task between it and
  /// the call. Returns kNoTask if the host does not wait between there and the call.
  static TaskId earliest_place(const Graph& graph, TaskId call, TaskId earliest) {
    bool waits = false;
    TaskId at = graph.previous(call);
    for (; at != kNoTask && at != earliest; at = graph.previous(at)) {
      const Task& task = graph.task(at);
      if (task.kind == TaskKind::input) break;
      waits = waits || task.kind == TaskKind::sync;
    }
    return waits ? at : kNoTask;
  }

  /// Whether a call waits for host work. A call that another thread starts may belong to that
  /// thread's work.
  static bool waits_for_host(const Graph& graph, TaskId call) {
    bool found = false;
    graph.each_wait(call, [&](const Dependency& wait) {
      found = found || !runs_on_device(graph.task(wait.before).kind);
    });
    return found;
  }

  /// Removes the waits of moved calls for the device: they are made earlier, when its queue had
  /// another state.
  static void drop_device_waits(Graph& graph, const std::vector<TaskId>& calls) {
    if (calls.empty()) return;
    std::vector<char> moved(graph.task_count(), 0);
    for (const TaskId call : calls) moved[index(call)] = 1;
    graph.remove_dependencies([&](const Dependency& wait) {
      return moved[index(wait.after)] != 0 && runs_on_device(graph.task(wait.before).kind);
    });
  }

  Selector where_{"copy_in"};
  std::int64_t buffers_ = 2;
};

}  // namespace

TransformEntry prefetch_entry() {
  return {.make = create<Prefetch>,
          .assumes =
              "Input copies run on their own stream from pinned memory, beside kernels and without "
              "slowing them. Each waits for the call that issued it and for a free buffer; the "
              "first task after it waits for it. The call is made before the host waits for the "
              "step before it, once its input is loaded. Loading the data itself is not moved: see "
              "\"loader\".",
          .advice = {.goal = Goal::time, .tries = {"prefetch"}, .applies_to = {"input copies"}}};
}

}  // namespace foretrace

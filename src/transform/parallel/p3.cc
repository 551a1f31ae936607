// Sends gradients in the order in which the next step needs them (A. Jayarajan et al.,
// Priority-based Parameter Propagation, MLSys 2019; ByteScheduler, SOSP 2019):
//
//     stream  |B3 B2 B1|F1..F2 F3|    F1 begins once gradient 1 has arrived, not once all have
//     network |  333221133|           gradients 2 and 1 wait for one slice of 3 at most
//
// Each gradient is cut into slices. The network sends a slice of the front layers first, and the
// forward pass of a layer waits for its own gradient alone. Servers update the parameters: the
// workers' updates vanish, unless `server_update` is false; then they run in front of the forward
// pass and wait for nothing.
//
// Workers are late as in data_parallel.cc.
//
// Which forward work needs a layer's gradient comes from the layers of the trace; where these are
// unknown, forward passes need parameters in the reverse order of time in which backward passes
// make them.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradient_exchange.h"

namespace foretrace {
namespace {

/// 50,000 parameters in fp32, as in the paper.
constexpr Bytes kSlice{200'000};

/// The forward pass of a step: its device tasks in order of time.
struct ForwardPass {
  std::vector<TaskId> tasks;
  std::map<std::int32_t, TaskId> first_of_layer;
};

class PriorityPropagation final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "Workers in all, each on a GPU of its own", 2, 1'000'000);
    network_.describe(fields);
    fields.bytes("slice", slice_, "Size of the slices that gradients are cut into",
                 kGradientElement);
    fields.flag("priority", priority_,
                "Slices of the front layers are sent first; otherwise in the order in which they "
                "are ready");
    fields.flag("server_update", server_update_,
                "Servers update the parameters, and workers do not");
    workers_.describe(fields);
    fields.bytes("gradient_bytes", gradient_bytes_,
                 "All gradients of a step; 0B: from the trace, estimated where it shows no memory");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    const Timeline timeline = simulate(graph, {.memory = false});
    const Gradients found = find_gradients(graph, timeline, gradient_bytes_);
    Communicator communicator(network_, gpus_, context.gpus_per_worker);
    const Forwards forward = forward_passes(graph, timeline);
    const Nanoseconds slice_time = communicator.time(Operation::all_reduce, slice_);
    Effect effect;
    if (server_update_) drop_updates(graph, effect);
    std::vector<TaskId> sent;
    Nanoseconds transfer{0}, lateness{0};
    for (const BackwardPass& pass : found.passes) {
      const ArrivalSkew late(pass, timeline, workers_, gpus_);
      lateness += late.most();
      const auto next = forward.upper_bound(pass.step);
      const Bytes total = total_bytes(pass);
      const Nanoseconds whole = communicator.time(Operation::all_reduce, total);
      for (const Gradient& gradient : pass.gradients) {
        const TaskId needed = next == forward.end()
                                  ? kNoTask
                                  : reader_of(gradient, pass, next->second, graph, timeline);
        sent.push_back(send(graph, {pass, total, whole, slice_time, late}, gradient, needed, next));
        transfer += graph.task(sent.back()).duration;
      }
    }
    prioritize(graph, sent, slice_time);
    effect.changed += sent.size() + contend(graph, workers_.contention).changed;
    describe_effect(found, transfer, lateness, communicator, effect);
    return effect;
  }

  JobChange job_change() const override { return JobChange::on(gpus_, gpus_, network_.text()); }

 private:
  using Forwards = std::map<std::int32_t, ForwardPass>;

  static Forwards forward_passes(const Graph& graph, const Timeline& timeline) {
    Forwards passes;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId id{i};
      const Task& task = graph.task(id);
      if (!graph.removed(id) && runs_on_device(task.kind) && task.phase == Phase::forward &&
          task.step >= 0)
        passes[task.step].tasks.push_back(id);
    }
    for (auto& [step, pass] : passes) {
      std::ranges::stable_sort(pass.tasks, {},
                               [&](TaskId id) { return timeline.start[index(id)]; });
      for (const TaskId id : pass.tasks) {
        if (graph.task(id).layer >= 0) pass.first_of_layer.try_emplace(graph.task(id).layer, id);
      }
    }
    return passes;
  }

  /// Returns the first forward task that needs the parameter of a gradient.
  static TaskId reader_of(const Gradient& gradient, const BackwardPass& pass,
                          const ForwardPass& next, const Graph& graph, const Timeline& timeline) {
    const std::int32_t layer = graph.task(gradient.ready).layer;
    const auto known = next.first_of_layer.find(layer);
    if (known != next.first_of_layer.end()) return known->second;
    const Nanoseconds begin = timeline.finish[index(pass.gradients.front().ready)];
    const Nanoseconds end = timeline.finish[index(pass.last)];
    const double left = ratio(end - timeline.finish[index(gradient.ready)], end - begin);
    const auto place = static_cast<std::size_t>(left * static_cast<double>(next.tasks.size()));
    return next.tasks[std::min(place, next.tasks.size() - 1)];
  }

  /// The gradients of a step, and how long all of them and one slice take alone.
  struct Traffic {
    const BackwardPass& pass;
    Bytes total;
    Nanoseconds whole, slice;
    const ArrivalSkew& late;
  };

  /// Adds the transfer of a gradient. Slices follow each other, so that a gradient takes its part
  /// of the time of all of them; only the wait for its last slice lasts as long as a slice takes
  /// alone.
  TaskId send(Graph& graph, const Traffic& traffic, const Gradient& gradient, TaskId needed,
              Forwards::const_iterator next) const {
    const BackwardPass& pass = traffic.pass;
    Task task{.bytes = gradient.bytes, .step = pass.step, .phase = Phase::backward};
    task.kind = TaskKind::collective;
    task.name = graph.names().intern("gradient in slices");
    const auto part = [&](Bytes bytes) {
      return scaled(traffic.whole,
                    static_cast<double>(bytes.count) / static_cast<double>(traffic.total.count));
    };
    task.duration = part(gradient.bytes);
    if (needed != kNoTask) {
      const std::vector<TaskId>& tasks = next->second.tasks;
      const auto place = std::ranges::find(tasks, needed) - tasks.begin();
      task.priority = priority_ ? -static_cast<std::int32_t>(place) : 0;
    }
    const TaskId sent =
        graph.append(lane_named(graph, "parameter slices", graph.lane_of(pass.last)), task);
    graph.collectives().push_back(
        {.task = sent,
         .operation = graph.names().intern(std::string(to_string(Operation::all_reduce))),
         .group_size = static_cast<std::int32_t>(gpus_),
         .bytes = gradient.bytes});
    graph.add({.before = gradient.ready,
               .after = sent,
               .lag = traffic.late.at(gradient.ready),
               .provenance = Provenance::assumed,
               .why = Rule::collective_input});
    if (needed != kNoTask)
      graph.add({.before = sent,
                 .after = needed,
                 .lag = std::max(0ns, traffic.slice - part(slice_)),
                 .provenance = Provenance::assumed,
                 .why = Rule::update_after_collectives});
    return sent;
  }

  void prioritize(Graph& graph, const std::vector<TaskId>& sent, Nanoseconds slice) const {
    if (sent.empty()) return;
    Lane& lane = graph.lane(graph.lane_of(sent.front()));
    lane.discipline = Discipline::priority;
    lane.slice = std::max(1ns, slice);
  }

  static void drop_updates(Graph& graph, Effect& effect) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const TaskId id{i};
      Task& task = graph.task(id);
      if (graph.removed(id) || task.phase != Phase::update || task.kind != TaskKind::kernel)
        continue;
      task.duration = 0ns;
      ++effect.changed;
    }
  }

  void describe_effect(const Gradients& found, Nanoseconds transfer, Nanoseconds lateness,
                       const Communicator& communicator, Effect& effect) const {
    const auto steps = static_cast<std::int64_t>(found.passes.size());
    Bytes largest{};
    for (const BackwardPass& pass : found.passes) largest = std::max(largest, total_bytes(pass));
    effect.summary = fmt::format("{} of gradients a step in slices of {} among {}",
                                 to_text(largest), to_text(slice_), communicator.described());
    effect.figures = {{"gradient_bytes", largest},
                      {"transfer_per_step", transfer / steps},
                      {"lateness_per_step", lateness / steps}};
    effect.transfers = communicator.doubt();
    effect.assumptions = communicator.assumed();
    assume_gradients(found, effect.assumptions);
    effect.assumptions.emplace_back(
        "slices follow each other without gaps, and a more urgent one waits at most for the slice "
        "under way; workers are as late as in published runs");
  }

  std::int64_t gpus_ = 8;
  NetworkSettings network_;
  Bytes slice_ = kSlice, gradient_bytes_{};
  bool priority_ = true, server_update_ = true;
  WorkerSettings workers_;
};

}  // namespace

TransformEntry p3_entry() {
  return {
      .make = create<PriorityPropagation>,
      .assumes =
          "Each worker trains as the recorded one on a batch of its own. Gradients are cut into "
          "slices, of which the network sends those of the front layers first; the next step's "
          "forward pass of a layer waits for the gradient of that layer alone. Servers update "
          "the parameters (P3, MLSys 2019). Together they take what the network's model says of an "
          "all-reduce of all gradients. Published measurements "
          "were within 16 % of such a prediction (the Daydream paper, ATC'20).",
      .advice = {
          .why_not =
              "say how many GPUs and which network: p3:gpus=8,bandwidth=1.25GB/s,latency=10us"}};
}

}  // namespace foretrace

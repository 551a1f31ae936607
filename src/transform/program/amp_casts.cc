#include "transform/program/amp_casts.h"

#include <algorithm>
#include <fmt/core.h>
#include <string_view>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "machine/operation_rates.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"

namespace foretrace {
namespace {

/// Returns the first kernel of the phase in each step, in order of time.
std::vector<TaskId> first_kernels_of(const Graph& graph, std::string_view phase) {
  std::vector<TaskId> kernels = Selector("kernel", phase).select(graph);
  if (kernels.empty()) {
    throw Error(
        fmt::format("no kernel of the {} phase to put the additional work in front of", phase));
  }
  sort_by_start(kernels, simulate(graph, {.memory = false}).start);
  return first_of_each_step(graph, kernels);
}

/// Adds tasks in front of others, with the calls that launch them.
class Addition {
 public:
  explicit Addition(Graph& graph) : graph_(graph), launches_(graph) {}

  void add_kernel(TaskId kernel, std::string_view name, Nanoseconds duration) {
    const TaskId added = insert(kernel, name, TaskKind::kernel, duration);
    const TaskId launch = launches_.launch_of(kernel);
    if (launch != kNoTask) wait(launch, added, Rule::launch);
  }

  void add_scaler(TaskId kernel, Nanoseconds duration) {
    const TaskId unscale = insert(kernel, "amp unscale", TaskKind::kernel, duration);
    const TaskId launch = launches_.launch_of(kernel);
    if (launch == kNoTask) return;
    const TaskId call = insert(launch, "launch amp unscale", TaskKind::launch, kLaunch);
    const TaskId found = insert(launch, "amp found_inf", TaskKind::sync, kLaunch);
    wait(call, unscale, Rule::launch);
    wait(unscale, found, wait_reason_named(graph_.names(), "gradient scaler"));
  }

 private:
  static constexpr Nanoseconds kLaunch{5000};  // Recalled: the usual length of a launch call.

  TaskId insert(TaskId before, std::string_view name, TaskKind kind, Nanoseconds duration) {
    const Task& like = graph_.task(before);
    return graph_.insert_before(before, {.duration = duration,
                                         .name = graph_.names().intern(name),
                                         .step = like.step,
                                         .kind = kind,
                                         .phase = like.phase});
  }

  void wait(TaskId before, TaskId after, WaitReason why) {
    graph_.add({.before = before, .after = after, .provenance = Provenance::assumed, .why = why});
  }

  Graph& graph_;
  Launches launches_;
};

}  // namespace

AddedConversions add_conversions(Graph& graph, const Context& context,
                                 const std::function<bool(TaskId)>& is_converted) {
  constexpr double kBytes = 6;  // One side in FP32, one in half precision.
  const DeviceModel* const device =
      context.machine != nullptr ? context.machine : recorded_device(graph);
  if (device == nullptr) return {};
  const OperationRate rate = rate_of(*device, OperationKind::stream, Arithmetic::half);
  if (rate.bytes_per_second <= 0) return {};
  Addition addition(graph);
  AddedConversions added;
  for (const AutocastWork& work : graph.autocast()) {
    if (work.casts == 0 || !is_converted(work.task)) continue;
    const double elements = static_cast<double>(work.weights) + static_cast<double>(work.elements) *
                                                                    context.samples *
                                                                    context.positions;
    const double seconds = elements * kBytes / rate.bytes_per_second;
    const Nanoseconds time =
        scaled(rate.start, work.casts) + scaled(Nanoseconds(1'000'000'000), std::min(seconds, 1e6));
    addition.add_kernel(work.task, "conversions by autocast", time);
    ++added.tasks, added.count += work.casts, added.time += time;
  }
  return added;
}

std::size_t add_casts_to_passes(Graph& graph, Nanoseconds duration) {
  const std::vector<TaskId> kernels = first_kernels_of(graph, "forward");
  Addition addition(graph);
  for (const TaskId kernel : kernels) addition.add_kernel(kernel, "amp casts", duration);
  return kernels.size();
}

std::size_t add_gradient_scaler(Graph& graph, Nanoseconds duration) {
  const std::vector<TaskId> kernels = first_kernels_of(graph, "update");
  Addition addition(graph);
  for (const TaskId kernel : kernels) addition.add_scaler(kernel, duration);
  return kernels.size();
}

}  // namespace foretrace

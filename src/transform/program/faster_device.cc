// The roofline between two devices: work bound by arithmetic scales with the peak of its precision,
// work bound by memory with the bandwidth, copies with the link, and kernels of a few microseconds
// stay:
//
//     t' = t * peak(from) / peak(to)     or     t * bandwidth(from) / bandwidth(to)
//
// Convolutions in FP32 use TF32 tensor cores if only the other device has them, which PyTorch
// allows cuDNN by default (torch.backends.cudnn.allow_tf32; matrix products need a setting).
//
// Ignored: that a larger device is harder to fill, caches, and different kernels that libraries
// choose.

#include <algorithm>
#include <fmt/core.h>

#include "base/contains.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class FasterDevice final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The device tasks that change");
    fields.name_or_path("to", to_, "Name of the other device, or path of its machine file");
    fields.name_or_path("from", from_, "The recorded device; empty: that of the job");
    fields.time("shortest", shortest_,
                "Kernels up to this long are bound by latency and stay, and more bandwidth or "
                "arithmetic makes none shorter than this (recalled)",
                Nanoseconds(0));
    fields.flag(
        "tf32_convolutions", tf32_convolutions_,
        "FP32 convolutions run in TF32 if the other device has it and the recorded one does not");
    fields.number("tf32_efficiency", tf32_efficiency_,
                  "Share of the TF32 peak that they reach, relative to the share that they reached "
                  "in FP32 (recalled)",
                  0.01, 1);
  }

  Effect apply(Graph& graph, const Context& context) const override {
    if (to_.empty())
      throw Error("to: must be the name of a device or the path of its machine file");
    const DeviceModel from = device_for(graph, context, "from", from_);
    const DeviceModel to = device_for(graph, context, "to", to_);
    KernelClasses classes(graph);
    Tally tally;
    for (const TaskId id : where_.select_some(graph)) {
      Task& task = graph.task(id);
      const Nanoseconds wanted = on_device(task, from, to, classes, tally);
      if (wanted != task.duration) ++tally.changed;
      task.duration = wanted;
    }
    return effect_of(from, to, tally);
  }

  JobChange job_change() const override { return {.samples = 1, .tokens = 1, .device = to_}; }

 private:
  struct Tally {
    std::size_t compute = 0, memory = 0, latency = 0, copies = 0, unknown = 0, peers = 0, tf32 = 0;
    std::size_t changed = 0;
  };

  Nanoseconds on_device(const Task& task, const DeviceModel& from, const DeviceModel& to,
                        KernelClasses& classes, Tally& tally) const {
    if (task.kind == TaskKind::kernel) return kernel_on_device(task, from, to, classes, tally);
    if (crosses_host_link(task.kind)) {
      ++tally.copies;
      return by_ratio(task, from.host_link.bytes_per_second, to.host_link.bytes_per_second, tally);
    }
    if (is_copy(task.kind)) {
      ++tally.copies;
      return by_ratio(task, from.memory_bandwidth.bytes_per_second,
                      to.memory_bandwidth.bytes_per_second, tally);
    }
    if (is_between_peers(task.kind)) ++tally.peers;
    return task.duration;
  }

  Nanoseconds kernel_on_device(const Task& task, const DeviceModel& from, const DeviceModel& to,
                               KernelClasses& classes, Tally& tally) const {
    const KernelClass& kernel = classes.of(task.name);
    if (kernel.bound == Boundness::latency || task.duration <= shortest_) {
      ++tally.latency;
      return task.duration;
    }
    if (kernel.bound == Boundness::compute) {
      ++tally.compute;
      double peak = peak_of(to, kernel).flops_per_second;
      const double tf32 = to.tf32.flops_per_second * tf32_efficiency_;
      if (goes_to_tf32(kernel, from, classes.name_of(task)) && tf32 > peak) {
        ++tally.tf32;
        peak = tf32;
      }
      return by_ratio(task, peak_of(from, kernel).flops_per_second, peak, tally);
    }
    ++tally.memory;
    return by_ratio(task, from.memory_bandwidth.bytes_per_second,
                    to.memory_bandwidth.bytes_per_second, tally);
  }

  bool goes_to_tf32(const KernelClass& kernel, const DeviceModel& from,
                    std::string_view name) const {
    if (!tf32_convolutions_ || kernel.half_precision || from.tf32.flops_per_second > 0)
      return false;
    return contains_any(name, {"cudnn", "conv", "wgrad", "dgrad", "fprop", "winograd"});
  }

  Nanoseconds by_ratio(const Task& task, double from, double to, Tally& tally) const {
    if (from <= 0 || to <= 0) {
      ++tally.unknown;
      return task.duration;
    }
    const Nanoseconds wanted = scaled(task.duration, from / to);
    return wanted < task.duration ? std::max(wanted, std::min(task.duration, shortest_)) : wanted;
  }

  static Effect effect_of(const DeviceModel& from, const DeviceModel& to, const Tally& tally) {
    Effect effect;
    effect.changed = tally.changed;
    effect.summary = fmt::format(
        "from {} to {}: {} by peak arithmetic, {} by memory bandwidth, {} too short to change, {}",
        from.name, to.name, counted(tally.compute, "kernel"), grouped(tally.memory),
        grouped(tally.latency), counted(tally.copies, "copy"));
    if (tally.tf32 > 0) {
      effect.summary += fmt::format("; {} in TF32", counted(tally.tf32, "convolution"));
      effect.assumptions.push_back(
          fmt::format("FP32 convolutions may run in TF32 on {}, as is PyTorch's default", to.name));
    }
    note_count(effect, Severity::warning,
               "tasks left as they are because a device model lacks the figure", tally.unknown);
    note_count(effect, Severity::info, "tasks that move data between devices, left as they are",
               tally.peers);
    effect.assumptions.push_back(
        "kernels keep the share of the device's peak or bandwidth they reached on " + from.name);
    effect.assumptions.push_back("the host is the same");
    if (to.memory.count > 0) {
      effect.assumptions.push_back(fmt::format(
          "the memory that the run uses fits into the {} of {}", to_text(to.memory), to.name));
    }
    return effect;
  }

  Selector where_{"device"};
  std::string to_;
  std::string from_;
  Nanoseconds shortest_ = 3us;
  bool tf32_convolutions_ = true;
  double tf32_efficiency_ = 0.5;
};

}  // namespace

TransformEntry faster_device_entry() {
  return {
      .make = create<FasterDevice>,
      .assumes =
          "Kernels keep the share of the roofline they reached: those bound by arithmetic "
          "scale with the peak of the precision in their name, those bound by memory with its "
          "bandwidth, copies with the link to the host. FP32 convolutions use TF32 where only "
          "the other device has it. Kernels of a few microseconds, the host, launch times and "
          "communication stay.",
      .advice = {
          .goal = Goal::device, .tries = {"faster_device:to=<device>"}, .applies_to = {"device"}}};
}

}  // namespace foretrace

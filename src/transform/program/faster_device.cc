// The roofline between two devices, with what operations reach on each (machine/operation_rates.h):
//
//     t' = start' + (t - start) * rate / rate'
//
// where the rate is a share of the peak of the kernel's precision, or of the bandwidth of memory.
// Kernels that take no longer than a start change as the start does. Copies follow the link.
//
// A kernel with known operations that explain less than half of its time is bound by memory,
// whatever its name says: products with one row, as in decoding, are. So are products of unknown
// shape and attention in steps that an engine names as steps that only decode.
//
// Convolutions in FP32 that were recorded on a device without TF32 tensor cores use them wherever
// there are some, which PyTorch allows cuDNN by default (torch.backends.cudnn.allow_tf32; matrix
// products need a setting).
//
// Ignored: that a larger device is harder to fill, caches, and different kernels that libraries
// choose.

#include <cmath>
#include <fmt/core.h>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

class FasterDevice final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The device tasks that change");
    fields.name_or_path("to", to_, "Name of the other device, or path of its machine file");
    fields.name_or_path("from", from_, "The recorded device; empty: that of the job");
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
    const ServingGraph serving(graph);
    const DeviceModel* const recorded = recorded_device(graph);
    const bool without_tf32 = (recorded != nullptr ? *recorded : from).tf32.flops_per_second <= 0;
    Tally tally{.serving = serving, .gains_tf32 = tf32_convolutions_ && without_tf32};
    for (const TaskId id : where_.select_some(graph)) {
      Task& task = graph.task(id);
      const Nanoseconds wanted = on_device(task, from, to, classes, tally);
      if (wanted != task.duration) ++tally.changed;
      task.duration = wanted;
    }
    Effect effect = effect_of(from, to, tally);
    if (to.memory.count > 0 && graph.allocations().empty())
      effect.assumptions.push_back(fmt::format(
          "the memory that the run uses fits into the {} of {}", to_text(to.memory), to.name));
    return effect;
  }

  JobChange job_change() const override { return {.samples = 1, .tokens = 1, .device = to_}; }

 private:
  struct Tally {
    const ServingGraph& serving;
    bool gains_tf32 = false;  ///< Whether convolutions in FP32 use TF32 where it exists.
    std::size_t compute = 0, memory = 0, start = 0, stay = 0, copies = 0, unknown = 0, peers = 0,
                tf32 = 0;
    std::size_t changed = 0, unknown_shape = 0;
    Nanoseconds kernels{0};  ///< Time of kernels by rates.
    double off = 0;          ///< Their time times its typical error.
    /// The new time of kernels without shapes, and what it would be if memory bounded them.
    Nanoseconds by_guess{0}, otherwise{0};
    bool measured = true;  ///< Whether all rates are of measured families.
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
    if (kernel.bound == Boundness::latency) {
      ++tally.stay;
      return task.duration;
    }
    const bool reads_cache = tally.serving.decoding(task) && tally.serving.is_attention(task);
    const OperationKind operation =
        reads_cache ? OperationKind::decode : operation_of(kernel, classes.name_of(task));
    OperationRate now = rate_of(from, operation, arithmetic_of(kernel, from));
    OperationRate there = rate_of(to, operation, arithmetic_of(kernel, to));
    const bool in_tf32 = tally.gains_tf32 && is_convolution_in_fp32(kernel, classes.name_of(task));
    if (in_tf32) use_tf32(from, now);
    const bool by_arithmetic = operation != OperationKind::stream && !reads_cache &&
                               !tally.serving.reads_weights(task, now) &&
                               limited_by_arithmetic(task, now);
    if (in_tf32 && by_arithmetic && use_tf32(to, there)) ++tally.tf32;
    const auto limit =
        by_arithmetic ? &OperationRate::flops_per_second : &OperationRate::bytes_per_second;
    if (now.*limit <= 0 || there.*limit <= 0) {
      ++tally.unknown;
      return task.duration;
    }
    if (from.name != to.name) {
      tally.kernels += task.duration;
      tally.off += std::hypot(now.error, there.error) * static_cast<double>(task.duration.count());
      tally.measured &= now.of_family && there.of_family;
    }
    ++(task.duration <= now.start ? tally.start : by_arithmetic ? tally.compute : tally.memory);
    const Nanoseconds time = time_at(task.duration, now, there, by_arithmetic, 1, task.inner);
    if (by_arithmetic && task.flops <= 0 && from.name != to.name) {
      const Nanoseconds other = time_at(task.duration, now, there, false, 1, task.inner);
      tally.off += std::abs(static_cast<double>((other - time).count()));
      tally.by_guess += time, tally.otherwise += other;
      ++tally.unknown_shape;
    }
    return time;
  }

  static bool is_convolution_in_fp32(const KernelClass& kernel, std::string_view name) {
    return !kernel.half_precision &&
           contains_any(name, {"cudnn", "conv", "wgrad", "dgrad", "fprop", "winograd"});
  }

  /// Returns whether TF32 is faster on this device.
  bool use_tf32(const DeviceModel& device, OperationRate& rate) const {
    const double tf32 = device.tf32.flops_per_second * tf32_efficiency_;
    if (tf32 <= rate.flops_per_second) return false;
    rate.flops_per_second = tf32;
    return true;
  }

  Nanoseconds by_ratio(const Task& task, double from, double to, Tally& tally) const {
    if (from <= 0 || to <= 0) {
      ++tally.unknown;
      return task.duration;
    }
    return scaled(task.duration, from / to);
  }

  static Effect effect_of(const DeviceModel& from, const DeviceModel& to, const Tally& tally) {
    Effect effect;
    effect.changed = tally.changed;
    effect.summary = fmt::format(
        "from {} to {}: {} by arithmetic, {} by memory bandwidth, {} no longer than a start, {} "
        "that stay, {}",
        from.name, to.name, counted(tally.compute, "kernel"), grouped(tally.memory),
        grouped(tally.start), grouped(tally.stay), counted(tally.copies, "copy"));
    if (tally.tf32 > 0) {
      effect.summary += fmt::format("; {} in TF32", counted(tally.tf32, "convolution"));
      effect.assumptions.push_back(
          fmt::format("FP32 convolutions may run in TF32 on {}, as is PyTorch's default", to.name));
    }
    note_count(effect, Severity::warning,
               "tasks left as they are because a device model lacks the figure", tally.unknown);
    note_count(effect, Severity::warning,
               "kernels without recorded shapes, taken to be bound by arithmetic",
               tally.unknown_shape);
    constexpr double kMuch = 0.1;  // Chosen.
    if (std::abs(ratio(tally.otherwise - tally.by_guess, tally.kernels)) > kMuch)
      effect.doubts.push_back(
          fmt::format("kernels without recorded shapes take {} in all; if the bandwidth of memory "
                      "bounds them, {} (record_shapes=True tells)",
                      to_text(tally.by_guess), to_text(tally.otherwise)));
    note_count(effect, Severity::info, "tasks that move data between devices, left as they are",
               tally.peers);
    if (tally.kernels > 0ns) {
      effect.times_error = {tally.off / static_cast<double>(tally.kernels.count()),
                            fmt::format("rates of operations on {} and {}", from.name, to.name)};
    }
    effect.assumptions.push_back(fmt::format(
        "kernels reach the share of {}'s peak and bandwidth that operations of their kind usually "
        "do, relative to {}{}",
        to.name, from.name,
        tally.measured ? "" : "; not all of that was measured on devices of these families"));
    effect.assumptions.push_back("the host is the same");
    return effect;
  }

  Selector where_{"device"};
  std::string to_;
  std::string from_;
  bool tf32_convolutions_ = true;
  double tf32_efficiency_ = 0.5;
};

}  // namespace

TransformEntry faster_device_entry() {
  return {
      .make = create<FasterDevice>,
      .assumes =
          "Kernels keep their place in the roofline, with what operations of their kind reach on "
          "each device: those bound by arithmetic scale with the peak of the precision in their "
          "name, those bound by memory with its bandwidth, short ones as a start does, copies with "
          "the link to the host. FP32 convolutions use TF32 where only the other device has it. "
          "The host, launch times and communication stay.",
      .advice = {
          .goal = Goal::device, .tries = {"faster_device:to=<device>"}, .applies_to = {"device"}}};
}

}  // namespace foretrace

// Matrix products in narrower types, by what they reach in these (machine/operation_rates.h):
//
//     t' = max(start' + (t - start) * rate / rate', start' + inner' * k)
//
// where k is the inner size, along which each tile walks, and the rate is a share of the peak, or,
// where the product moves more than it computes, of the bandwidth of memory, and the bytes are then
// those of its weights. Products in narrow types take longer to start, because kernels of their own
// narrow their inputs: large products gain, small ones may get slower.
//
// Ignored: attention, convolutions, the cache of keys and values, accuracy, and kernels that fuse
// the narrowing into the work in front.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/block_size.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

struct NarrowType {
  const char* name;
  Arithmetic arithmetic;
  double weight_bytes;  ///< Per weight, scales included.
};
constexpr NarrowType kTypes[] = {{"fp8", Arithmetic::fp8, 1},
                                 {"fp8_blocks", Arithmetic::fp8_blocks, 1},
                                 {"nvfp4", Arithmetic::nvfp4, 0.5625},
                                 {"int8", Arithmetic::int8, 1},
                                 {"int8_weights", Arithmetic::int8_weights, 1},
                                 {"int4_weights", Arithmetic::int4_weights, 0.5625}};

class Quantize final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that may change");
    fields.choice("to", to_, {"fp8", "fp8_blocks", "nvfp4", "int8", "int8_weights", "int4_weights"},
                  "Type of inputs and weights; with _weights, of weights alone");
    fields.name_or_path("device", device_, "Name of the device; empty: that of the job");
    fields.flag("memory", memory_, "Weights that changed products read take less memory");
  }

  Applicability applies(const Graph& graph) const override {
    KernelClasses classes(graph);
    Nanoseconds all{0}, narrow{0}, twice{0};
    for (const TaskId id : where_.select(graph)) {
      const Task& task = graph.task(id);
      if (!is_product(task, classes)) continue;
      all += task.duration;
      if (classes.of(task.name).narrow) narrow += task.duration;
      if (classes.of(task.name).double_precision) twice += task.duration;
    }
    if (needs_wide_weights(graph))
      return {.share = 0,
              .why_not =
                  "a job that trains changes its weights: integers, and narrow weights "
                  "alone, are for jobs that only read them"};
    if (all == 0ns) return {.share = 0, .why_not = "no kernel is known as a matrix product"};
    if (narrow + twice == 0ns) return {};
    return {.share = 1 - ratio(narrow + twice, all),
            .why_not = to_share(ratio(narrow + twice, all)) +
                       " of the time of its matrix products is in " +
                       (narrow >= twice ? "8 or 4 bits already"
                                        : "double precision, which 8 bits cannot stand for")};
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const DeviceModel device = device_for(graph, context, "device", device_);
    const OperationRate there = rate_of(device, OperationKind::product, type().arithmetic);
    if (there.flops_per_second <= 0)
      throw Error(fmt::format("to: must be a type that {} computes in, got {}{}", device.name, to_,
                              device_that_computes(type().arithmetic)));
    KernelClasses classes(graph);
    const ServingGraph serving(graph);
    Tally tally;
    tally.factors.resize(graph.task_count(), 0);
    std::vector<TaskId> changed;
    if (!needs_wide_weights(graph)) {
      for (const TaskId id : where_.select(graph)) {
        Task& task = graph.task(id);
        if (!is_product(task, classes) || classes.of(task.name).narrow) continue;
        tally.factors[index(id)] = change(task, {device, there, serving}, classes, tally);
        if (tally.factors[index(id)] > 0) changed.push_back(id);
      }
    }
    name_narrow(graph, changed, to_);
    Effect effect = effect_of(device, there, tally);
    if (memory_) shrink_weights(graph, tally, effect);
    return effect;
  }

 private:
  /// Names a usual device that computes in this type; empty if none does.
  static std::string device_that_computes(Arithmetic arithmetic) {
    for (const char* name : {"h100-sxm5-80gb", "b200"}) {
      const OperationRate rate = rate_of(find_device(name), OperationKind::product, arithmetic);
      if (rate.flops_per_second > 0)
        return fmt::format("; for one that does, put faster_device:to={} before it", name);
    }
    return {};
  }

  struct Tally {
    std::size_t by_arithmetic = 0, by_memory = 0, slower = 0, unknown_shape = 0, changed = 0;
    std::size_t full = 0;  ///< Recorded in FP32 or TF32.
    Nanoseconds before{0}, after{0};
    std::vector<double>
        factors;     ///< How many times the bytes weights of a task take; 0: as before.
    double off = 0;  ///< Time times its typical error.
  };

  /// Where products run, and what they reach in the narrow type.
  struct Place {
    const DeviceModel& device;
    const OperationRate& there;
    const ServingGraph& serving;
  };

  const NarrowType& type() const {
    return *std::find_if(std::begin(kTypes), std::end(kTypes),
                         [&](const NarrowType& known) { return known.name == to_; });
  }

  static bool trains(const Graph& graph) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Phase phase = graph.task(TaskId{i}).phase;
      if (phase == Phase::backward || phase == Phase::update) return true;
    }
    return false;
  }

  bool needs_wide_weights(const Graph& graph) const {
    return type().arithmetic >= Arithmetic::int8 && trains(graph);
  }

  static bool is_product(const Task& task, KernelClasses& classes) {
    if (task.kind != TaskKind::kernel) return false;
    const std::string_view name = classes.name_of(task);
    return operation_of(classes.of(task.name), name) == OperationKind::product &&
           !contains_any(name, {"conv", "Conv", "cudnn", "wgrad", "dgrad", "fprop", "winograd"});
  }

  /// Returns how many times the bytes the weights of the product take.
  double change(Task& task, const Place& place, KernelClasses& classes, Tally& tally) const {
    const auto& [device, there, serving] = place;
    const Arithmetic recorded = arithmetic_of(classes.of(task.name), device);
    const OperationRate now = rate_of(device, OperationKind::product, recorded);
    if (now.flops_per_second <= 0) return 0;
    const bool reads_weights = serving.reads_weights(task, now);
    const bool by_arithmetic = !reads_weights && limited_by_arithmetic(task, now);
    const double wide = recorded == Arithmetic::half ? 2 : recorded == Arithmetic::fp64 ? 8 : 4;
    const Nanoseconds before = task.duration;
    const double bytes = type().weight_bytes / wide;
    task.duration = time_at(before, now, there, by_arithmetic, bytes, task.inner);
    ++(by_arithmetic ? tally.by_arithmetic : tally.by_memory);
    tally.unknown_shape += task.flops <= 0 && !reads_weights ? 1 : 0;
    tally.slower += task.duration > before ? 1 : 0;
    tally.full += recorded == Arithmetic::fp32 || recorded == Arithmetic::tf32 ? 1 : 0;
    tally.changed += task.duration != before ? 1 : 0;
    tally.before += before;
    tally.after += task.duration;
    tally.off += std::hypot(now.error, there.error) * static_cast<double>(before.count());
    return bytes;
  }

  Effect effect_of(const DeviceModel& device, const OperationRate& there,
                   const Tally& tally) const {
    Effect effect;
    effect.changed = tally.changed;
    effect.summary = fmt::format(
        "{} in {} on {} ({} by arithmetic, {} by their weights): {} instead of {}, {} slower than "
        "before",
        counted(tally.by_arithmetic + tally.by_memory, "product"), to_text(type().arithmetic),
        device.name, grouped(tally.by_arithmetic), grouped(tally.by_memory), to_text(tally.after),
        to_text(tally.before), grouped(tally.slower));
    if (tally.before > 0ns) {
      effect.times_error = {
          tally.off / static_cast<double>(tally.before.count()),
          fmt::format("rates of products in {} on {}", to_text(type().arithmetic), device.name)};
    }
    note_count(effect, Severity::warning,
               "products without recorded shapes, taken to be bound by arithmetic",
               tally.unknown_shape);
    if (type().arithmetic >= Arithmetic::int8_weights)
      note_count(effect, Severity::warning,
                 "products recorded in FP32, which compute in half precision then: most of the "
                 "gain may come from that, as amp shows",
                 tally.full);
    effect.figures.push_back({"products_slower", static_cast<double>(tally.slower)});
    effect.assumptions.push_back(
        "kernels of their own narrow the inputs of each product, as in TensorRT-LLM and vLLM");
    if (!there.of_family) {
      effect.assumptions.push_back(
          fmt::format("{} reaches in {} what other devices do, relative "
                      "to its peaks: it was not measured",
                      device.name, to_text(type().arithmetic)));
    }
    if (type().arithmetic >= Arithmetic::int8_weights)
      effect.doubts.emplace_back(
          "narrow weights alone need kernels made for them: those of PyTorch itself took 17 to 28 "
          "times as long on an H100");
    effect.assumptions.push_back("attention, convolutions and caches stay as they are");
    return effect;
  }

  /// A job that trains keeps wide weights, which the update changes.
  static void shrink_weights(Graph& graph, const Tally& tally, Effect& effect) {
    if (graph.allocations().empty()) return;
    std::vector<double> factors(graph.allocations().size(), 0);
    if (!trains(graph)) {
      for (const Access& access : graph.accesses()) {
        if (!access.writes && graph.allocations()[access.allocation].use == MemoryUse::parameter)
          factors[access.allocation] = tally.factors[index(access.task)];
      }
    }
    std::size_t shrunk = 0;
    for (std::uint32_t i = 0; i < factors.size(); ++i) {
      if (factors[i] <= 0 || factors[i] >= 1) continue;
      replace_block(graph, i, resized(graph.allocations()[i], factors[i], "to"));
      ++shrunk;
    }
    effect.summary += fmt::format("; {} of weights smaller", counted(shrunk, "block"));
    if (shrunk == 0) {
      effect.assumptions.push_back(
          trains(graph) ? "weights stay wide in memory, as the update changes them"
                        : "memory stays as recorded: which weights the products read is not known");
    }
    effect.changed += shrunk;
  }

  Selector where_{"kernel"};
  std::string to_ = "fp8";
  std::string device_;
  bool memory_ = true;
};

}  // namespace

TransformEntry quantize_entry() {
  return {.make = create<Quantize>,
          .assumes =
              "Matrix products take the time that products of their kind take in the narrow type, "
              "by fitted shares of the device's peak and bandwidth, with the kernels that narrow "
              "their inputs: large ones gain, small ones may get slower. Attention, convolutions "
              "and accuracy are not looked at."};
}

}  // namespace foretrace

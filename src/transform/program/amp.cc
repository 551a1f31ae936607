// Mixed precision: t' = t / 3 for kernels bound by arithmetic, t / 2 for those bound by memory
// (Daydream, USENIX ATC'20, on cards with tensor cores and models trained in FP32). With
// device_peaks, the peaks of the device decide about arithmetic instead:
//
//     t' = max(t * peak(now) / (efficiency * peak(half)), flops / peak(half))
//
// The paper's cards had half precision 8 times as fast as FP32. On devices with TF32 it is up to 28
// times as fast, and kernels take twice the ratio of the peaks where that is less than a third.
// They gain no more than that ratio on any known device.
//
// Autocast computes norms, softmax and losses in FP32, batch norms keep their statistics in it, and
// conversions of layout gain nothing from shorter rows: they take as long as before.
//
// Kernels bound by latency, such as messages between devices, take as long as before. So do those
// bound by memory where most of the arithmetic is in half precision: what they read and write is
// narrow then, and what autocast keeps in FP32 stays there. Autocast leaves double precision as it
// is, and does not exist for programs that use no framework.
//
// Where the shapes of ops were recorded, conversions are added, and kernels bound by memory gain on
// the part of what they move that would be in half precision (infer/device/autocast.cc). Launches
// of conversions are no reason for a longer step: in three trainings recorded with and without
// autocast the host took as long.
//
// Ignored: kernels that the framework would pick instead, and without shapes conversions other than
// those requested.

#include <algorithm>
#include <fmt/core.h>
#include <unordered_map>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/applies.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/memory/amp_memory.h"
#include "transform/program/amp_casts.h"

namespace foretrace {
namespace {

class Amp final : public Transform, public Retimes {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that run in half precision");
    fields.number("compute_factor", compute_factor_,
                  "Share of its time that a kernel bound by arithmetic takes (1/3 in the Daydream "
                  "paper)",
                  0);
    fields.number(
        "memory_factor", memory_factor_,
        "Share of its time that a kernel bound by memory takes (1/2 in the Daydream paper)", 0);
    fields.number(
        "tf32_factor", tf32_factor_,
        "Share of its time that a TF32 kernel on tensor cores takes (1/2: the ratio of the peaks)",
        0);
    fields.time("shortest", shortest_,
                "No kernel gets shorter than this (recalled: an empty kernel takes about 1us)",
                Nanoseconds(0));
    fields.flag("optimizer", optimizer_,
                "Also kernels of the update phase, which usually keep FP32 master weights");
    fields.flag("memory", memory_,
                "Blocks that autocast makes in half precision take half of their memory");
    fields.flag("device_peaks", device_peaks_,
                "Take the factors from the peaks of the device instead");
    fields.name_or_path("device", device_,
                        "For device_peaks: name of the device; empty: that of the job");
    fields.choice("precision", precision_, {"fp16", "bf16"},
                  "For device_peaks: the half-precision format");
    fields.number("efficiency", efficiency_,
                  "Share of their peak that kernels moved to tensor cores reach, "
                  "where others reach all of theirs (recalled: about a half)",
                  0.01, 1);
    fields.time(
        "cast_time", cast_time_,
        "Time of the conversions of weights that each forward pass starts with, in place of "
        "those that follow from the shapes of ops",
        Nanoseconds(0));
    fields.time("scaler_time", scaler_time_,
                "Time of a gradient scaler's kernels at the start of each update; with it the host "
                "waits for "
                "their result",
                Nanoseconds(0));
  }

  Applicability applies(const Graph& graph) const override {
    if (Applicability known = applies_to_frameworks(graph); known.share <= 0) return known;
    Kinds kinds(graph);
    Nanoseconds all{0}, half{0}, twice{0};
    for (const TaskId id : where_.select(graph)) {
      const Task& task = graph.task(id);
      const Gain gain = gains(task, kinds);
      if (gain == Gain::none || gain == Gain::update || gain == Gain::latency) continue;
      if (gain == Gain::full) continue;
      all += task.duration;
      if (gain == Gain::half) half += task.duration;
      if (gain == Gain::twice) twice += task.duration;
    }
    if (half + twice == Nanoseconds(0)) return {};
    return {
        .share = 1 - ratio(half + twice, all),
        .why_not = half >= twice
                       ? to_share(ratio(half, all)) +
                             " of the time of its kernels is in half precision already"
                       : to_share(ratio(twice, all)) +
                             " of the time of its kernels is in double precision, which autocast "
                             "leaves as it is"};
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const DeviceModel* const device = context.machine ? context.machine : recorded_device(graph);
    Factors factors = chosen_factors(usual_factors(device));
    if (device_peaks_) factors = from_peaks(device_for(graph, context, "device", device_));
    Tally tally;
    Kinds kinds(graph);
    std::vector<char> chosen(graph.task_count(), 0), half(graph.task_count(), 0);
    const bool only_memory = memory_ && !graph.allocations().empty() && has_no_kernel(graph);
    if (only_memory) chosen.assign(chosen.size(), 1);
    const auto kernels = only_memory ? std::vector<TaskId>() : where_.select_some(graph);
    std::vector<TaskId> narrowed;
    for (const TaskId task : kernels) {
      chosen[index(task)] = 1;
      half[index(task)] =
          graph.task(task).kind == TaskKind::kernel && kinds.in_half(graph.task(task));
      if (gains(graph.task(task), kinds) == Gain::faster) narrowed.push_back(task);
      speed_up(graph, task, kinds, factors, tally);
    }
    const auto is_converted = [&](TaskId task) {
      return chosen[index(task)] != 0 && half[index(task)] == 0 && !graph.removed(task);
    };
    if (cast_time_ > Nanoseconds(0)) {
      tally.added += add_casts_to_passes(graph, cast_time_);
    } else {
      tally.conversions = add_conversions(graph, context, is_converted);
      tally.added += tally.conversions.tasks;
    }
    if (scaler_time_ > Nanoseconds(0)) tally.added += add_gradient_scaler(graph, scaler_time_);
    if (!only_memory && tally.compute + tally.memory + tally.tf32 + tally.half + tally.update +
                                tally.latency + tally.full + tally.twice + tally.foreign ==
                            0) {
      throw Error(fmt::format("no kernel matches \"where\" ({})", where_.to_text()));
    }
    Effect effect = effect_of(tally, factors);
    if (!only_memory) note_half(kinds, effect);
    change_memory(graph, chosen, half, effect);
    name_narrow(graph, narrowed, "half");
    return effect;
  }

  const Retimes* retimes() const override { return this; }

  bool only_retimes(std::string_view setting) const override {
    // Added tasks go before the kernel that starts first, which depends on times.
    const bool adds = cast_time_ > Nanoseconds(0) || scaler_time_ > Nanoseconds(0);
    const bool is_factor =
        setting == "compute_factor" || setting == "memory_factor" || setting == "tf32_factor";
    return !adds && !device_peaks_ && (is_factor || setting == "shortest");
  }

  std::vector<RetimedTask> retimed(const Graph& graph) const override {
    Kinds kinds(graph);
    const Factors usual = usual_factors(recorded_device(graph));
    std::vector<RetimedTask> retimed;
    for (const TaskId id : where_.select(graph)) {
      const Task& task = graph.task(id);
      if (gains(task, kinds) != Gain::faster) continue;
      const Bound bound = bound_of(task, kinds);
      retimed.push_back(
          {.task = id,
           .kind = static_cast<std::uint32_t>(bound),
           .amount = bound == Bound::memory ? kinds.narrow_share(id) : usual.of(bound)});
    }
    return retimed;
  }

  void retime(std::span<const RetimedTask> tasks, std::span<const Nanoseconds> before,
              std::span<Nanoseconds> after) const override {
    Factors usual{};
    for (const RetimedTask& task : tasks) usual.of(static_cast<Bound>(task.kind)) = task.amount;
    const Factors factors = chosen_factors(usual);
    const Scaling by_bound[] = {Scaling(factors.of(Bound::memory)),
                                Scaling(factors.of(Bound::compute)),
                                Scaling(factors.of(Bound::tf32))};
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto bound = static_cast<Bound>(tasks[i].kind);
      if (bound == Bound::memory && tasks[i].amount < 1) {
        const double factor = factors.of(bound, tasks[i].amount);
        after[i] = no_shorter(scaled(before[i], factor), before[i], factor);
      } else {
        after[i] = no_shorter(by_bound[tasks[i].kind](before[i]), before[i], factors.of(bound));
      }
    }
  }

 private:
  enum class Bound : std::uint8_t { memory, compute, tf32 };
  enum class Gain : std::uint8_t { faster, none, update, half, latency, full, twice, foreign };

  struct Factors {
    double compute, memory, tf32;
    Throughput half;  ///< The peak no kernel exceeds; 0: unknown.

    /// The factor of a kernel that moves the share `narrow` of its bytes in half precision, which
    /// counts if memory bounds it.
    double of(Bound bound, double narrow = 1) const {
      if (bound == Bound::memory) return narrow < 1 ? 1 - narrow * (1 - memory) : memory;
      return bound == Bound::tf32 ? tf32 : compute;
    }
    double& of(Bound bound) {
      if (bound == Bound::memory) return memory;
      return bound == Bound::tf32 ? tf32 : compute;
    }
  };
  struct Kinds {
    explicit Kinds(const Graph& graph) : job(precision_of(graph)), classes(graph) {
      for (const AutocastWork& work : graph.autocast())
        if (work.narrow < 1) narrow.emplace(work.task, work.narrow);
    }

    bool in_half(const Task& task) {
      const KernelClass& kernel = classes.of(task.name);
      return kernel.half_precision || (kernel.bound == Boundness::memory && job.mostly_half());
    }
    bool in_double(const Task& task) {
      return classes.of(task.name).double_precision || job.mostly_double();
    }

    /// The share of what a kernel moves that would be in half precision.
    double narrow_share(TaskId task) const {
      const auto found = narrow.find(task);
      return found == narrow.end() ? 1 : found->second;
    }

    JobPrecision job;
    KernelClasses classes;
    std::unordered_map<TaskId, float> narrow;
  };
  struct Tally {
    std::size_t compute = 0, memory = 0, tf32 = 0;
    /// Left as they are, by reason.
    std::size_t half = 0, update = 0, latency = 0, full = 0, twice = 0, foreign = 0;
    std::size_t changed = 0, added = 0;
    std::size_t partly = 0;  ///< Bound by memory, with a part that stays in FP32.
    AddedConversions conversions;
  };

  /// Whether the graph has no device tasks, as in a snapshot of memory.
  static bool has_no_kernel(const Graph& graph) {
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      if (runs_on_device(graph.task(static_cast<TaskId>(i)).kind)) return false;
    }
    return true;
  }

  Factors from_peaks(const DeviceModel& device) const {
    const Throughput half = precision_ == "fp16" ? device.fp16 : device.bf16;
    if (half.flops_per_second <= 0) {
      throw Error(fmt::format("precision: must be one that {} can compute in, got {}", device.name,
                              precision_));
    }
    const auto ratio = [&](Throughput now, double efficiency) {
      return std::min(1.0, now.flops_per_second / (half.flops_per_second * efficiency));
    };
    const Throughput tf32 = device.tf32.flops_per_second > 0 ? device.tf32 : device.fp32;
    return {ratio(device.fp32, efficiency_), memory_factor_, ratio(tf32, 1), half};
  }

  /// The factors where none is set: those of the paper on a device of its kind, or nullptr.
  Factors usual_factors(const DeviceModel* device) const {
    Factors usual{kComputeFactor, memory_factor_, kTf32Factor, {}};
    if (device == nullptr) return usual;
    const double half = std::max(device->fp16, device->bf16).flops_per_second;
    const auto share = [&](Throughput now) {
      return half <= 0 ? 0 : std::min(1.0, now.flops_per_second / half);
    };
    const double least = share(device->fp32);
    if (device->tf32.flops_per_second > 0)
      usual.compute = std::min(usual.compute, least / efficiency_);
    usual.compute = std::max(usual.compute, least);
    usual.tf32 = std::max(usual.tf32, share(device->tf32));
    return usual;
  }

  /// `usual`, where no factor is set.
  Factors chosen_factors(const Factors& usual) const {
    return {compute_factor_ == kComputeFactor ? usual.compute : compute_factor_,
            memory_factor_,
            tf32_factor_ == kTf32Factor ? usual.tf32 : tf32_factor_,
            {}};
  }

  Gain gains(const Task& task, Kinds& kinds) const {
    if (task.kind != TaskKind::kernel) return Gain::none;
    if (task.phase == Phase::update && !optimizer_) return Gain::update;
    if (kinds.classes.of(task.name).bound == Boundness::latency) return Gain::latency;
    if (kinds.in_double(task)) return Gain::twice;
    if (!kinds.job.of_framework) return Gain::foreign;
    if (kinds.in_half(task)) return Gain::half;
    return kinds.classes.of(task.name).keeps_precision ? Gain::full : Gain::faster;
  }

  static Bound bound_of(const Task& task, Kinds& kinds) {
    const KernelClass& kernel = kinds.classes.of(task.name);
    if (kernel.bound != Boundness::compute) return Bound::memory;
    return kernel.tensor_cores ? Bound::tf32 : Bound::compute;
  }

  Nanoseconds no_shorter(Nanoseconds wanted, Nanoseconds before, double factor) const {
    return factor < 1 ? std::min(before, std::max(wanted, shortest_)) : wanted;
  }

  void speed_up(Graph& graph, TaskId id, Kinds& kinds, const Factors& factors, Tally& tally) const {
    Task& task = graph.task(id);
    const Gain gain = gains(task, kinds);
    if (gain == Gain::update) ++tally.update;
    if (gain == Gain::half) ++tally.half;
    if (gain == Gain::latency) ++tally.latency;
    if (gain == Gain::full) ++tally.full;
    if (gain == Gain::twice) ++tally.twice;
    if (gain == Gain::foreign) ++tally.foreign;
    if (gain != Gain::faster) return;
    const Bound bound = bound_of(task, kinds);
    ++(bound == Bound::memory ? tally.memory : bound == Bound::tf32 ? tally.tf32 : tally.compute);
    tally.partly += bound == Bound::memory && kinds.narrow_share(id) < 1 ? 1 : 0;
    Nanoseconds least{0};
    if (task.flops > 0 && factors.half.flops_per_second > 0) {
      const double seconds = task.flops / factors.half.flops_per_second;
      least = scaled(Nanoseconds(1'000'000'000), std::min(seconds, 1e6));
    }
    const double factor = factors.of(bound, kinds.narrow_share(id));
    const Nanoseconds wanted =
        no_shorter(std::max(scaled(task.duration, factor), least), task.duration, factor);
    if (wanted != task.duration) ++tally.changed;
    task.duration = wanted;
  }

  static void note_half(const Kinds& kinds, Effect& effect) {
    if (!kinds.job.mostly_half()) return;
    effect.notes.add(Severity::warning,
                     "most of the job's arithmetic is in half precision already, so kernels bound "
                     "by memory count as such, too",
                     to_share(kinds.job.half) + " of its time");
  }

  Effect effect_of(const Tally& tally, const Factors& factors) const {
    Effect effect;
    effect.changed = tally.changed + tally.added;
    effect.summary = fmt::format("{} bound by arithmetic at {}, {} bound by memory at {}",
                                 counted(tally.compute, "kernel"), to_fixed(factors.compute, 3),
                                 grouped(tally.memory), to_fixed(factors.memory, 3));
    if (tally.tf32 > 0) {
      effect.summary +=
          fmt::format(", {} in TF32 at {}", grouped(tally.tf32), to_fixed(factors.tf32, 3));
    }
    effect.summary += " of their time";
    if (tally.conversions.count > 0) {
      effect.summary +=
          fmt::format("; {} added, {} in all", counted(tally.conversions.count, "conversion"),
                      to_text(tally.conversions.time));
    } else if (tally.added == 0 && tally.compute + tally.tf32 > 0) {
      effect.notes.add(Severity::info, kNotCounted);
    }
    const auto note_unchanged = [&](std::string_view why, std::size_t count) {
      note_count(effect, Severity::info, why, count);
    };
    note_unchanged("kernels bound by memory that move a part in FP32", tally.partly);
    note_unchanged("kernels already in half precision, left as they are", tally.half);
    note_unchanged("kernels of the update phase, left in FP32", tally.update);
    note_unchanged("kernels bound by latency, left as they are", tally.latency);
    note_unchanged("norms, softmax, losses and conversions of layout, left as they are",
                   tally.full);
    note_unchanged("kernels in double precision, left as they are", tally.twice);
    note_unchanged("kernels of no known framework, left as they are", tally.foreign);
    effect.assumptions.push_back(
        device_peaks_ ? "kernels gain what the peaks of the device allow; "
                        "kernel names decide what bounds them"
                      : "kernels gain as in the Daydream paper (ATC'20), on newer devices more; "
                        "kernel names decide what bounds them");
    effect.assumptions.push_back("gradients are exchanged and weights updated in FP32");
    return effect;
  }

  static Bytes recorded_blocks_of_unknown_use(const Graph& graph) {
    Bytes sum{};
    for (const Allocation& block : graph.allocations()) {
      if (block.made_by != kNoTask && block.use == MemoryUse::unknown) sum += block.bytes;
    }
    return sum;
  }

  void change_memory(Graph& graph, const std::vector<char>& chosen, const std::vector<char>& half,
                     Effect& effect) const {
    HalvedMemory halved;
    if (memory_ && !graph.allocations().empty()) halved = halve_memory(graph, chosen, half);
    if (halved.blocks == 0) {
      effect.assumptions.push_back("memory use stays as recorded, though activations would shrink");
      // Without ops, no block shows its use; at most all of them shrink.
      const Bytes unknown = recorded_blocks_of_unknown_use(graph);
      if (memory_ && unknown > Bytes{}) effect.figures.push_back({"not_halved", unknown});
      return;
    }
    effect.changed += halved.blocks + halved.casts;
    if (graph.accesses().empty()) {
      effect.assumptions.push_back(
          "it is unknown which op uses which block: ops that autocast does not name are assumed to "
          "read what was made just before them");
    }
    effect.summary +=
        fmt::format("; {} of memory from {} to {} in all", counted(halved.blocks, "block"),
                    to_text(halved.before), to_text(halved.after));
    effect.figures.push_back({"halved_before", halved.before});
    effect.figures.push_back({"halved_after", halved.after});
    effect.figures.push_back({"weight_casts", halved.weight_casts});
    effect.assumptions.push_back(
        "autocast's published lists of ops decide which blocks are made in half precision; casts "
        "of weights are kept until the backward pass has used them");
    if (halved.weight_casts > Bytes{} || halved.unknown == Bytes{}) return;
    effect.figures.push_back({"weight_casts_at_most", Bytes{halved.unknown.count / 2}});
    effect.notes.add(
        Severity::info,
        "casts of weights are not counted, because the trace does not show which memory from "
        "before the recording holds weights; up to half of it would be added",
        to_text(halved.unknown));
  }

  /// In four trainings on an H100 (traces/ground_truth.json); see docs/accuracy.md.
  static constexpr std::string_view kNotCounted =
      "conversions are not counted, because the shapes of ops were not recorded "
      "(record_shapes=True) or the device is not known; without them four trainings were predicted "
      "9 to 26 % too fast";

  Selector where_{"kernel"};
  static constexpr double kComputeFactor = 1.0 / 3, kTf32Factor = 0.5;

  double compute_factor_ = kComputeFactor;
  double memory_factor_ = 0.5;
  double tf32_factor_ = kTf32Factor;
  Nanoseconds shortest_ = 1us;
  bool optimizer_ = false;
  bool memory_ = true;
  bool device_peaks_ = false;
  std::string device_;
  std::string precision_ = "fp16";
  double efficiency_ = 0.5;
  Nanoseconds cast_time_{0};
  Nanoseconds scaler_time_{0};
};

}  // namespace

TransformEntry amp_entry() {
  return {
      .make = create<Amp>,
      .assumes =
          "Kernels bound by arithmetic take a third of their time and kernels bound by memory "
          "half of it, as in the Daydream paper (USENIX ATC'20); on devices with TF32, arithmetic "
          "takes twice the ratio of the peaks if that is less, and nowhere less than the ratio; "
          "with device_peaks the device's data sheet decides. The name of a kernel decides what "
          "bounds it. Kernels already in half precision or in double precision, those of no known "
          "framework, those bound by latency, norms, softmax, losses, conversions of layout, the "
          "update of FP32 weights, copies, collectives and host work stay as they are; so do "
          "kernels bound by memory where half or more of the time of arithmetic is in half "
          "precision. Where the shapes of ops were recorded, kernels bound by memory gain on the "
          "part that autocast's published lists of ops make narrow, and the conversions that "
          "follow from these lists are added. Where the trace records memory, blocks made in half "
          "precision by these lists take half of it, and casts of weights are kept until the "
          "backward pass has used them. Launches of conversions are free, and so are a gradient "
          "scaler and, without shapes, conversions unless their time is given.",
      .advice = {.goal = Goal::time, .tries = {"amp"}, .applies_to = {"precision"}}};
}

}  // namespace foretrace

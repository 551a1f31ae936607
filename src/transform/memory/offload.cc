// Keeps blocks in host memory instead of on the device while they are unused:
//
//     stream    |A...P......B|     a block that A and B use, and that takes room at P
//     swap out  |.oooo.......|     size / bandwidth
//     swap in   |.......iiii.|     size / bandwidth
//
// A plan moves blocks by access interval (Capuchin, ASPLOS 2020; AutoSwap, arXiv 1903.06631), or
// the inputs of all layers, of convolutions, or of as few as make the rest fit (vDNN, MICRO 2016).
// The copies go over the host link, one at a time in each direction.
//
// Ignored: the limit of host memory, the memory bandwidth that copies take from kernels, and pages
// that are not pinned.

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/device_change.h"
#include "transform/edit/registered.h"
#include "transform/memory/swap.h"

namespace foretrace {
namespace {

class Offload final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.choice("policy", policy_, {"interval", "all", "conv", "dyn"},
                  "interval: blocks unused for long; all, conv: inputs of all layers, or of "
                  "convolutions, on their way to the backward pass (vDNN); dyn: none, conv or all, "
                  "the first that fits the target");
    fields.object("where", where_, "The blocks that may leave");
    fields.bytes("min_bytes", min_bytes_, "Smaller blocks stay");
    fields.choice("hide", hide_, {"only", "allow"},
                  "interval: only copies that nothing waits for or, if the peak is still too high, "
                  "also copies that delay work");
    fields.choice("score", score_, {"swdoa", "wdoa", "aoa", "doa"},
                  "interval: the rule by which AutoSwap picks the next block");
    fields.bytes("target", target_,
                 "Go on until the peak is at most this; 0B: as far as possible; for dyn, 0B: the "
                 "memory of the device");
    fields.bytes("saved_bytes", saved_bytes_,
                 "interval: go on until the peak is lower by this much; 0B: as far as possible");
    fields.number("share", share_,
                  "interval: go on until the peak is lower by this share; 0: as far as possible", 0,
                  1);
    fields.bandwidth(
        "host_bandwidth", host_bandwidth_,
        "Bandwidth from the device to pinned host memory; 0B/s: that of the recorded device");
    fields.bandwidth("back_bandwidth", back_bandwidth_,
                     "Bandwidth from pinned host memory to the device; 0B/s: as the other way");
    fields.flag("shared_link", shared_link_,
                "Two devices share the link, and each has half of its bandwidth");
    fields.time("call_time", call_time_,
                "Host time of each call that issues a copy (recalled: cudaMemcpyAsync takes about "
                "5us); 0ns: the program's own",
                Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const SwapLink link = find_link(graph, context);
    where_.select_some(graph);
    if (graph.accesses().empty()) {
      throw Error(
          "policy: needs to know which tasks use which blocks, which this trace does not show");
    }
    const Timeline timeline = simulate(graph, {.memory = false});
    const Launches launches(graph);
    const Baseline baseline{peak_memory(graph, timeline), step_times(graph, timeline).step_time};
    if (policy_ == "dyn")
      return choose(graph, timeline, launches, link, baseline, memory_limit(graph, context));
    const SwapPlan plan = make_plan(graph, timeline, launches, link, policy_);
    return apply_plan(graph, timeline, launches, link, plan, baseline).effect;
  }

 private:
  struct OffloadResult {
    Effect effect;
    Bytes peak{};
  };
  struct Baseline {
    Bytes peak{};
    Nanoseconds step_time{};
  };

  SwapLink find_link(const Graph& graph, const Context& context) const {
    SwapLink link{host_bandwidth_, back_bandwidth_};
    if (link.out.bytes_per_second <= 0) {
      link.out = device_for(graph, context, "host_bandwidth", "").host_link;
      if (link.out.bytes_per_second <= 0)
        throw Error("host_bandwidth: must be given, as that of the device is unknown");
    }
    if (link.in.bytes_per_second <= 0) link.in = link.out;
    if (shared_link_) link.out.bytes_per_second /= 2, link.in.bytes_per_second /= 2;
    return link;
  }

  SwapPlan make_plan(const Graph& graph, const Timeline& timeline, const Launches& launches,
                     const SwapLink& link, const std::string& policy) const {
    if (policy == "interval") {
      return plan_by_interval(graph, timeline, launches, link,
                              {.where = where_,
                               .score = score_,
                               .min_bytes = min_bytes_,
                               .hidden_only = hide_ == "only",
                               .saved_bytes = saved_bytes_,
                               .share = share_,
                               .target = target_});
    }
    SwapPlan plan = plan_by_layer(graph, timeline, policy == "conv", min_bytes_, where_);
    if (plan.considered == 0) {
      throw Error(
          fmt::format("policy: \"{}\" finds no block of at least {} that the forward pass leaves "
                      "for the backward pass{}",
                      policy, to_text(min_bytes_),
                      knows_passes(graph) ? "" : "; the phases of this trace are unknown"));
    }
    if (plan.swaps.empty() && policy_ == "conv") {
      throw Error(
          fmt::format("policy: \"conv\" finds no convolution that takes one of {}; \"all\" takes "
                      "the inputs of every layer",
                      counted(plan.considered, "block")));
    }
    return plan;
  }

  static bool knows_passes(const Graph& graph) {
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      if (graph.task(static_cast<TaskId>(i)).phase == Phase::backward) return true;
    }
    return false;
  }

  /// Applies the first of none, conv and all that fits `limit`, which it tries on copies of the
  /// graph; all if none fits.
  Effect choose(Graph& graph, const Timeline& timeline, const Launches& launches,
                const SwapLink& link, const Baseline& baseline, Bytes limit) const {
    std::string chosen = "none";
    Effect effect;
    effect.figures = figures(baseline, baseline.peak, baseline.step_time, {});
    Bytes peak = baseline.peak;
    if (peak > limit) {
      for (const char* policy : {"conv", "all"}) {
        chosen = policy;
        const SwapPlan plan = make_plan(graph, timeline, launches, link, policy);
        Graph trial = graph.clone();
        OffloadResult result = apply_plan(trial, timeline, launches, link, plan, baseline);
        effect = std::move(result.effect);
        peak = result.peak;
        if (peak > limit && chosen != "all") continue;
        graph = std::move(trial);
        break;
      }
    }
    if (peak > limit) {
      effect.notes.add(
          Severity::warning,
          fmt::format("no choice of layers fits {}; the inputs of all leave", to_text(limit)));
    }
    effect.summary = fmt::format("vDNN chooses {} to fit {}{}{}", chosen, to_text(limit),
                                 effect.summary.empty() ? "" : ": ", effect.summary);
    return effect;
  }

  Bytes memory_limit(const Graph& graph, const Context& context) const {
    if (target_ > Bytes{}) return target_;
    const Bytes memory = device_for(graph, context, "target", "").memory;
    if (memory <= Bytes{}) throw Error("target: must be given, as the device's memory is unknown");
    return memory;
  }

  OffloadResult apply_plan(Graph& graph, const Timeline& timeline, const Launches& launches,
                           const SwapLink& link, const SwapPlan& plan,
                           const Baseline& baseline) const {
    Timeline after;
    const SwapOutcome outcome =
        apply_swaps(graph, timeline, launches, link, plan, call_time_, after);
    const Bytes peak = peak_memory(graph, after);
    const Nanoseconds step_time = step_times(graph, after).step_time;
    Effect effect;
    effect.changed = plan.swaps.size();
    effect.summary = fmt::format("{} of blocks to the host and back, {} each way; peak {} -> {}",
                                 counted(plan.swaps.size(), "trip"), to_text(outcome.offloaded),
                                 to_text(baseline.peak), to_text(peak));
    if (plan.swaps.empty()) {
      effect.notes.add(Severity::info, empty_plan_reason(baseline, plan));
    }
    effect.figures = figures(baseline, peak, step_time, outcome);
    if (policy_ == "interval") {
      effect.figures.push_back({"waits", static_cast<double>(plan.considered)});
      effect.figures.push_back({"hideable_waits", static_cast<double>(plan.hideable)});
    }
    effect.assumptions.push_back(fmt::format(
        "copies run at {} out and {} in, one at a time each way, and slow no kernel down",
        to_text(link.out), to_text(link.in)));
    effect.assumptions.push_back(fmt::format(
        "the host has {} of pinned memory for offloaded blocks", to_text(outcome.host_memory)));
    if (call_time_ == 0ns && !plan.swaps.empty())
      effect.assumptions.push_back("the calls that issue the copies take no time (call_time)");
    if (target_ > Bytes{} && peak > target_) {
      effect.notes.add(
          Severity::warning, "offload does not reach its target",
          fmt::format("the peak is {}, the target is {}", to_text(peak), to_text(target_)));
    }
    return {std::move(effect), peak};
  }

  std::string empty_plan_reason(const Baseline& baseline, const SwapPlan& plan) const {
    if (target_ > Bytes{} && baseline.peak <= target_)
      return "the peak is below the target already";
    if (plan.considered == 0) return "no block is used twice";
    return fmt::format(
        "no block of at least {} is unused at the peak for long enough to leave and come back",
        to_text(min_bytes_));
  }

  static std::vector<Figure> figures(const Baseline& baseline, Bytes peak, Nanoseconds step_time,
                                     const SwapOutcome& outcome) {
    return {{"offloaded_bytes", outcome.offloaded},
            {"saved_at_peak", baseline.peak - peak},
            {"peak_before", baseline.peak},
            {"peak_after", peak},
            {"hidden_copies", static_cast<double>(outcome.copies - outcome.late)},
            {"late_copies", static_cast<double>(outcome.late)},
            {"added_time", step_time - baseline.step_time},
            {"host_memory", outcome.host_memory}};
  }

  std::string policy_ = "interval";
  AllocationSelector where_;
  Bytes min_bytes_{1'000'000};
  std::string hide_ = "only";
  std::string score_ = "swdoa";
  Bytes target_{};
  Bytes saved_bytes_{};
  double share_ = 0;
  Bandwidth host_bandwidth_{};
  Bandwidth back_bandwidth_{};
  bool shared_link_ = false;
  Nanoseconds call_time_{0};
};

}  // namespace

TransformEntry offload_entry() {
  return {.make = create<Offload>,
          .assumes =
              "A block leaves after the last access before a long wait and is back before the next "
              "one; in between its memory is free. Copies go over the link to pinned host memory, "
              "one at a time in each direction, beside kernels that they do not slow down. Copies "
              "of the trace itself come first. Where a host thread calls the allocator, memory is "
              "freed in the order of its calls, as by an allocator that follows streams: the first "
              "kernel that may use the memory waits for the copy. With policy interval, the copy "
              "in starts when the last task before it must is done. With the policies of vDNN, the "
              "stream and the copies wait for each other at the end of every layer.",
          .advice = {.goal = Goal::memory, .tries = {"offload"}, .applies_to = {"activations"}}};
}

}  // namespace foretrace

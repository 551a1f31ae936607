// Decodes more or fewer sequences in a step:
//
//     products    max(weights, arithmetic): as long as before, until arithmetic takes longer
//     attention   start + (t - start) * f        each sequence has a cache of its own
//     experts     as many weights as the distinct experts of all tokens,
//                 D = E (1 - (1 - k/E)^T)
//     the rest    start + (t - start) * f
//
// with f sequences for each one recorded. Ignored: graphs of other sizes, the host's work for each
// sequence, and whether the cache holds them (`serve`).

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

class ServingBatch final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("to", to_, "Sequences that a step decodes", 1, 1'000'000);
    fields.integer("experts", experts_, "Experts of a layer, if the model has some", 0, 100'000);
    fields.integer("top_k", top_k_, "Experts that a token uses", 0, 1000);
    fields.name_or_path("device", device_, "Name of the device; empty: that of the job");
  }

  Applicability applies(const Graph& graph) const override {
    return ServingGraph(graph).applies_to_decoding(
        [](const Task& task) { return runs_on_device(task.kind); }, "device work",
        "which stay as they are");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const DeviceModel device = device_for(graph, context, "device", device_);
    const ServingGraph serving(graph);
    KernelClasses classes(graph);
    Tally tally;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      Task& task = graph.task(TaskId{i});
      const ServingStep* const step = serving.decoding(task);
      if (graph.removed(TaskId{i}) || step == nullptr || !runs_on_device(task.kind)) continue;
      const Nanoseconds wanted = grown(task, *step, serving, classes, device, tally);
      tally.before += task.duration, tally.after += wanted;
      ++tally.tasks;
      tally.changed += wanted != task.duration ? 1 : 0;
      tally.greatest = std::max(tally.greatest, factor_for(*step));
      task.duration = wanted;
    }
    if (tally.tasks == 0)
      throw Error(serving.serves() ? "no step only decodes" : std::string(kNoServingSteps));
    return effect_of(device, tally);
  }

 private:
  struct Tally {
    std::size_t tasks = 0, changed = 0, unknown_shape = 0, collectives = 0;
    Nanoseconds before{0}, after{0};
    double greatest = 0;
  };

  double factor_for(const ServingStep& step) const {
    return static_cast<double>(to_) / static_cast<double>(step.sequences);
  }

  double distinct_experts(double tokens) const {
    const auto all = static_cast<double>(experts_);
    return all * (1 - std::pow(1 - static_cast<double>(top_k_) / all, tokens));
  }

  Nanoseconds grown(const Task& task, const ServingStep& step, const ServingGraph& serving,
                    KernelClasses& classes, const DeviceModel& device, Tally& tally) const {
    const double factor = factor_for(step);
    if (serving.is_attention(task)) return with_cache_bytes(task.duration, device, factor);
    if (serving.runs_experts(task)) {
      if (experts_ < 1 || top_k_ < 1 || top_k_ > experts_)
        throw Error(
            "experts: must be given together with top_k, as the job runs experts, and how many of "
            "them a step reads depends on both");
      const auto now = static_cast<double>(step.sequences);
      return scaled(task.duration, distinct_experts(now * factor) / distinct_experts(now));
    }
    if (communicates(task.kind)) ++tally.collectives;
    const std::string_view name = classes.name_of(task);
    const bool is_product = task.kind == TaskKind::kernel &&
                            operation_of(classes.of(task.name), name) == OperationKind::product;
    if (is_product) return product(task, step, classes, device, tally);
    const OperationRate rate = rate_of(device, OperationKind::stream, Arithmetic::half);
    return time_at(task.duration, rate, rate, false, factor);
  }

  /// Reading weights takes as long for any batch; arithmetic follows it.
  Nanoseconds product(const Task& task, const ServingStep& step, KernelClasses& classes,
                      const DeviceModel& device, Tally& tally) const {
    const OperationRate rate =
        rate_of(device, OperationKind::product, arithmetic_of(classes.of(task.name), device));
    if (rate.flops_per_second <= 0) return task.duration;
    const auto now = static_cast<double>(step.sequences);
    double tokens = rate.flops_per_second / rate.bytes_per_second;  // Weights of 2 bytes.
    if (task.flops > 0) {
      const double seconds = static_cast<double>((task.duration - rate.start).count()) * 1e-9;
      tokens = std::max(seconds, 1e-9) * rate.flops_per_second / task.flops * now;
    } else {
      ++tally.unknown_shape;
    }
    const double growth =
        std::max(1.0, now * factor_for(step) / tokens) / std::max(1.0, now / tokens);
    return time_at(task.duration, rate, rate, false, growth);
  }

  Effect effect_of(const DeviceModel& device, const Tally& tally) const {
    Effect effect;
    effect.changed = tally.changed;
    effect.summary =
        fmt::format("{} in a step that decodes: device work of {} instead of {}",
                    counted(to_, "sequence"), to_text(tally.after), to_text(tally.before));
    effect.times_error = {rate_of(device, OperationKind::decode, Arithmetic::half).error,
                          fmt::format("times of decoding on {}", device.name)};
    note_count(effect, Severity::warning,
               "products without recorded shapes, taken to read weights of 16 bits",
               tally.unknown_shape);
    effect.assumptions = {
        "the cache holds the sequences, which are as long as those recorded; graphs of this size "
        "are captured; the host takes as long as before"};
    if (tally.greatest > 4)
      effect.doubts.push_back(fmt::format("steps decode {} times as many sequences as recorded",
                                          to_text(tally.greatest)));
    if (tally.collectives > 0)
      effect.doubts.emplace_back(
          "collectives are taken to last in proportion to the tokens, beyond a kernel's start");
    return effect;
  }

  std::int64_t to_ = 64, experts_ = 0, top_k_ = 0;
  std::string device_;
};

}  // namespace

TransformEntry serving_batch_entry() {
  return {.make = create<ServingBatch>,
          .assumes =
              "Steps that only decode have so many sequences. Products take the time to read their "
              "weights until arithmetic takes longer; attention follows the sequences, which each "
              "have a cache; experts, the number of distinct ones that all tokens use. Steps are "
              "told by the names that engines give them; those that compute prompts stay, and so "
              "does the host.",
          .advice = {.why_not = "a different load: serving_batch:to=64, and serve for the latency "
                                "and throughput that follow"}};
}

}  // namespace foretrace

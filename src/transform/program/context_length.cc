// Sequences that are decoded have a longer or shorter past. Attention of a step that only decodes
// reads the keys and values of all of it:
//
//     t' = start + (t - start) * positions' / positions
//
// Ignored: windows and linear attention, whose cache has a bound, and other splits of the work that
// kernels choose for other lengths.

#include <algorithm>
#include <fmt/core.h>
#include <optional>

#include "base/wording.h"
#include "foretrace/error.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

class ContextLength final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.number("factor", factor_, "Positions of the past for each one recorded", 1e-3, 1e3);
    fields.optional_integer("to", to_,
                            "Positions of each sequence, instead of factor; needs steps whose "
                            "names tell the recorded ones",
                            1);
    fields.name_or_path("device", device_, "Name of the device; empty: that of the job");
  }

  Applicability applies(const Graph& graph) const override {
    return ServingGraph(graph).applies_to_decode_attention();
  }

  Effect apply(Graph& graph, const Context& context) const override {
    if (to_ && factor_ != 1) throw Error("factor: cannot be given together with to");
    const DeviceModel device = device_for(graph, context, "device", device_);
    const ServingGraph serving(graph);
    const std::vector<TaskId> attention = serving.decode_attention();
    Nanoseconds before{0}, after{0};
    Effect effect;
    double greatest = 0;
    for (const TaskId id : attention) {
      Task& task = graph.task(id);
      const double factor = factor_for(*serving.decoding(task));
      greatest = std::max(greatest, factor);
      const Nanoseconds wanted = with_cache_bytes(task.duration, device, factor);
      before += task.duration, after += wanted;
      effect.changed += wanted != task.duration ? 1 : 0;
      task.duration = wanted;
    }
    effect.summary =
        fmt::format("{} of attention over other lengths: {} instead of {}",
                    counted(attention.size(), "kernel"), to_text(after), to_text(before));
    effect.times_error = {rate_of(device, OperationKind::decode, Arithmetic::half).error,
                          fmt::format("times of attention over a cache on {}", device.name)};
    effect.assumptions = {
        "all layers attend to the whole past; products, prompts and the host stay"};
    if (greatest > kFar)
      effect.doubts.push_back(fmt::format(
          "contexts are {} times as long as recorded: kernels split such work in other ways",
          to_text(greatest)));
    return effect;
  }

 private:
  static constexpr double kFar = 4;  ///< Chosen.

  double factor_for(const ServingStep& step) const {
    if (!to_) return factor_;
    if (step.context <= 0)
      throw Error(
          "to: must have a recorded length to compare with, which names of steps tell only with "
          "vLLM's --profiler-config.detailed_trace_annotation; give factor instead");
    return static_cast<double>(*to_) * static_cast<double>(step.sequences) /
           static_cast<double>(step.context);
  }

  double factor_ = 1;
  std::optional<std::int64_t> to_;
  std::string device_;
};

}  // namespace

TransformEntry context_length_entry() {
  return {.make = create<ContextLength>,
          .assumes =
              "In steps that only decode, kernels of attention take their start plus time in "
              "proportion to the positions that they read. Steps are told by the names that "
              "engines give them. Layers with a window, whose cache has a bound, are taken to "
              "attend to all positions.",
          .advice = {.why_not = "a different workload: you choose the length of the context"}};
}

}  // namespace foretrace

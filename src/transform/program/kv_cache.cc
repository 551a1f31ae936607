// Keeps keys and values of served sequences in a narrower type. Attention of a step that only
// decodes reads each sequence's cache once, which is nearly all that it moves:
//
//     t' = start + (t - start) * bytes' / bytes
//
// Ignored: the narrowing where keys and values are stored, accuracy, and that a smaller cache holds
// more sequences (serving_batch).

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/program/serving_graph.h"

namespace foretrace {
namespace {

class KvCache final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.choice("to", to_, {"fp8", "nvfp4"}, "Type of keys and values, recorded in 16 bits");
    fields.name_or_path("device", device_, "Name of the device; empty: that of the job");
  }

  Applicability applies(const Graph& graph) const override {
    const ServingGraph serving(graph);
    if (serving.has_narrow_cache())
      return {.share = 0, .why_not = "the cache of keys and values is in 8 bits already"};
    return serving.applies_to_decode_attention();
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const DeviceModel device = device_for(graph, context, "device", device_);
    const Arithmetic type = to_ == "fp8" ? Arithmetic::fp8 : Arithmetic::nvfp4;
    if (peak_of(device, type).flops_per_second <= 0)
      throw Error(fmt::format("to: must be a type that {} has, got {}", device.name, to_));
    const ServingGraph serving(graph);
    const std::vector<TaskId> attention = serving.decode_attention();
    Effect effect;
    if (serving.has_narrow_cache()) {
      effect.summary = "the cache is in 8 bits already";
      return effect;
    }
    const double factor = (to_ == "fp8" ? 1.0 : 0.5625) / 2;
    effect = change_durations(graph, attention, [&](Nanoseconds duration) {
      return with_cache_bytes(duration, device, factor);
    });
    effect.summary =
        fmt::format("attention reads {} times the bytes: {}", to_text(factor), effect.summary);
    effect.times_error = {rate_of(device, OperationKind::decode, Arithmetic::half).error,
                          fmt::format("times of attention over a cache on {}", device.name)};
    effect.assumptions = {
        "the recorded cache is in 16 bits, and attention of steps that only decode is bound by "
        "reading it; prompts, products and the host take as long as before"};
    effect.doubts.emplace_back(
        "kernels of attention over a narrow cache are other ones, whose share of the bandwidth was "
        "not measured");
    return effect;
  }

 private:
  std::string to_ = "fp8", device_;
};

}  // namespace

TransformEntry kv_cache_entry() {
  return {.make = create<KvCache>,
          .assumes =
              "In steps that only decode, kernels of attention take their start plus time in "
              "proportion to the bytes of keys and values. Steps are told by the names that vLLM, "
              "SGLang and TensorRT-LLM give them. Steps that compute prompts stay, and so do "
              "accuracy and the number of sequences that fit.",
          .advice = {.why_not = "it changes the model's accuracy: kv_cache:to=fp8"}};
}

}  // namespace foretrace

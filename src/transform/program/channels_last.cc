// Tensors stay in the layout of tensor cores (NHWC), so no kernel converts them around each
// convolution:
//
//     stream |nnccccmm nnccccmm|  ->  |nncccccccc|     n to NHWC, c convolution, m back
//
// Convolutions without conversions stay as they are, unless a factor is given for those in half
// precision or TF32 whose names do not contain NHWC. Ignored: other kernels that pooling and
// normalization use in the other layout.

#include <fmt/core.h>

#include "base/contains.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class ChannelsLast final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that may change");
    fields.text("conversions", conversions_, "Names of kernels that convert layouts");
    fields.flag(
        "convert_input", convert_input_,
        "Keep the first conversion of each step, because the input arrives in the old layout");
    fields.number("factor", factor_,
                  "Share of its time that a convolution takes that is on tensor cores and not in "
                  "NHWC yet (recalled: whole models gained 8 % to 35 %, conversions included; 1: "
                  "unchanged)",
                  0);
    fields.name_or_path("device", device_,
                        "For factor: name of the device; empty: that of the job");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    std::vector<TaskId> conversions = conversions_among(graph, tasks);
    const std::vector<TaskId> convolutions =
        factor_ == 1 ? Group() : gaining(graph, context, tasks);
    if (conversions.empty() && convolutions.empty()) throw Error(nothing_to_change());
    std::size_t kept = 0;
    if (convert_input_) kept = keep_first(graph, conversions);
    const Nanoseconds saved = total_duration(graph, conversions);
    Effect effect =
        change_durations(graph, convolutions, [&](Nanoseconds t) { return scaled(t, factor_); });
    const Launches launches(graph);
    for (const TaskId task : conversions) graph.remove(task);
    const std::size_t calls = remove_launches_of(graph, launches, conversions);
    effect.changed += conversions.size() + calls;
    effect.summary =
        fmt::format("{} of layouts ({}) gone, {} fewer", counted(conversions.size(), "conversion"),
                    to_text(saved), counted(calls, "launch call"));
    if (factor_ != 1) {
      effect.summary +=
          fmt::format(", {} at {} of their time", counted(convolutions.size(), "convolution"),
                      to_fixed(factor_, 3));
    }
    effect.figures.push_back({"conversions_gone", static_cast<double>(conversions.size())});
    effect.figures.push_back({"conversion_time", saved});
    effect.figures.push_back({"convolutions_faster", static_cast<double>(convolutions.size())});
    effect.assumptions.push_back("weights and activations stay in NHWC from one layer to the next");
    if (kept > 0) {
      effect.assumptions.push_back(fmt::format(
          "the input of each step is still converted, once ({} kept)", counted(kept, "kernel")));
    }
    return effect;
  }

 private:
  std::vector<TaskId> conversions_among(const Graph& graph,
                                        const std::vector<TaskId>& tasks) const {
    if (conversions_.empty()) throw Error("conversions: must be a part of a kernel's name");
    NameCondition matches =
        within("conversions", [&] { return NameCondition(conversions_, graph.names()); });
    std::vector<TaskId> found;
    for (const TaskId id : tasks) {
      const Task& task = graph.task(id);
      if (task.kind == TaskKind::kernel && matches(task.name)) found.push_back(id);
    }
    return found;
  }

  /// Returns the convolutions in half precision or TF32 that run on tensor cores and are not in
  /// NHWC yet.
  std::vector<TaskId> gaining(const Graph& graph, const Context& context,
                              const std::vector<TaskId>& tasks) const {
    const DeviceModel device = device_for(graph, context, "device", device_);
    const bool half_cores = device.fp16.flops_per_second > 2 * device.fp32.flops_per_second;
    const bool tf32_cores = device.tf32.flops_per_second > 0;
    KernelClasses classes(graph);
    std::vector<TaskId> found;
    for (const TaskId id : tasks) {
      const Task& task = graph.task(id);
      const KernelClass& kernel = classes.of(task.name);
      if (task.kind != TaskKind::kernel || kernel.bound != Boundness::compute) continue;
      const bool cores = kernel.half_precision ? half_cores : kernel.tensor_cores && tf32_cores;
      if (cores && is_convolution(graph.name(id))) found.push_back(id);
    }
    return found;
  }

  static bool is_convolution(std::string_view name) {
    return contains_any(name, {"cudnn", "conv", "wgrad", "dgrad", "fprop", "Conv"}) &&
           !contains_any(name, {"nhwc", "NHWC"});
  }

  static std::size_t keep_first(const Graph& graph, std::vector<TaskId>& conversions) {
    std::vector<TaskId> order = conversions;
    sort_by_start(order, simulate(graph, {.memory = false}).start);
    std::vector<char> first(graph.task_count(), 0);
    const std::vector<TaskId> kept = first_of_each_step(graph, order);
    for (const TaskId task : kept) first[index(task)] = 1;
    std::erase_if(conversions, [&](TaskId task) { return first[index(task)] != 0; });
    return kept.size();
  }

  std::string nothing_to_change() const {
    const std::string where = fmt::format("no kernel of \"where\" ({})", where_.to_text());
    if (factor_ == 1) {
      return fmt::format(
          "conversions: {} has a name like \"{}\"; without conversions only \"factor\" gains "
          "anything",
          where, conversions_);
    }
    return fmt::format("factor: {} converts layouts or is a convolution that could gain", where);
  }

  Selector where_{"kernel"};
  std::string conversions_ = "/nchwTo[Nn]hwc|nhwcTo[Nn]chw|NCHWToNHWC|NHWCToNCHW/";
  bool convert_input_ = true;
  double factor_ = 1;
  std::string device_;
};

}  // namespace

TransformEntry channels_last_entry() {
  return {.make = create<ChannelsLast>,
          .assumes =
              "Kernels that convert layouts around convolutions go away with their launches; the "
              "first of each step stays for the input. Convolutions take as long as before, unless "
              "a factor is given: then it applies to those in half precision or TF32, on devices "
              "with tensor cores and where their name does not say NHWC. Pooling and normalization "
              "are assumed to be as fast in either layout.",
          .advice = {.goal = Goal::time, .tries = {"channels_last"}, .applies_to = {"layout"}}};
}

}  // namespace foretrace

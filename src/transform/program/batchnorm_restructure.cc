// Splits each batch normalization in two and joins the halves with their neighbours (Jung et al.,
// Restructuring Batch Normalization to Accelerate CNN Training, SysML 2019), as Daydream models it
// (USENIX ATC'20): adjacent activations are no longer kernels of their own, and the normalizations
// move fewer bytes,
//
//     t' = t * factor
//
//     stream |ccccbbbbrrcccc|  ->  |ccccbbcccc|     c convolution, b batch norm, r ReLU
//
// Ignored: the additional time of the convolutions, which is why predictions are optimistic: 12.7 %
// on DenseNet-121 where 7 % were measured.

#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class BatchnormRestructure final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that may change");
    fields.text("norms", norms_, "Names of batch normalizations");
    fields.text("activations", activations_, "Names of activations");
    fields.number("factor", factor_,
                  "Share of its time that a batch normalization takes, like the bytes it moves "
                  "(recalled: 1/2)",
                  0);
    fields.flag("keep_activations", keep_activations_,
                "Keep activations directly before or after a batch normalization");
  }

  Effect apply(Graph& graph, const Context&) const override {
    const std::vector<TaskId> tasks = where_.select_some(graph);
    const std::vector<char> norm = marked(graph, tasks, "norms", norms_);
    std::vector<TaskId> norms, activations;
    for (const TaskId task : tasks) {
      if (norm[index(task)] != 0) norms.push_back(task);
    }
    if (norms.empty()) {
      throw Error(fmt::format("norms: no kernel of \"where\" ({}) has a name like \"{}\"",
                              where_.to_text(), norms_));
    }
    if (!keep_activations_) {
      // Convolutions with "relu" in their names have done the activation already.
      KernelClasses classes(graph);
      const std::vector<char> activation = marked(graph, tasks, "activations", activations_);
      for (const TaskId task : tasks) {
        const bool named = activation[index(task)] != 0 && norm[index(task)] == 0;
        if (named && classes.of(graph.task(task).name).bound == Boundness::memory &&
            beside(graph, task, norm))
          activations.push_back(task);
      }
    }
    const Nanoseconds removed = total_duration(graph, activations);
    Effect effect =
        change_durations(graph, norms, [&](Nanoseconds t) { return scaled(t, factor_); });
    const Launches launches(graph);
    for (const TaskId task : activations) graph.remove(task);
    const std::size_t calls = remove_launches_of(graph, launches, activations);
    effect.changed += activations.size() + calls;
    effect.summary = fmt::format("{} at {} of their time, {} beside them ({}) gone",
                                 counted(norms.size(), "batch normalization"), to_fixed(factor_, 3),
                                 counted(activations.size(), "activation"), to_text(removed));
    effect.figures.push_back({"normalizations", static_cast<double>(norms.size())});
    effect.figures.push_back({"activations_gone", static_cast<double>(activations.size())});
    effect.figures.push_back({"activation_time", removed});
    effect.assumptions.push_back(
        "the extra work of the convolutions takes no time: on DenseNet-121 the same model "
        "predicted 12.7 % where 7 % were measured (Daydream, ATC'20), and 17.5 % were claimed "
        "(Jung et al., SysML 2019)");
    effect.assumptions.push_back("memory use stays as recorded");
    return effect;
  }

 private:
  static std::vector<char> marked(const Graph& graph, const std::vector<TaskId>& tasks,
                                  std::string_view setting, const std::string& text) {
    if (text.empty()) throw Error(fmt::format("{}: must be a part of a kernel's name", setting));
    NameCondition matches = within(setting, [&] { return NameCondition(text, graph.names()); });
    std::vector<char> marks(graph.task_count(), 0);
    for (const TaskId id : tasks) {
      const Task& task = graph.task(id);
      marks[index(id)] = task.kind == TaskKind::kernel && matches(task.name);
    }
    return marks;
  }

  static bool beside(const Graph& graph, TaskId task, const std::vector<char>& norm) {
    const TaskId previous = graph.previous(task);
    const TaskId next = graph.next(task);
    const auto in_phase = [&](TaskId other) {
      return other != kNoTask && norm[index(other)] != 0 &&
             graph.task(other).phase == graph.task(task).phase;
    };
    return in_phase(previous) || in_phase(next);
  }

  Selector where_{"kernel"};
  std::string norms_ = "/bn_[fb]w|[Bb]atch_?[Nn]orm|MIOpenBatchNorm/";
  std::string activations_ = "/[Rr]e[Ll][Uu]|threshold|clamp/";
  double factor_ = 0.5;
  bool keep_activations_ = false;
};

}  // namespace

TransformEntry batchnorm_restructure_entry() {
  return {
      .make = create<BatchnormRestructure>,
      .assumes =
          "Activations directly beside a batch normalization are done by the convolution next "
          "to them, and the normalizations move half of the bytes (recalled), as in the "
          "Daydream paper (USENIX ATC'20). The extra time of the convolutions is not modelled: "
          "on DenseNet-121 the model predicted 12.7 % and 7 % were measured.",
      .advice = {.goal = Goal::time, .tries = {"batchnorm_restructure"}, .applies_to = {"fusion"}}};
}

}  // namespace foretrace

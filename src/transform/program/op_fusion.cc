// Joins kernels that follow each other on a stream, as compilers (TorchInductor, XLA, nvFuser) do
// with pointwise work and the reductions in between:
//
//     cpu     |LMN......|                cpu     |L......|
//     stream  |.aaabbbcc|   ->           stream  |.ffff..|
//
// The time of a fused kernel is in chains.h. Ignored: joining kernels that do not follow each other
// (siblings that read the same tensor), and host work of the ops whose kernels go away.

#include <fmt/core.h>

#include "foretrace/error.h"
#include "transform/edit/chains.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class OpFusion final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that may be joined");
    fields.choice("classes", classes_, {"pointwise", "reductions"},
                  "What to join: pointwise kernels alone, or with the reductions and "
                  "normalizations between them");
    fields.texts("pattern", pattern_,
                 "Instead: kernels with these names in this order, such as [conv, bn_fw, relu]");
    fields.integer("longest", longest_, "Kernels in a chain; 1 joins nothing", 1, 1'000'000);
    fields.integer("reductions", reductions_,
                   "Reductions and normalizations in a chain (assumed: 2, as a softmax has)", 1,
                   1'000'000);
    cost_.describe(fields);
  }

  Effect apply(Graph& graph, const Context&) const override {
    ChainRule rule{
        .longest = longest_, .reductions = classes_ == "pointwise" ? 0 : reductions_, .names = {}};
    for (std::size_t i = 0; i < pattern_.size(); ++i) {
      within(fmt::format("pattern: [{}]", i), [&] {
        if (pattern_[i].empty()) throw Error("must be a part of a kernel's name");
        rule.names.emplace_back(pattern_[i]);
      });
    }
    if (pattern_.size() == 1) throw Error("pattern: must be the names of at least two kernels");
    const std::vector<TaskId> tasks = where_.select_some(graph);
    const Launches launches(graph);
    const std::vector<Group> chains = find_chains(graph, launches, tasks, rule);
    if (chains.empty() && longest_ > 1) throw Error(nothing_to_join());
    const ChainsFused done = fuse_chains(graph, chains, cost_);
    Effect effect;
    effect.summary = done.to_text();
    done.add_to(effect, cost_);
    return effect;
  }

 private:
  std::string nothing_to_join() const {
    const std::string where = fmt::format(" among the tasks of \"where\" ({})", where_.to_text());
    if (!pattern_.empty()) {
      return "pattern: no kernels of these names directly follow each other" + where;
    }
    return fmt::format(
        "classes: no two kernels that could be joined ({}) directly follow each other{}", classes_,
        where);
  }

  Selector where_{"kernel"};
  std::string classes_ = "reductions";
  std::vector<std::string> pattern_;
  std::int64_t longest_ = 64;
  std::int64_t reductions_ = 2;
  ChainCost cost_;
};

}  // namespace

TransformEntry op_fusion_entry() {
  return {.make = create<OpFusion>,
          .assumes =
              "Pointwise kernels that directly follow each other on a stream, and up to two "
              "reductions or normalizations among them, become one kernel, and only the first of "
              "their launches remains. It moves the bytes that enter and leave the chain; without "
              "recorded accesses, one tensor per junction is neither written nor read. Memory that "
              "only the chain uses is not allocated. A chain never crosses a phase, a step, a wait "
              "for another stream or a wait of the host. Kernels that read the same tensor but do "
              "not follow each other stay apart.",
          .advice = {.goal = Goal::time, .tries = {"op_fusion"}, .applies_to = {"fusion"}}};
}

}  // namespace foretrace

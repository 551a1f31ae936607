#include <algorithm>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Multiplies durations, then adds to them:
///
///     stream  |AAAABBBB|   factor 0.5  ->  stream  |AABB|
class Scale final : public Transform, public Retimes {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to change");
    fields.number("factor", factor_, "Every duration is multiplied by this", 0);
    fields.time("by", by_,
                "Then this is added, down to a duration of 0; negative makes tasks faster");
  }

  Effect apply(Graph& graph, const Context&) const override {
    return change_durations(graph, where_.select_some(graph),
                            [&](Nanoseconds duration) { return changed(duration); });
  }

  const Retimes* retimes() const override { return this; }

  bool only_retimes(std::string_view setting) const override {
    return setting == "factor" || setting == "by";
  }

  std::vector<RetimedTask> retimed(const Graph& graph) const override {
    return as_retimed(where_.select_some(graph));
  }

  void retime(std::span<const RetimedTask>, std::span<const Nanoseconds> before,
              std::span<Nanoseconds> after) const override {
    const Scaling scaling(factor_);
    for (std::size_t i = 0; i < before.size(); ++i) after[i] = moved(scaling(before[i]));
  }

 private:
  Nanoseconds changed(Nanoseconds duration) const { return moved(scaled(duration, factor_)); }

  Nanoseconds moved(Nanoseconds time) const {
    const Nanoseconds most = Nanoseconds::max() - std::max(by_, Nanoseconds(0));
    return std::max(std::min(time, most) + by_, Nanoseconds(0));
  }

  Selector where_;
  double factor_ = 1;
  Nanoseconds by_{0};
};

}  // namespace

TransformEntry scale_entry() {
  return {
      .make = create<Scale>,
      .assumes = "Only the duration of the tasks changes: dependencies, bytes and memory stay.",
      .advice = {.why_not =
                     "a manual edit: you choose what gets faster (see the table of speed-ups)"}};
}

}  // namespace foretrace

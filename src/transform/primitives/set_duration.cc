#include <algorithm>

#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

class SetDuration final : public Transform, public Retimes {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The tasks to change");
    fields.optional_time("duration", duration_, "New duration of each; by default as recorded",
                         Nanoseconds(0));
  }

  Effect apply(Graph& graph, const Context&) const override {
    return change_durations(graph, where_.select_some(graph),
                            [&](Nanoseconds duration) { return duration_.value_or(duration); });
  }

  const Retimes* retimes() const override { return this; }

  bool only_retimes(std::string_view setting) const override { return setting == "duration"; }

  std::vector<RetimedTask> retimed(const Graph& graph) const override {
    return as_retimed(where_.select_some(graph));
  }

  void retime(std::span<const RetimedTask>, std::span<const Nanoseconds> before,
              std::span<Nanoseconds> after) const override {
    std::transform(before.begin(), before.end(), after.begin(),
                   [&](Nanoseconds duration) { return duration_.value_or(duration); });
  }

 private:
  Selector where_;
  std::optional<Nanoseconds> duration_;
};

}  // namespace

TransformEntry set_duration_entry() {
  return {.make = create<SetDuration>,
          .assumes = "Only the duration of the tasks changes: dependencies, bytes and memory stay.",
          .advice = {.why_not = "a manual edit: you choose the duration"}};
}

}  // namespace foretrace

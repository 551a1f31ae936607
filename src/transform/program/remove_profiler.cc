#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/recorder_time.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Shows the step as it is when nobody records it; see recorder_time.cc.
class RemoveProfiler final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.time("per_record", per_record_,
                "Host time that recording an op, a call or a block of memory takes; 0ns: as "
                "measured on nested ops of the trace",
                Nanoseconds(0));
  }

  bool happens_once() const override { return true; }

  Effect apply(Graph& graph, const Context&) const override {
    const Nanoseconds cost =
        per_record_ > Nanoseconds(0) ? per_record_ : graph.unexplained().per_record;
    if (cost <= Nanoseconds(0)) {
      throw Error(
          "the trace does not show what recording an op takes: it has too few ops that call "
          "others; "
          "give \"per_record\", such as 2us");
    }
    Effect effect;
    Nanoseconds removed{0};
    for (const auto& [id, duration] : without_recorder(graph, cost)) {
      removed += graph.task(id).duration - duration;
      graph.task(id).duration = duration;
      ++effect.changed;
    }
    effect.summary = fmt::format("{} less host work, which recording took, {} for a record",
                                 to_text(removed), to_text(cost));
    effect.figures.push_back({"recorder_removed", removed});
    effect.assumptions.push_back(
        "recording a call or a block of memory takes as long as recording an op");
    return effect;
  }

 private:
  Nanoseconds per_record_{0};
};

}  // namespace

TransformEntry remove_profiler_entry() {
  return {.make = create<RemoveProfiler>,
          .assumes =
              "The profiler works on the host whenever it notes an op, a call or a block of "
              "memory. What one record costs is measured on nested ops. Device work and waits "
              "stay; the host gets there earlier. Frames of Python are not counted.",
          .advice = {.why_not = "not a change of the program, but the program without a profiler"}};
}

}  // namespace foretrace

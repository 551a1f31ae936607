// Runs the same communication on another network. A recorded collective is scaled by
//
//     model(network after) / model(network before)
//
// so that an error that the model makes on both cancels. Both take the collective's own operation,
// bytes and number of ranks, as the trace has them or as given.
//
// Ignored: collectives of unknown size (counted), and that ranks which arrive late keep others
// waiting as long as before: if the graph has a single rank, its wait is scaled too.

#include <fmt/core.h>
#include <optional>
#include <utility>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/known_collectives.h"

namespace foretrace {
namespace {

class NetworkStep final : public Transform {
 public:
  void describe(Fields& fields) override {
    to_.describe(fields);
    fields.object("from", from_, "The network of the recording, in the same settings");
    describe_ranks(fields, ranks_);
    fields.object("where", where_, "The collectives to change; all by default");
  }

  Effect apply(Graph& graph, const Context&) const override {
    if (!communicates(graph)) return nothing_crosses();
    Effect effect;
    Communicators recorded(from_), other(to_);
    Nanoseconds before{0}, after{0};
    const KnownCollectives known = known_collectives(graph, where_, ranks_);
    known.require();
    for (const KnownCollective& collective : known.all) {
      const Nanoseconds modelled = within("from", [&] {
        return recorded.among(collective.ranks).time(collective.operation, collective.bytes);
      });
      const double factor = ratio(
          other.among(collective.ranks).time(collective.operation, collective.bytes), modelled);
      Nanoseconds& duration = graph.task(collective.task).duration;
      before += duration;
      duration = scaled(duration, factor);
      after += duration;
      ++effect.changed;
    }
    known.note_unknown(effect);
    effect.summary =
        fmt::format("{} take {} instead of {} in all, on {}", counted(effect.changed, "collective"),
                    to_text(after), to_text(before), other.described());
    effect.figures = {{"before", before}, {"after", after}};
    effect.assumptions = other.assumed();
    effect.assumptions.emplace_back(
        "collectives change as the model's time for their size does from the recorded network to "
        "the other; with a single rank, so does the time that it waited for others");
    return effect;
  }

  JobChange job_change() const override { return {.network = to_.text()}; }

 private:
  static bool communicates(const Graph& graph) {
    for (std::uint32_t i = 0; i < graph.task_count(); ++i)
      if (graph.task(TaskId{i}).kind == TaskKind::collective && !graph.removed(TaskId{i}))
        return true;
    return false;
  }

  static Effect nothing_crosses() {
    Effect effect;
    effect.summary = "no collective crosses the network";
    effect.notes.add(Severity::warning,
                     "nothing in the trace crosses a network, so another one changes nothing; "
                     "data_parallel adds what more GPUs would send");
    return effect;
  }

  NetworkSettings to_, from_;
  std::int64_t ranks_ = 0;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry network_entry() {
  return {.make = create<NetworkStep>,
          .assumes =
              "Every recorded collective is scaled by the time that the model (NCCL's own on a "
              "machine, closed forms on a uniform network) gives for its operation, size and ranks "
              "on the new network, divided by the time on the recorded one. The kernels stay. "
              "Settings under \"from\" describe the network of the recording.",
          .advice = {.goal = Goal::time,
                     .tries = {"network:from.machine=<network>,from.algorithm=<algorithm>,machine="
                               "<network>,algorithm=double_tree",
                               "network:from.machine=<network>,from.algorithm=<algorithm>,machine="
                               "<network>,algorithm=ring",
                               "network:from.machine=<network>,from.algorithm=<algorithm>,machine="
                               "<network>,algorithm=hierarchical"},
                     .applies_to = {"algorithm"},
                     .why_not =
                         "which network the job runs on is not in a trace: give --network to try "
                         "other algorithms; for another network, name it: "
                         "network:from.machine=dgx-a100,machine=dgx-h100"}};
}

}  // namespace foretrace

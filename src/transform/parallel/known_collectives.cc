#include "transform/parallel/known_collectives.h"

#include <map>
#include <tuple>

#include "foretrace/error.h"
#include "transform/edit/edit.h"

namespace foretrace {
namespace {

/// Finds the exchanges of activations among the collectives of backward passes: those with
/// counterparts of the same lane, operation and size in forward passes.
class ActivationExchanges {
 public:
  explicit ActivationExchanges(const Graph& graph) : graph_(graph) {
    for (const RecordedCollective& collective : graph.collectives()) {
      if (graph.removed(collective.task)) continue;
      Count& count = counts_[key(collective)];
      ++(graph.task(collective.task).phase == Phase::forward ? count.forward : count.others);
    }
  }

  /// With recomputation, backward passes have two or three for each of the forward passes.
  bool has(const RecordedCollective& collective) const {
    const Count& count = counts_.at(key(collective));
    return count.forward * 3 >= count.others;
  }

 private:
  struct Count {
    std::size_t forward = 0, others = 0;
  };
  std::tuple<LaneId, NameId, Bytes> key(const RecordedCollective& collective) const {
    return {graph_.lane_of(collective.task), collective.operation, collective.bytes};
  }

  const Graph& graph_;
  std::map<std::tuple<LaneId, NameId, Bytes>, Count> counts_;
};

}  // namespace

void KnownCollectives::require() const {
  if (all.empty())
    throw Error(
        "no collective of the trace has a known operation, size and number of ranks; record with "
        "record_shapes=True, or give \"ranks\"");
}

void KnownCollectives::note_unknown(Effect& effect) const {
  note_count(effect, Severity::warning,
             "collectives whose operation, size or number of ranks is unknown keep their time",
             unknown);
}

void describe_ranks(Fields& fields, std::int64_t& ranks) {
  fields.integer(
      "ranks", ranks,
      "Ranks of a collective whose number of ranks is not recorded; 0: it keeps its time", 0,
      1'000'000);
}

KnownCollectives known_collectives(const Graph& graph, const Selector& where, std::int64_t ranks) {
  std::vector<char> chosen(graph.task_count(), 0);
  for (const TaskId id : where.select_some(graph)) chosen[index(id)] = 1;
  const ActivationExchanges exchanges(graph);
  KnownCollectives found;
  for (const RecordedCollective& collective : graph.collectives()) {
    if (chosen[index(collective.task)] == 0 || graph.removed(collective.task)) continue;
    const std::int32_t members =
        collective.group_size > 0 ? collective.group_size : static_cast<std::int32_t>(ranks);
    const auto operation = operation_recorded_as(graph.names()[collective.operation]);
    if (!operation || members == 0 || collective.bytes <= Bytes{})
      ++found.unknown;
    else if (members > 1)
      found.all.push_back(
          {.task = collective.task,
           .operation = *operation,
           .bytes = collective.bytes,
           .ranks = members,
           .type = collective.type,
           .is_gradient =
               (*operation == Operation::all_reduce || *operation == Operation::reduce_scatter) &&
               graph.task(collective.task).phase != Phase::forward && !exchanges.has(collective)});
  }
  return found;
}

}  // namespace foretrace

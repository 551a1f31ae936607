#include "transform/parallel/known_collectives.h"

#include "foretrace/error.h"
#include "transform/edit/edit.h"

namespace foretrace {

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
          {collective.task, *operation, collective.bytes, members, collective.type});
  }
  return found;
}

}  // namespace foretrace

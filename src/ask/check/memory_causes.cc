// Causes of higher memory use.

#include <fmt/core.h>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "ask/check/job/changes.h"
#include "ask/check/job/figures.h"
#include "ask/check/job/words.h"

namespace foretrace {
namespace {

using HolderKey = std::tuple<std::string, std::string, std::string, std::string>;

HolderKey holder_key(const MemoryGroup& group) {
  return {group.op, without_instances(group.module), group.file, group.function};
}

CheckCause holder_cause(const MemoryGroup& group, Bytes more, const char* how) {
  WorkChange place;
  place.module = group.module, place.file = group.file, place.function = group.function;
  CheckCause cause;
  cause.what = fmt::format("+{} {}: {}", to_text(more), how,
                           group.op.empty() ? "memory of no known op" : group.op);
  cause.where = place_words(place, group.line);
  cause.file = group.file, cause.line = group.line;
  cause.kind = "memory", cause.bytes = more;
  return cause;
}

/// Adds the holders with at least a twentieth of the figure's increase, except those in `said`.
void add_holders(const CausesQuestion& question, const CheckedFigure& figure,
                 Bytes MemoryGroup::*part, std::set<HolderKey>& said,
                 std::vector<FoundCause>& found) {
  const char* how = part == &MemoryGroup::kept ? "in each step, never freed" : "at the peak";
  std::map<HolderKey, Bytes> then, now;
  for (const MemoryGroup& group : question.before.memory) then[holder_key(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) now[holder_key(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) {
    const HolderKey key = holder_key(group);
    const Bytes more = now[key] - then[key];
    const std::int64_t worse = figure.after.value_or(0) - figure.before.value_or(0);
    if (more.count <= 0 || more.count * 20 < worse || !said.insert(key).second) continue;
    CheckCause cause = holder_cause(group, more, how);
    cause.figure = figure.name;
    found.push_back({std::move(cause), figure.standing});
  }
}

}  // namespace

void add_memory(const CausesQuestion& question, std::vector<FoundCause>& found) {
  // Memory that is never freed is in use at the peak as well, but is reported once.
  std::set<HolderKey> said;
  if (const CheckedFigure* growth = worse_figure(question, kMemoryGrowth))
    add_holders(question, *growth, &MemoryGroup::kept, said, found);
  const CheckedFigure* allocated = worse_figure(question, kPeakAllocated);
  const CheckedFigure* reserved = worse_figure(question, kPeakReserved);
  if (allocated == nullptr || (reserved != nullptr && reserved->standing > allocated->standing))
    allocated = reserved;
  if (allocated != nullptr) add_holders(question, *allocated, &MemoryGroup::peak, said, found);
}

}  // namespace foretrace

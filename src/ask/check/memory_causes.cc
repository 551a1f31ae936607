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

using MemoryPlace = std::tuple<std::string, std::string, std::string, std::string>;

MemoryPlace memory_place(const MemoryGroup& group) {
  return {group.op, without_instances(group.module), group.file, group.function};
}

CheckCause memory_cause(const MemoryGroup& group, Bytes more, const char* how) {
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

/// Adds the places with at least a twentieth of the figure's increase, except those in `listed`.
void add_memory_causes(const CausesQuestion& question, const CheckedFigure& figure,
                       Bytes MemoryGroup::*part, std::set<MemoryPlace>& listed,
                       std::vector<CauseCandidate>& found) {
  const char* how = part == &MemoryGroup::kept ? "in each step, never freed" : "at the peak";
  std::map<MemoryPlace, Bytes> then, now;
  for (const MemoryGroup& group : question.before.memory) then[memory_place(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) now[memory_place(group)] += group.*part;
  for (const MemoryGroup& group : question.after.memory) {
    const MemoryPlace key = memory_place(group);
    const Bytes more = now[key] - then[key];
    const std::int64_t worse = figure.after.value_or(0) - figure.before.value_or(0);
    if (more.count <= 0 || more.count * 20 < worse || !listed.insert(key).second) continue;
    CheckCause cause = memory_cause(group, more, how);
    cause.figure = figure.name;
    found.push_back({std::move(cause), figure.standing});
  }
}

}  // namespace

void add_memory(const CausesQuestion& question, std::vector<CauseCandidate>& found) {
  // Memory that is never freed is in use at the peak as well, but is reported once.
  std::set<MemoryPlace> listed;
  if (const CheckedFigure* growth = worse_figure(question, kMemoryGrowth))
    add_memory_causes(question, *growth, &MemoryGroup::kept, listed, found);
  const CheckedFigure* allocated = worse_figure(question, kPeakAllocated);
  const CheckedFigure* reserved = worse_figure(question, kPeakReserved);
  if (allocated == nullptr || (reserved != nullptr && reserved->standing > allocated->standing))
    allocated = reserved;
  if (allocated != nullptr)
    add_memory_causes(question, *allocated, &MemoryGroup::peak, listed, found);
}

}  // namespace foretrace

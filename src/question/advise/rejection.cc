#include "question/advise/rejection.h"

#include <algorithm>
#include <fmt/core.h>

#include "analysis/place/work_group.h"
#include "base/threads.h"
#include "question/advise/bounds.h"
#include "question/advise/suggestions.h"

namespace foretrace {
namespace {

std::string worst_text(const Trust& trust) {
  for (const TrustReason& reason : trust.reasons) {
    if (reason.grade == trust.grade()) return reason.text;
  }
  return {};
}

/// The names of the groups that a suggestion acts on; empty if there is none.
std::vector<std::string_view> groups_of(std::string_view use) {
  struct GroupedWork {
    std::string_view work, group;
  };
  constexpr GroupedWork kGroups[] = {
      {"launches", "launches"}, {"fusion", "launches"},     {"fusion", "kernels"},
      {"waits", "syncs"},       {"input copies", "copies"}, {"pinning", "copies"},
      {"loading", "input"},     {"precision", "kernels"},   {"layout", "kernels"}};
  std::vector<std::string_view> groups;
  for (const std::string_view work : advice_policy(use).applies_to) {
    for (const GroupedWork& one : kGroups) {
      if (one.work == work) groups.push_back(one.group);
    }
  }
  return groups;
}

Ceiling ceiling_of(const AdvisedJob& job, const std::vector<WorkGroup>& all,
                   const std::vector<std::string_view>& groups) {
  Ceiling ceiling;
  std::vector<WorkGroup> removed;
  for (const WorkGroup& group : all) {
    if (std::find(groups.begin(), groups.end(), group.name) == groups.end()) continue;
    removed.push_back(group);
    ceiling.titles += (ceiling.titles.empty() ? "" : " and ") + group.title;
  }
  ceiling.step_time = std::min(job.now(), step_with(job.whole, removed, 0));
  return ceiling;
}

/// Returns why the predicted gain is impossible: removing all the work the suggestion acts on would
/// gain less. Empty if it is possible.
std::string ceiling_rejection(const AdvisedJob& job, const Ceilings& ceilings,
                              const Suggestion& suggestion) {
  const std::vector<std::string_view> groups = groups_of(suggestion.use);
  if (suggestion.goal != "time" || groups.empty()) return {};
  const Ceiling& ceiling = ceilings.at(groups);
  if (suggestion.step_time + scaled(job.now(), job.noise) >= ceiling.step_time) return {};
  return fmt::format("would gain more than if {} took no time at all, which leaves {} a step",
                     ceiling.titles, to_text(ceiling.step_time));
}

}  // namespace

Ceilings ceilings_of(const AdvisedJob& job, const std::vector<Suggestion>& suggestions) {
  Ceilings ceilings;
  for (const Suggestion& one : suggestions) {
    std::vector<std::string_view> groups = groups_of(one.use);
    if (one.goal == "time" && !groups.empty() && job.matters(one.gain))
      ceilings.try_emplace(std::move(groups));
  }
  if (ceilings.empty()) return ceilings;
  const std::vector<WorkGroup> all = all_groups(job.whole.graph());
  on_all_cores(ceilings.size(), [&](std::size_t i) {
    auto& [groups, ceiling] = *std::next(ceilings.begin(), static_cast<std::ptrdiff_t>(i));
    ceiling = ceiling_of(job, all, groups);
  });
  return ceilings;
}

std::string rejection_reason(const AdvisedJob& job, const Ceilings& ceilings,
                             const Suggestion& suggestion) {
  if (suggestion.applies.share <= 0) return suggestion.applies.why_not;
  if (!job.matters(suggestion.gain)) return {};
  for (const Trust* trust : {&suggestion.trust, &job.trust}) {
    if (trust->grade() == Grade::poor) return "not reliable: " + worst_text(*trust);
  }
  return ceiling_rejection(job, ceilings, suggestion);
}

}  // namespace foretrace

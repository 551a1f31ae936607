#include "question/check/job/changes.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <map>
#include <set>
#include <tuple>

#include "base/statistics.h"
#include "question/check/job/figures.h"
#include "question/check/job/kernels.h"
#include "question/check/job/words.h"
#include "question/check/matched_work.h"

namespace foretrace {
namespace {

using PlaceKey = std::tuple<TaskKind, std::string, std::string, std::string, std::string>;

double group_ratio(Nanoseconds now, Nanoseconds then) {
  return then <= 0ns ? 1 : static_cast<double>(now.count()) / static_cast<double>(then.count());
}

/// Steps of one recording vary by this much without a cause. Chosen.
constexpr double kMinSlowdown = 0.02;

/// Work counts as evenly slower if its slowdown is within `most_off` (a part of the typical
/// slowdown) of the typical one, and everything is slower if that holds for `tenths` tenths of all
/// work. Chosen. Host work is less even: memory, locks and calls do not suffer alike.
struct UniformityLimits {
  double most_off = 0;
  std::int64_t tenths = 0;
};
constexpr UniformityLimits kKernelUniformity = {.most_off = 0.4, .tenths = 7};
constexpr UniformityLimits kHostUniformity = {.most_off = 0.6, .tenths = 6};

/// Whether a change belongs to `kind`, which may be slower as a whole; launches are host work.
bool is_general(TaskKind kind, const WorkChange& change) {
  return kind == TaskKind::host ? is_host_work(change.kind) : change.kind == kind;
}

/// Whether kernels of the same names and shapes became slower by about that factor. Other kernels
/// at the same places say nothing about the device.
bool is_pace(double factor, const JobSummary& before, const JobSummary& after) {
  constexpr double kMinCompared = 0.5;
  if (compared_share(before.kernels, after.kernels) < kMinCompared) return false;
  std::vector<std::int64_t> paces = kernel_pace(before.kernels, after.kernels);
  if (paces.empty()) return false;
  const double pace = static_cast<double>(lower_median(std::move(paces))) / 1e6;
  return std::abs(pace - factor) <= kKernelUniformity.most_off * (factor - 1);
}

/// Finds out whether most work of a kind became slower by about the same factor: then the cause is
/// the device, its clock or other jobs, not a place in the program. The factor is 1 if not.
GeneralChange general_change(const std::vector<WorkChange>& changes, TaskKind kind) {
  std::vector<std::pair<double, Nanoseconds>> ratios;
  Nanoseconds all{0};
  GeneralChange general{.kind = kind, .factor = 1, .before = {}, .now = {}};
  for (const WorkChange& change : changes) {
    if (!is_general(kind, change)) continue;
    if (change.before.work <= 0ns || change.more() != 0 || change.is_other_work()) continue;
    ratios.emplace_back(group_ratio(change.after.work, change.before.work), change.before.work);
    all += change.before.work;
    general.before += change.before.work;
    general.now.insert(general.now.end(), change.now.begin(), change.now.end());
  }
  if (ratios.size() < 5) return general;
  const double typical = weighted_median(ratios);
  if (typical < 1 + kMinSlowdown) return general;
  const UniformityLimits limits = kind == TaskKind::kernel ? kKernelUniformity : kHostUniformity;
  Nanoseconds typical_work{0};
  for (const auto& [ratio, work] : ratios) {
    if (std::abs(ratio - typical) <= limits.most_off * (typical - 1)) typical_work += work;
  }
  if (typical_work * 10 >= all * limits.tenths) general.factor = typical;
  return general;
}

/// Kernels at one place stand out if they take this many times as long as expected, take longer in
/// every step than before in any step, and add at least this share of a step. Two runs of one
/// program on one machine do not differ by as much.
constexpr double kOutstanding = 1.3;
constexpr double kOutstandingShare = 0.005;
/// Limits for a kernel of another name, which is a change that noise does not explain: less is
/// enough. Chosen.
constexpr double kOutstandingReplaced = 1.1;
constexpr double kOutstandingShareReplaced = 0.001;

bool stands_out(const WorkChange& change, Nanoseconds step) {
  if (change.kind != TaskKind::kernel || change.more() != 0 || change.before.work <= 0ns)
    return false;
  if (change.moved) return false;
  const double least = change.replaced.empty() ? kOutstanding : kOutstandingReplaced;
  if (change.after.work < scaled(change.before.work, least * change.expected)) return false;
  if (change.after.least <= scaled(change.before.most, change.expected)) return false;
  const double share = change.replaced.empty() ? kOutstandingShare : kOutstandingShareReplaced;
  return change.added() > 0ns && change.added() >= scaled(step, share);
}

bool is_worse(const WorkChange& change) {
  if (change.is_moved_wait() || change.more() > 0 || change.after.bytes > change.before.bytes)
    return true;
  if (change.after.pageable > change.before.pageable || change.exposed() > 0ns) return true;
  return change.added() > scaled(change.before.work, kMinSlowdown * change.expected);
}

}  // namespace

Nanoseconds WorkChange::added() const { return after.work - scaled(before.work, expected); }

Nanoseconds WorkChange::exposed() const {
  if (before.work <= 0ns || before.hidden <= 0ns) return 0ns;
  const double share = std::min(1.0, group_ratio(before.hidden, before.work));
  const Nanoseconds lost = scaled(after.work, share) - after.hidden;
  // The time at which copies run varies a little.
  return lost > scaled(after.work, 0.05) ? lost : 0ns;
}

bool WorkChange::is_other_work() const { return moved || !replaced.empty(); }

WorkChanges work_changes(const JobSummary& before, const JobSummary& after) {
  WorkChanges found;
  std::vector<WorkChange> all = matched_work(before, after);
  const auto add_general = [&](TaskKind kind) {
    GeneralChange general = general_change(all, kind);
    if (general.factor <= 1) return false;
    if (kind == TaskKind::kernel && !is_pace(general.factor, before, after)) return false;
    for (WorkChange& change : all) {
      if (is_general(kind, change)) change.expected = general.factor;
    }
    found.general.push_back(std::move(general));
    return true;
  };
  add_general(TaskKind::kernel);
  // If not all host work is slower, launches alone may be, because of the driver or of a tool that
  // listens to it.
  if (!add_general(TaskKind::host)) add_general(TaskKind::launch);
  for (WorkChange& change : all) {
    if (is_worse(change)) found.changes.push_back(std::move(change));
  }
  return found;
}

std::vector<WorkChange> merged_instances(const std::vector<WorkChange>& changes) {
  std::vector<WorkChange> merged;
  std::vector<std::set<std::string>> modules;
  std::map<std::pair<PlaceKey, std::string>, std::size_t> numbers;
  for (const WorkChange& change : changes) {
    const PlaceKey place{change.kind, change.op, without_instances(change.module), change.file,
                         change.function};
    const auto [found, added] =
        numbers.try_emplace({place, change.after.name + "\n" + change.replaced}, merged.size());
    if (added) {
      merged.push_back(change);
      modules.push_back({change.module});
      continue;
    }
    WorkChange& sum = merged[found->second];
    modules[found->second].insert(change.module);
    add_group(sum.before, change.before);
    add_group(sum.after, change.after);
    sum.moved = sum.moved || change.moved, sum.came += change.came;
    sum.now.insert(sum.now.end(), change.now.begin(), change.now.end());
    sum.module = fmt::format("{} ({} of them)", without_instances(change.module),
                             modules[found->second].size());
  }
  return merged;
}

namespace {

/// Merges all changes of loading into one: the places of loading hardly explain why it takes long.
std::vector<WorkChange> with_one_input(std::vector<WorkChange> changes) {
  WorkChange input;
  std::size_t places = 0;
  for (const WorkChange& change : changes) {
    if (change.kind != TaskKind::input) continue;
    if (places++ == 0) input = change;
    if (places == 1) continue;
    add_group(input.before, change.before);
    add_group(input.after, change.after);
    input.now.insert(input.now.end(), change.now.begin(), change.now.end());
  }
  if (places < 2) return changes;
  std::erase_if(changes, [](const WorkChange& change) { return change.kind == TaskKind::input; });
  changes.push_back(std::move(input));
  return changes;
}

}  // namespace

std::vector<WorkChange> marked_changes(const JobSummary& before,
                                       const std::vector<WorkChange>& changes) {
  std::vector<WorkChange> merged = with_one_input(merged_instances(changes));
  const std::optional<Nanoseconds> step = step_time_of(before);
  if (!step) return merged;
  for (WorkChange& change : merged) change.stands_out = stands_out(change, *step);
  return merged;
}

std::int64_t slower_places(const JobSummary& before, const JobSummary& now) {
  const std::vector<WorkChange> changes = marked_changes(before, work_changes(before, now).changes);
  return std::count_if(changes.begin(), changes.end(),
                       [](const WorkChange& change) { return change.stands_out; });
}

JobSummary at_any_place(const JobSummary& summary) {
  std::map<std::pair<TaskKind, std::string>, JobGroup> sums;
  for (const JobGroup& group : summary.groups) {
    JobGroup& sum = sums[{group.kind, group.name}];
    JobGroup nameless = group;
    nameless.name.clear();
    nameless.lines.clear();
    add_group(sum, nameless);
    sum.kind = group.kind, sum.name = group.name;
  }
  JobSummary coarse = summary;
  coarse.groups.clear();
  for (auto& [key, sum] : sums) coarse.groups.push_back(std::move(sum));
  return coarse;
}

std::vector<int> new_lines(const JobGroup& before, const JobGroup& after) {
  std::set<int> shifts = {0};
  for (const auto& [now, count] : after.lines) {
    for (const auto& [then, number] : before.lines) shifts.insert(now - then);
    if (shifts.size() > 1000) break;
  }
  const std::map<int, std::int64_t> then(before.lines.begin(), before.lines.end());
  std::vector<int> best;
  std::tuple<std::int64_t, int> least{-1, 0};
  for (const int shift : shifts) {
    std::vector<int> unmatched;
    std::int64_t missing = 0;
    for (const auto& [line, count] : after.lines) {
      const auto old = then.find(line - shift);
      const std::int64_t known = old == then.end() ? 0 : old->second;
      if (count > known) unmatched.push_back(line), missing += count - known;
    }
    const std::tuple candidate(missing, std::abs(shift));
    if (std::get<0>(least) < 0 || candidate < least) least = candidate, best = unmatched;
  }
  return best;
}

}  // namespace foretrace

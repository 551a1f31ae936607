#include "question/check/matched_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "question/check/job/figures.h"

namespace foretrace {
namespace {

/// All that is summed over the tasks of a group; times come last.
using Sums = std::array<std::int64_t, 8>;
constexpr std::size_t kFirstTime = 4;

Sums sums_of(const JobGroup& group) {
  return {group.count,        group.aside,          group.pageable,      group.bytes.count,
          group.work.count(), group.hidden.count(), group.least.count(), group.most.count()};
}

void add_sums(JobGroup& group, const Sums& sums) {
  group.count += sums[0], group.aside += sums[1], group.pageable += sums[2];
  group.bytes += Bytes{sums[3]}, group.work += Nanoseconds(sums[4]);
  group.hidden += Nanoseconds(sums[5]), group.least += Nanoseconds(sums[6]);
  group.most += Nanoseconds(sums[7]);
}

double as_double(std::int64_t number) { return static_cast<double>(number); }

Sums scaled_sums(Sums sums, double share, std::size_t from = 0) {
  for (std::size_t i = from; i < sums.size(); ++i)
    sums[i] = std::llround(share * as_double(sums[i]));
  return sums;
}

/// Cuts sums in proportion to the parts of a whole, without losing any of it to rounding. All times
/// are cut like the work, so that a part is as well hidden as the whole.
class Cut {
 public:
  Cut(const Sums& amount, const Sums& whole) : amount_(amount), whole_(whole) {}
  Sums next(const Sums& part) {
    Sums cut{};
    for (std::size_t i = 0; i < cut.size(); ++i) {
      seen_[i] += part[i];
      const std::size_t by = std::min(i, kFirstTime);
      const double share = whole_[by] <= 0 ? 0 : as_double(seen_[by]) / as_double(whole_[by]);
      const std::int64_t until = std::llround(as_double(amount_[i]) * share);
      cut[i] = until - std::exchange(given_[i], until);
    }
    return cut;
  }

 private:
  const Sums amount_, whole_;
  Sums seen_{}, given_{};
};

/// The key under which work is compared; none if it is not.
using KeyOf = std::function<std::optional<std::string>(const WorkChange&)>;

std::string joined_key(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) key.append(part).append("\n");
  return key;
}

const std::string& name_of_work(const WorkChange& change) {
  return change.after.count > 0 ? change.after.name : change.before.name;
}

std::string innermost(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string outermost(const std::string& path) { return path.substr(0, path.find('/')); }

std::optional<std::string> key_of_name(const WorkChange& c) {
  if (name_of_work(c).empty()) return std::nullopt;
  return joined_key({to_string(c.kind), name_of_work(c)});
}
std::string key_of_place(const WorkChange& c) {
  return joined_key({to_string(c.kind), c.op, c.module, c.file, c.function});
}

/// Host work without a name is cut into pieces by calls, so that their number means nothing.
bool has_pieces(const WorkChange& change) {
  return runs_on_host(change.kind) && name_of_work(change).empty();
}

/// The figure that counts such work; empty if none does.
std::string_view count_figure(const WorkChange& change) {
  if (waits_for_event(name_of_work(change))) return "event_waits";
  if (change.kind == TaskKind::sync) return "syncs";
  for (const FigureRule& rule : figure_rules()) {
    if (rule.entry.unit == FigureUnit::count && rule.of_kind != nullptr &&
        rule.of_kind(change.kind))
      return rule.entry.name;
  }
  return {};
}

/// Work that comes and goes under one key.
struct Pool {
  std::vector<std::pair<WorkChange*, Sums>> come, gone;
  JobGroup coming, going;

  void add(WorkChange& change, const Sums& part) {
    const bool comes = change.more() > 0;
    (comes ? come : gone).emplace_back(&change, part);
    JobGroup group;
    group.name = comes ? change.after.name : change.before.name;
    add_sums(group, part);
    add_group(comes ? coming : going, group);
  }
  /// Two kernels of one name, one of which takes more than twice as long, are not one that moved.
  bool is_alike() const {
    const double now = as_double(coming.work.count()) * as_double(going.count);
    const double was = as_double(going.work.count()) * as_double(coming.count);
    return now <= 2 * was && was <= 2 * now;
  }
  /// Takes a share of the work off the places that lost it, and adds it to what the others had.
  void move(double share, bool moved = true) {
    const Sums moving = scaled_sums(sums_of(going), share);
    Cut given(moving, sums_of(coming)), taken(moving, sums_of(going));
    for (auto& [change, part] : come) {
      const Sums came = given.next(part);
      add_sums(change->before, came);
      if (moved) change->came += came[0];
    }
    for (auto& [change, part] : gone) add_sums(change->before, scaled_sums(taken.next(part), -1));
    for (auto* side : {&come, &gone}) {
      for (auto& [change, part] : *side) change->moved = change->moved || moved;
    }
  }
};

class WorkMatcher {
 public:
  WorkMatcher(const JobSummary& before, const JobSummary& after) : before_(before), after_(after) {
    match_identities();
    weigh_gone();
    const auto size = [&](const WorkChange& c) {
      const Sums part = difference(c);
      return std::to_string(part[3] / std::max<std::int64_t>(1, part[0]));
    };
    // The same op elsewhere is more likely the same work than another op with work of the name.
    net(Netted::moved, [&](const WorkChange& c) {
      return joined_key({to_string(c.kind), name_of_work(c), size(c), innermost(c.op), c.function});
    });
    net(Netted::moved, [&](const WorkChange& c) {
      const auto name = key_of_name(c);
      return name ? std::optional(*name + size(c)) : name;
    });
    net(Netted::moved, key_of_name);
    net(Netted::replaced, key_of_place);
    // A compiler or a graph of calls may merge kernels, cut them, and hide the ops between.
    net(Netted::replaced_elsewhere, of_kernels([](const WorkChange& c) {
          return joined_key({outermost(c.op), without_instances(c.module), c.function});
        }));
    net(Netted::replaced_elsewhere,
        of_kernels([](const WorkChange& c) { return innermost(c.op); }));
    net(Netted::replaced_elsewhere, [](const WorkChange& c) {
      return has_pieces(c) ? std::optional(std::string(to_string(c.kind))) : std::nullopt;
    });
    net_unstable();
  }
  std::vector<WorkChange> take() { return std::move(changes_); }

 private:
  static KeyOf of_kernels(std::string (*key)(const WorkChange&)) {
    return [key](const WorkChange& c) {
      const bool fits = c.kind == TaskKind::kernel && !key(c).empty();
      return fits ? std::optional(key(c)) : std::nullopt;
    };
  }

  void match_identities() {
    std::map<std::string, WorkChange> old;
    std::map<std::string, std::pair<JobGroup, JobGroup>> of_name;
    const auto change_of = [&](const JobGroup& group) {
      WorkChange change;
      change.kind = group.kind, change.op = group.op, change.module = group.module;
      change.file = group.file, change.function = group.function;
      return change;
    };
    for (const JobGroup& group : before_.groups) {
      WorkChange change = change_of(group);
      change.before = group;
      add_group(of_name[joined_key({to_string(group.kind), group.name})].first, group);
      old.emplace(key_of_place(change) + group.name, std::move(change));
    }
    for (std::size_t i = 0; i < after_.groups.size(); ++i) {
      const JobGroup& group = after_.groups[i];
      WorkChange& change = changes_.emplace_back(change_of(group));
      change.after = group, change.now = {static_cast<std::uint32_t>(i)};
      add_group(of_name[joined_key({to_string(group.kind), group.name})].second, group);
      const auto found = old.find(key_of_place(change) + group.name);
      if (found == old.end()) continue;
      change.before = std::move(found->second.before);
      old.erase(found);
    }
    for (auto& [key, change] : old) changes_.push_back(std::move(change));
    for (const auto& [name, sides] : of_name) {
      const auto& [was, is] = sides;
      if (was.count == is.count && was.work > 0ns && is.work > 0ns)
        paces_[name] = as_double(is.work.count()) / as_double(was.work.count());
    }
  }

  /// The work that came to a place, or went. Work that stayed is compared with itself at the pace
  /// of its name.
  Sums difference(const WorkChange& change) const {
    const auto found = paces_.find(key_of_name(change).value_or(""));
    const double pace = found == paces_.end() ? 1 : found->second;
    const Sums was = scaled_sums(sums_of(change.before), pace, kFirstTime);
    const Sums is = sums_of(change.after);
    const bool comes = change.more() > 0;
    Sums part{};
    for (std::size_t i = 0; i < part.size(); ++i)
      part[i] = std::max<std::int64_t>(0, comes ? is[i] - was[i] : was[i] - is[i]);
    return comes ? part : scaled_sums(part, 1 / pace, kFirstTime);
  }

  std::map<std::string, Pool> pools(const KeyOf& key_of) {
    std::map<std::string, Pool> all;
    for (WorkChange& change : changes_) {
      const bool is_whole = change.before.count == 0 || change.after.count == 0;
      if (change.more() == 0 || (has_pieces(change) && !is_whole)) continue;
      if (const auto key = key_of(change)) all[*key].add(change, difference(change));
    }
    return all;
  }

  enum class Netted : std::uint8_t { moved, replaced, replaced_elsewhere };
  /// Nets work with what came in its place.
  void net(Netted how, const KeyOf& key_of) {
    for (auto& [key, pool] : pools(key_of)) {
      if (pool.come.empty() || pool.gone.empty()) continue;
      const WorkChange& one = *pool.come.front().first;
      const bool moved = how == Netted::moved;
      if (moved && one.kind == TaskKind::kernel && !pool.is_alike()) continue;
      for (auto& [change, part] : pool.come) {
        if (!moved && change->before.count == 0 && pool.going.name != change->after.name)
          change->replaced = pool.going.name;
      }
      const double most = as_double(pool.coming.count) / as_double(pool.going.count);
      pool.move(gone_share(one) * (moved && !has_pieces(one) ? std::min(1.0, most) : 1),
                how != Netted::replaced);
    }
  }

  /// By how much a figure that counts work grew; nothing if a side lacks it.
  std::optional<std::int64_t> growth(std::string_view figure) const {
    const auto was = before_.figures.find(figure), is = after_.figures.find(figure);
    if (was == before_.figures.end() || is == after_.figures.end()) return std::nullopt;
    const FigureEntry& entry = figure_entry(figure);
    return figure_value(entry, is->second) - figure_value(entry, was->second);
  }
  std::map<std::string, Pool> by_figure() {
    return pools([&](const WorkChange& c) {
      const std::string figure(count_figure(c));
      return growth(figure) ? std::optional(figure) : std::nullopt;
    });
  }

  /// Work whose place differs from step to step is at none of its places in most, and so only seems
  /// to be gone.
  void weigh_gone() {
    for (const auto& [figure, pool] : by_figure()) {
      const double gone = as_double(pool.coming.count - *growth(figure));
      if (pool.going.count > 0)
        gone_[figure] = std::clamp(gone / as_double(pool.going.count), 0.0, 1.0);
    }
  }
  double gone_share(const WorkChange& change) const {
    const auto found = gone_.find(count_figure(change));
    return found == gone_.end() ? 1 : found->second;
  }

  /// Likewise, such work only seems to come if the figure shows less of it.
  void net_unstable() {
    for (auto& [figure, pool] : by_figure()) {
      const double seeming = as_double(pool.coming.count - pool.going.count - *growth(figure));
      if (seeming <= 0 || pool.coming.count == 0) continue;
      pool.going = pool.coming, pool.gone.clear();
      pool.move(std::min(1.0, seeming / as_double(pool.coming.count)));
    }
  }

  const JobSummary& before_;
  const JobSummary& after_;
  /// By which factor all work of a name became slower, if there is as much of it as before.
  std::map<std::string, double> paces_;
  /// The share of the work of a figure that is gone, not only from its place.
  std::map<std::string, double, std::less<>> gone_;
  std::vector<WorkChange> changes_;
};

}  // namespace

void add_group(JobGroup& sum, const JobGroup& group) {
  if (!group.name.empty() && sum.name.find(group.name) == std::string::npos)
    sum.name += (sum.name.empty() ? "" : ", ") + group.name;
  add_sums(sum, sums_of(group));
  sum.longest = std::max(sum.longest, group.longest);
  std::map<int, std::int64_t> lines(sum.lines.begin(), sum.lines.end());
  for (const auto& [line, count] : group.lines) lines[line] += count;
  sum.lines.assign(lines.begin(), lines.end());
}

std::vector<WorkChange> matched_work(const JobSummary& before, const JobSummary& after) {
  return WorkMatcher(before, after).take();
}

}  // namespace foretrace

#include "ask/check/matched_work.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "ask/check/job/figures.h"

namespace foretrace {
namespace {

using PlaceOfWork = std::tuple<TaskKind, std::string, std::string, std::string, std::string>;

PlaceOfWork place_of_work(const JobGroup& group) {
  return {group.kind, group.op, group.module, group.file, group.function};
}

using NameOfWork = std::pair<TaskKind, std::string>;

double as_double(std::int64_t number) { return static_cast<double>(number); }

/// Everything of a group that is summed over its tasks.
constexpr Nanoseconds JobGroup::*kTimes[] = {&JobGroup::work, &JobGroup::hidden, &JobGroup::least,
                                             &JobGroup::most};
constexpr std::int64_t JobGroup::*kCounts[] = {&JobGroup::count, &JobGroup::aside,
                                               &JobGroup::pageable};

/// What `more` has beyond `less`; never below 0.
JobGroup excess(const JobGroup& more, const JobGroup& less) {
  JobGroup rest;
  rest.name = more.name, rest.kind = more.kind, rest.longest = more.longest;
  for (const auto time : kTimes) rest.*time = std::max(0ns, more.*time - less.*time);
  for (const auto count : kCounts)
    rest.*count = std::max<std::int64_t>(0, more.*count - less.*count);
  rest.bytes = std::max(Bytes{}, more.bytes - less.bytes);
  return rest;
}

/// Cuts an amount into parts in proportion to weights, without losing any of it to rounding.
class Cut {
 public:
  Cut(std::int64_t amount, std::int64_t weights) : amount_(amount), weights_(weights) {}
  std::int64_t next(std::int64_t weight) {
    seen_ += weight;
    const std::int64_t until =
        weights_ <= 0 ? 0
                      : std::llround(as_double(amount_) * as_double(seen_) / as_double(weights_));
    return until - std::exchange(given_, until);
  }

 private:
  std::int64_t amount_, weights_, seen_ = 0, given_ = 0;
};

/// Cuts each sum of `amount` in proportion to the same sum of the parts, which make up `whole`.
class GroupCut {
 public:
  GroupCut(const JobGroup& amount, const JobGroup& whole)
      : bytes_(amount.bytes.count, whole.bytes.count), longest_(amount.longest) {
    for (const auto time : kTimes)
      cuts_.emplace_back((amount.*time).count(), (whole.*time).count());
    for (const auto count : kCounts) cuts_.emplace_back(amount.*count, whole.*count);
  }
  JobGroup next(const JobGroup& part) {
    JobGroup cut;
    cut.longest = longest_;
    std::size_t i = 0;
    for (const auto time : kTimes) cut.*time = Nanoseconds(cuts_[i++].next((part.*time).count()));
    for (const auto count : kCounts) cut.*count = cuts_[i++].next(part.*count);
    cut.bytes = Bytes{bytes_.next(part.bytes.count)};
    return cut;
  }

 private:
  std::vector<Cut> cuts_;
  Cut bytes_;
  Nanoseconds longest_;
};

JobGroup with_times(JobGroup group, double factor) {
  for (const auto time : kTimes) group.*time = scaled(group.*time, factor);
  return group;
}

JobGroup scaled_group(JobGroup group, double share) {
  group = with_times(std::move(group), share);
  for (const auto count : kCounts) group.*count = std::llround(share * as_double(group.*count));
  group.bytes = scaled(group.bytes, share);
  return group;
}

bool is_whole(const WorkChange& change) {
  return change.before.count == 0 || change.after.count == 0;
}

const std::string& name_of_work(const WorkChange& change) {
  return change.after.count > 0 ? change.after.name : change.before.name;
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

/// By how much a figure that counts work grew; nothing if a side lacks it.
std::optional<std::int64_t> growth(std::string_view figure, const JobSummary& before,
                                   const JobSummary& after) {
  const auto was = before.figures.find(figure), is = after.figures.find(figure);
  if (was == before.figures.end() || is == after.figures.end()) return std::nullopt;
  const FigureEntry& entry = figure_entry(figure);
  return figure_value(entry, is->second) - figure_value(entry, was->second);
}

std::string innermost(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The key of a change, and nothing if it is not compared in this way.
using KeyOf = std::function<std::optional<std::string>(const WorkChange&)>;

std::string joined_key(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) key.append(part).append("\n");
  return key;
}

std::string size_of_task(const WorkChange& change) {
  const bool comes = change.more() > 0;
  const JobGroup part =
      comes ? excess(change.after, change.before) : excess(change.before, change.after);
  return std::to_string(part.bytes.count / std::max<std::int64_t>(1, part.count));
}

class WorkMatcher {
 public:
  WorkMatcher(const JobSummary& before, const JobSummary& after) : before_(before), after_(after) {
    find_paces();
    match_identities();
    weigh_gone();
    const auto kind = [](const WorkChange& change) { return to_string(change.kind); };
    // The same op elsewhere is more likely the same work than another op with a kernel of the name.
    net([&](const WorkChange& c) {
      return joined_key({kind(c), name_of_work(c), size_of_task(c), innermost(c.op), c.function});
    });
    const auto is_named = [](const WorkChange& c) { return !name_of_work(c).empty(); };
    net([&](const WorkChange& c) {
      return is_named(c) ? std::optional(joined_key({kind(c), name_of_work(c), size_of_task(c)}))
                         : std::nullopt;
    });
    net([&](const WorkChange& c) {
      return is_named(c) ? std::optional(joined_key({kind(c), name_of_work(c)})) : std::nullopt;
    });
    match_places();
    // A compiler or a graph of calls may merge kernels, cut them, and hide the ops between.
    net_replaced([](const WorkChange& c) {
      return c.kind == TaskKind::kernel
                 ? std::optional(joined_key(
                       {c.op.substr(0, c.op.find('/')), without_instances(c.module), c.function}))
                 : std::nullopt;
    });
    net_replaced([](const WorkChange& c) {
      return c.kind == TaskKind::kernel && !c.op.empty() ? std::optional(innermost(c.op))
                                                         : std::nullopt;
    });
    net_unstable();
  }
  std::vector<WorkChange> take() { return std::move(changes_); }

 private:
  static void name_place(WorkChange& change, const JobGroup& group) {
    change.kind = group.kind, change.op = group.op, change.module = group.module;
    change.file = group.file, change.function = group.function;
  }

  void match_identities() {
    std::map<std::pair<PlaceOfWork, std::string>, const JobGroup*> old;
    for (const JobGroup& group : before_.groups)
      old.emplace(std::pair(place_of_work(group), group.name), &group);
    for (std::size_t i = 0; i < after_.groups.size(); ++i) {
      WorkChange& change = changes_.emplace_back();
      name_place(change, after_.groups[i]);
      change.after = after_.groups[i], change.now = {static_cast<std::uint32_t>(i)};
      const auto found = old.find({place_of_work(after_.groups[i]), after_.groups[i].name});
      if (found == old.end()) continue;
      change.before = *found->second;
      old.erase(found);
    }
    for (const auto& [key, group] : old) {
      WorkChange& change = changes_.emplace_back();
      name_place(change, *group);
      change.before = *group;
    }
  }

  /// How much longer work of each name takes if there is as much of it as before, wherever it is.
  void find_paces() {
    struct Sums {
      JobGroup before, after;
    };
    std::map<NameOfWork, Sums> sums;
    for (const JobGroup& group : before_.groups)
      add_group(sums[{group.kind, group.name}].before, group);
    for (const JobGroup& group : after_.groups)
      add_group(sums[{group.kind, group.name}].after, group);
    for (const auto& [name, sum] : sums) {
      if (sum.before.count != sum.after.count || sum.before.work <= 0ns || sum.after.work <= 0ns)
        continue;
      paces_[name] = as_double(sum.after.work.count()) / as_double(sum.before.work.count());
    }
  }

  /// What came to a place, or went: work that stayed is compared with itself at its new pace.
  JobGroup difference(const WorkChange& change) const {
    const auto found = paces_.find({change.kind, name_of_work(change)});
    const double pace = found == paces_.end() ? 1 : found->second;
    const JobGroup before = with_times(change.before, pace);
    return change.more() > 0 ? excess(change.after, before)
                             : with_times(excess(before, change.after), 1 / pace);
  }

  /// Work that comes and goes under one key.
  struct Pool {
    std::vector<std::pair<WorkChange*, JobGroup>> come, gone;
    JobGroup coming, going;

    void add(WorkChange& change, JobGroup part) {
      const bool comes = change.more() > 0;
      add_group(comes ? coming : going, part);
      (comes ? come : gone).emplace_back(&change, std::move(part));
    }
    const WorkChange& example() const { return *come.front().first; }
    /// Two kernels of one name, one of which takes more than twice as long, are not one kernel that
    /// moved.
    bool is_alike() const {
      const double now = as_double(coming.work.count()) * as_double(going.count);
      const double was = as_double(going.work.count()) * as_double(coming.count);
      return now <= 2 * was && was <= 2 * now;
    }
    /// Takes a share of the work off the places that lost it, and adds it to what the others had.
    void move(double share) {
      const JobGroup moving = scaled_group(going, share);
      GroupCut given(moving, coming), taken(moving, going);
      for (auto& [change, part] : come) add_signed(*change, given.next(part), 1);
      for (auto& [change, part] : gone) add_signed(*change, taken.next(part), -1);
    }

   private:
    static void add_signed(WorkChange& change, const JobGroup& part, int sign) {
      JobGroup& before = change.before;
      for (const auto time : kTimes) before.*time += sign * part.*time;
      for (const auto count : kCounts) before.*count += sign * part.*count;
      before.bytes += Bytes{sign * part.bytes.count};
      if (sign > 0) before.longest = std::max(before.longest, part.longest);
      change.moved = true;
    }
  };

  std::map<std::string, Pool> pools(const KeyOf& key_of) {
    std::map<std::string, Pool> all;
    for (WorkChange& change : changes_) {
      if (change.more() == 0 || (has_pieces(change) && !is_whole(change))) continue;
      if (const auto key = key_of(change)) all[*key].add(change, difference(change));
    }
    std::erase_if(all, [](const auto& entry) {
      return entry.second.come.empty() || entry.second.gone.empty();
    });
    return all;
  }

  std::map<std::string, Pool> by_figure() {
    std::map<std::string, Pool> all;
    for (WorkChange& change : changes_) {
      const std::string_view figure = count_figure(change);
      if (change.more() != 0 && growth(figure, before_, after_))
        all[std::string(figure)].add(change, difference(change));
    }
    return all;
  }

  /// Work whose place differs from step to step is at none of its places in most, and so only seems
  /// to be gone.
  void weigh_gone() {
    for (const auto& [figure, pool] : by_figure()) {
      const std::int64_t gone = pool.coming.count - *growth(figure, before_, after_);
      if (pool.going.count > 0)
        gone_[figure] = std::clamp(as_double(gone) / as_double(pool.going.count), 0.0, 1.0);
    }
  }
  double gone_share(const WorkChange& change) const {
    const auto found = gone_.find(count_figure(change));
    return found == gone_.end() ? 1 : found->second;
  }

  /// Likewise, such work only seems to come if the figure shows less of it.
  void net_unstable() {
    for (auto& [figure, pool] : by_figure()) {
      const std::int64_t seeming =
          pool.coming.count - pool.going.count - *growth(figure, before_, after_);
      if (seeming <= 0 || pool.coming.count == 0) continue;
      const double share = as_double(seeming) / as_double(pool.coming.count);
      pool.going = pool.coming;
      pool.gone.clear();
      pool.move(std::min(1.0, share));
    }
  }

  void net(const KeyOf& key_of) {
    for (auto& [key, pool] : pools(key_of)) {
      const WorkChange& one = pool.example();
      if (one.kind == TaskKind::kernel && !pool.is_alike()) continue;
      const double share =
          as_double(pool.coming.count) / as_double(std::max<std::int64_t>(1, pool.going.count));
      pool.move(gone_share(one) * (has_pieces(one) ? 1 : std::min(1.0, share)));
    }
  }

  /// Nets kernels with others under one key.
  void net_replaced(const KeyOf& key_of) {
    for (auto& [key, pool] : pools(key_of)) {
      for (auto& [change, part] : pool.come) {
        if (change->before.count == 0 && pool.going.name != change->after.name)
          change->replaced = pool.going.name;
      }
      pool.move(gone_share(pool.example()));
    }
  }

  /// Joins groups at one place that have other names than before: the same work, done by kernels
  /// of another library or precision.
  void match_places() {
    std::map<PlaceOfWork, std::pair<std::vector<WorkChange>, std::vector<WorkChange>>> places;
    std::vector<WorkChange> rest;
    for (WorkChange& change : changes_) {
      if (change.more() == 0 || !is_whole(change)) {
        rest.push_back(std::move(change));
        continue;
      }
      auto& [gone, come] = places[place_of_work(change.more() > 0 ? change.after : change.before)];
      (change.more() > 0 ? come : gone).push_back(std::move(change));
    }
    changes_ = std::move(rest);
    for (auto& [place, sides] : places) {
      auto& [gone, come] = sides;
      if (!gone.empty() && !come.empty()) {
        join(gone, come);
      } else if (gone.empty() && join_with_shrunk(place, come)) {
        continue;
      } else {
        for (auto* side : {&gone, &come})
          std::move(side->begin(), side->end(), std::back_inserter(changes_));
      }
    }
  }

  static WorkChange joined(const std::vector<WorkChange>& come) {
    WorkChange change;
    name_place(change, come.front().after);
    for (const WorkChange& one : come) {
      add_group(change.after, one.after);
      change.now.insert(change.now.end(), one.now.begin(), one.now.end());
    }
    return change;
  }

  void join(const std::vector<WorkChange>& gone, const std::vector<WorkChange>& come) {
    WorkChange change = joined(come);
    for (const WorkChange& one : gone) add_group(change.before, one.before);
    change.replaced = change.before.name;
    changes_.push_back(std::move(change));
  }

  /// Kernels of one name may have several shapes at a place, and only some may have been replaced:
  /// then the name has lost as many kernels as there are new ones. Returns whether that is so.
  bool join_with_shrunk(const PlaceOfWork& place, const std::vector<WorkChange>& come) {
    std::int64_t added = 0;
    for (const WorkChange& one : come) added += one.after.count;
    const auto shrunk =
        std::find_if(changes_.begin(), changes_.end(), [&](const WorkChange& known) {
          return known.kind == TaskKind::kernel && known.more() == -added &&
                 place_of_work(known.after) == place;
        });
    if (added == 0 || shrunk == changes_.end()) return false;
    // The shapes that stay are compared with themselves, because they would dilute the difference.
    WorkChange change = joined(come);
    change.before = shrunk->before;
    change.before.count -= shrunk->after.count;
    change.before.work -= shrunk->after.work;
    change.before.most -= shrunk->after.least;
    if (change.before.work <= 0ns) return false;
    shrunk->before = shrunk->after;
    change.replaced = change.before.name;
    changes_.push_back(std::move(change));
    return true;
  }

  const JobSummary& before_;
  const JobSummary& after_;
  /// By which factor work of a name became slower, wherever it is; 1 if absent.
  std::map<NameOfWork, double> paces_;
  std::map<std::string, double, std::less<>>
      gone_;  ///< Share of the work of a figure that is gone.
  std::vector<WorkChange> changes_;
};

}  // namespace

void add_group(JobGroup& sum, const JobGroup& group) {
  if (!group.name.empty() && sum.name.find(group.name) == std::string::npos)
    sum.name += (sum.name.empty() ? "" : ", ") + group.name;
  for (const auto time : kTimes) sum.*time += group.*time;
  for (const auto count : kCounts) sum.*count += group.*count;
  sum.longest = std::max(sum.longest, group.longest);
  sum.bytes += group.bytes;
  std::map<int, std::int64_t> lines(sum.lines.begin(), sum.lines.end());
  for (const auto& [line, count] : group.lines) lines[line] += count;
  sum.lines.assign(lines.begin(), lines.end());
}

std::vector<WorkChange> matched_work(const JobSummary& before, const JobSummary& after) {
  return WorkMatcher(before, after).take();
}

}  // namespace foretrace

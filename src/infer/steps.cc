// Training steps: from the profiler's markers ("ProfilerStep#7"), else from ranges that the program
// numbered itself ("step 7"), else from Optimizer.step annotations, else from the period of what
// was launched: the distance p at which the sequence of activities repeats itself best.

#include <algorithm>
#include <map>
#include <set>

#include "foretrace/step_name.h"
#include "infer/draft.h"

namespace foretrace::infer_detail {
namespace {

constexpr std::size_t kLeastRepeats = 3;
/// Fewer activities than this repeat themselves by chance.
constexpr std::size_t kLeastActivities = 18;
/// Share of activities that equal the one a period later.
constexpr double kLeastMatch = 0.95;

bool find_markers(Draft& draft) {
  std::map<std::string_view, MarkedStep> found;
  for (const HostRecord& record : draft.trace.hosts) {
    const std::string_view name = draft.name(record);
    if (name.substr(0, 13) != "ProfilerStep#") continue;
    const std::int64_t finish = record.start_ns + record.duration_ns;
    const auto [step, added] =
        found.try_emplace(name, MarkedStep{record.start_ns, finish, std::string(name)});
    if (added) continue;
    step->second.start = std::min(step->second.start, record.start_ns);
    step->second.finish = std::max(step->second.finish, finish);
  }
  for (auto& [name, step] : found) draft.steps.push_back(std::move(step));
  std::sort(draft.steps.begin(), draft.steps.end(),
            [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
  return !draft.steps.empty();
}

/// Ranges that the program numbered itself, as is the custom under profilers that know no steps.
/// Taken where one word's ranges follow each other without overlapping.
bool find_numbered_ranges(Draft& draft) {
  std::map<std::size_t, std::vector<MarkedStep>> by_word;
  for (const HostRecord& record : draft.trace.hosts) {
    if (record.kind != HostKind::annotation || record.duration_ns == 0) continue;
    const auto step = step_name(draft.name(record));
    if (!step) continue;
    by_word[step->word].push_back(
        {record.start_ns, record.start_ns + record.duration_ns, std::string(draft.name(record))});
  }
  std::vector<MarkedStep> best;
  for (auto& [word, steps] : by_word) {
    std::sort(steps.begin(), steps.end(),
              [](const MarkedStep& a, const MarkedStep& b) { return a.start < b.start; });
    bool in_line = steps.size() >= kLeastRepeats;
    for (std::size_t i = 1; i < steps.size(); ++i) in_line &= steps[i - 1].finish <= steps[i].start;
    // Of several words the one with fewer, longer ranges: a step has several micro-batches.
    if (in_line && (best.empty() || steps.size() < best.size())) best = std::move(steps);
  }
  if (best.empty()) return false;
  draft.steps = std::move(best);
  draft.assumptions.push_back("Steps are told by ranges such as \"" + draft.steps[0].name + "\".");
  return true;
}

/// A step ends where Optimizer.step ends.
bool find_optimizer_steps(Draft& draft) {
  std::vector<std::pair<std::int64_t, std::int64_t>> updates;
  for (const HostRecord& record : draft.trace.hosts) {
    if (draft.name(record).substr(0, 15) == "Optimizer.step#") {
      updates.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
  }
  std::sort(updates.begin(), updates.end());
  if (updates.size() < kLeastRepeats) return false;
  for (std::size_t i = 0; i + 1 < updates.size(); ++i) {
    draft.steps.push_back(
        {updates[i].second, updates[i + 1].second, "between updates " + std::to_string(i + 1)});
  }
  draft.assumptions.push_back("Steps are told by Optimizer.step; the trace has no step markers.");
  return true;
}

struct Activity {
  std::int64_t time;
  NameId name;
};

std::vector<Activity> activities_in_order(Draft& draft) {
  std::vector<Activity> activities;
  if (draft.by_launch.size() * 2 > draft.events.size()) {
    for (const std::uint32_t i : draft.by_launch) {
      activities.push_back({draft.call_of(draft.events[i])->start,
                            draft.trace.devices[draft.events[i].record].name});
    }
    return activities;
  }
  draft.steps_by_device = true;
  for (const DeviceEvent& event : draft.events) {
    activities.push_back({event.start, draft.trace.devices[event.record].name});
  }
  std::stable_sort(activities.begin(), activities.end(),
                   [](const Activity& a, const Activity& b) { return a.time < b.time; });
  return activities;
}

/// Where each name, or each stretch of them, is.
using Places = std::map<std::uint32_t, std::vector<std::size_t>>;
using Votes = std::map<std::size_t, std::size_t>;  ///< For each distance.

/// Every stretch of a few activities, by what it is made of. Where one layer ends and the next
/// begins there are stretches that occur once in a step, even if each activity in them occurs
/// often.
Places places_of_stretches(const std::vector<Activity>& activities) {
  constexpr std::size_t kLength = 8;
  Places places;
  for (std::size_t i = 0; i + kLength <= activities.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t k = 0; k < kLength; ++k) {
      hash = (hash ^ static_cast<std::uint32_t>(activities[i + k].name)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29U;
    }
    places[static_cast<std::uint32_t>(hash >> 32U)].push_back(i);
  }
  return places;
}

/// Of what comes back at the same distance nearly always, one vote each: a model has many alike
/// layers, but one beginning and one end.
Votes regular_distances(const Places& places) {
  Votes votes;
  for (const auto& [what, at] : places) {
    if (at.size() < kLeastRepeats) continue;
    std::vector<std::size_t> gaps;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) gaps.push_back(at[i + 1] - at[i]);
    const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
    std::nth_element(gaps.begin(), middle, gaps.end());
    const auto alike = std::count(gaps.begin(), gaps.end(), *middle);
    if (static_cast<std::size_t>(alike) * 4 >= gaps.size() * 3) ++votes[*middle];
  }
  return votes;
}

/// The `most` distances with most votes, weighed by their length.
void add_best(const Votes& votes, std::size_t activities, std::size_t most,
              std::set<std::size_t>& periods) {
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (const auto& [distance, count] : votes) {
    if (distance * kLeastRepeats <= activities + distance / 2)
      ranked.emplace_back(count * distance, distance);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > most) ranked.resize(most);
  for (const auto& [weight, distance] : ranked) periods.insert(distance);
}

/// Distances that occur often between two activities of one name. From short to long.
std::set<std::size_t> candidate_periods(const std::vector<Activity>& activities) {
  Places places;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    places[static_cast<std::uint32_t>(activities[i].name)].push_back(i);
  }
  Votes votes;
  for (const auto& [name, at] : places) {
    if (at.size() < kLeastRepeats) continue;
    std::map<std::size_t, std::size_t> distances;
    for (const std::size_t hop : {std::size_t{1}, std::size_t{2}, std::size_t{4}}) {
      for (std::size_t i = 0; i + hop < at.size(); ++i) ++distances[at[i + hop] - at[i]];
    }
    for (const auto& [distance, count] : distances) {
      if (count >= 2) votes[distance] += count;
    }
  }
  std::set<std::size_t> periods;
  add_best(votes, activities.size(), 40, periods);
  add_best(regular_distances(places_of_stretches(activities)), activities.size(), 10, periods);
  return periods;
}

double match(const std::vector<Activity>& activities, std::size_t period) {
  std::size_t alike = 0;
  for (std::size_t i = 0; i + period < activities.size(); ++i) {
    if (activities[i].name == activities[i + period].name) ++alike;
  }
  return static_cast<double>(alike) / static_cast<double>(activities.size() - period);
}

/// Where in the period a step begins: behind the longest pauses of the launching side.
std::size_t find_phase(const std::vector<Activity>& activities, std::size_t period) {
  std::vector<std::int64_t> pause(period, 0);
  for (std::size_t i = 1; i < activities.size(); ++i) {
    pause[i % period] += activities[i].time - activities[i - 1].time;
  }
  return static_cast<std::size_t>(std::max_element(pause.begin(), pause.end()) - pause.begin());
}

/// Activities and those that stand for them in the next repetition. Here and there a repetition may
/// have some that others lack:
///
///     A B C D   A B X C D   A B C D         next of the first C is the C behind the X
struct Repetition {
  double share = 0;                 ///< Of activities that have a next one.
  std::size_t lacking = 0;          ///< Those that have none.
  std::vector<std::uint32_t> next;  ///< kNone: there is none.
};

Repetition follow(const std::vector<Activity>& activities, std::size_t period) {
  constexpr std::size_t kMostLeftOut = 8;  ///< At one place.
  constexpr std::size_t kAgreeBehind = 4;
  const auto agree = [&](std::size_t one, std::size_t other) {
    for (std::size_t k = 0; k < kAgreeBehind; ++k) {
      if (one + k >= activities.size() || other + k >= activities.size()) return false;
      if (activities[one + k].name != activities[other + k].name) return false;
    }
    return true;
  };
  /// What is left out on either side until both agree again.
  const auto gap = [&](std::size_t one, std::size_t other) {
    for (std::size_t sum = 1; sum <= kMostLeftOut; ++sum) {
      for (std::size_t here = 0; here <= sum; ++here) {
        if (agree(one + here, other + sum - here)) return std::pair(here, sum - here);
      }
    }
    return std::pair(std::size_t{1}, std::size_t{1});
  };
  Repetition found{.next = std::vector<std::uint32_t>(activities.size(), kNone)};
  std::size_t alike = 0, all = 0;
  for (std::size_t i = 0, j = period; j < activities.size(); ++all) {
    if (activities[i].name == activities[j].name) {
      found.next[i++] = static_cast<std::uint32_t>(j++);
      ++alike;
      continue;
    }
    const auto [here, there] = gap(i, j);
    i += here, j += there;
    if (i >= j) return {};
  }
  found.lacking = all - alike;
  found.share = all == 0 ? 0 : static_cast<double>(alike) / static_cast<double>(all);
  return found;
}

/// Where repetitions begin: the way from next to next that leads through the longest pauses.
std::vector<std::size_t> begins_along(const std::vector<Activity>& activities,
                                      const Repetition& repetition, std::size_t period) {
  std::vector<std::size_t> best;
  std::int64_t most = -1;
  for (std::size_t first = 1; first <= period && first < activities.size(); ++first) {
    std::vector<std::size_t> way;
    std::int64_t pauses = 0;
    for (std::uint32_t at = static_cast<std::uint32_t>(first); at != kNone;
         at = repetition.next[at]) {
      way.push_back(at);
      pauses += activities[at].time - activities[at - 1].time;
    }
    if (pauses > most) most = pauses, best = std::move(way);
  }
  return best;
}

/// The shortest of those distances at which few activities lack a next one. Alike layers lack some
/// at every beginning and end of a step, the steps themselves only where one differs. 0: none.
std::size_t nearly_repeated(const std::vector<Activity>& activities,
                            const std::set<std::size_t>& candidates) {
  std::map<std::size_t, std::size_t> lacking;
  std::size_t least = activities.size();
  for (const std::size_t candidate : candidates) {
    const Repetition found = follow(activities, candidate);
    if (found.share < kLeastMatch) continue;
    lacking[candidate] = found.lacking;
    least = std::min(least, found.lacking);
  }
  for (const auto& [candidate, count] : lacking) {
    if (count <= 2 * least + 2) return candidate;
  }
  return 0;
}

/// With the same number of activities in each repetition; else with nearly the same.
std::vector<std::size_t> find_begins(const std::vector<Activity>& activities, std::size_t& period) {
  const std::set<std::size_t> candidates = candidate_periods(activities);
  double best = 0;
  for (const std::size_t candidate : candidates) {
    const double share = match(activities, candidate);
    if (share > best + 0.005) best = share, period = candidate;
  }
  std::vector<std::size_t> begins;
  if (best >= kLeastMatch) {
    for (std::size_t i = find_phase(activities, period); i < activities.size(); i += period)
      begins.push_back(i);
    return begins;
  }
  period = nearly_repeated(activities, candidates);
  if (period == 0) return begins;
  begins = begins_along(activities, follow(activities, period), period);
  return begins.size() < kLeastRepeats ? std::vector<std::size_t>{} : begins;
}

void find_period(Draft& draft) {
  const std::vector<Activity> activities = activities_in_order(draft);
  std::size_t period = 0;
  const std::vector<std::size_t> begins = find_begins(activities, period);
  if (begins.empty()) {
    draft.steps_by_device = false;
    return;
  }
  for (const std::size_t i : begins) {
    if (!draft.steps.empty()) draft.steps.back().finish = activities[i].time;
    if (i + period > activities.size()) break;
    draft.steps.push_back({activities[i].time, activities.back().time + 1,
                           "repetition " + std::to_string(draft.steps.size() + 1)});
  }
  draft.steps_by_period = true;
  draft.assumptions.push_back("Steps are told by the repetition of " + std::to_string(period) +
                              " device activities; the trace has no step markers.");
}

/// The distance to the next step is not known of a single one: it takes as long as its device work,
/// and what the host does first is not in it.
void note_short_step(Draft& draft) {
  if (draft.steps.size() != 1 || draft.events.empty()) return;
  const MarkedStep& step = draft.steps.front();
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
  for (const DeviceEvent& event : draft.events) {
    if (event.call == kNone || draft.calls[event.call].start < step.start ||
        draft.calls[event.call].start >= step.finish)
      continue;
    first = std::min(first, event.start);
    last = std::max(last, event.finish);
  }
  const std::int64_t mark = step.finish - step.start;
  if (first > last || (last - first) + (last - first) / 4 >= mark) return;
  draft.notes.add(Severity::warning,
                  "the only step counts from its first device activity to its last; what the host "
                  "does before and after, such as loading, is not in its time",
                  "its mark on the host is " + to_text(Nanoseconds(mark)) + " long");
}

}  // namespace

void find_steps(Draft& draft) {
  if (find_markers(draft) || find_numbered_ranges(draft) || find_optimizer_steps(draft))
    return note_short_step(draft);
  if (draft.events.size() >= kLeastActivities) find_period(draft);
}

std::int32_t step_at(const Draft& draft, std::int64_t time) {
  const auto behind =
      std::upper_bound(draft.steps.begin(), draft.steps.end(), time,
                       [](std::int64_t t, const MarkedStep& step) { return t < step.start; });
  if (behind == draft.steps.begin()) return -1;
  const bool over = behind == draft.steps.end() && time >= std::prev(behind)->finish;
  return over ? -1 : static_cast<std::int32_t>(behind - draft.steps.begin() - 1);
}

}  // namespace foretrace::infer_detail

// Finds steps in a trace that marks none: the distance p at which the sequence of activities
// repeats itself best. A CUDA graph is one activity. A period within one op, module call or range,
// or of modules that only their numbers tell apart ("blocks.7"), is a period of layers, not of
// steps. A step ends in something that layers lack: a wait for the device, a copy to the host, an
// update, or a launch of a graph; or it holds layers, which repeat within it. A loop without any of
// these has no steps here; its recording is answered as a whole. Without device work, the records
// of a thread are its activities.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/contains.h"
#include "base/statistics.h"
#include "infer/host/enclosing.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Shorter sequences repeat themselves by chance. Chosen.
constexpr std::size_t kMinActivities = 18;
/// Share of activities that must equal the one a period later. Chosen.
constexpr double kMinMatch = 0.95;
/// A longer period must match by this much more than a shorter one. Chosen.
constexpr double kClearlyBetter = 0.005;
/// Quarters of the distances between occurrences of a stretch that must be equal. Chosen.
constexpr std::size_t kQuartersAlike = 3;

struct Activity {
  std::int64_t time;
  NameId name;
  std::uint32_t within = kNone;  ///< The outermost host record in which it was launched.
};

std::vector<Activity> activities_in_order(const Records& records, bool& by_device) {
  std::vector<Activity> activities;
  if (records.by_launch.size() * 2 > records.events.size()) {
    const Enclosing enclosing(records);
    std::uint32_t before = kNone;
    for (const std::uint32_t i : records.by_launch) {
      const DeviceEvent& event = records.events[i];
      if (event.call == before) continue;
      before = event.call;
      const Call& call = records.calls[event.call];
      activities.push_back(
          {call.start, records.trace.devices[event.record].name, enclosing.record(call)});
    }
    return activities;
  }
  by_device = true;
  for (const DeviceEvent& event : records.events) {
    activities.push_back({event.start, records.trace.devices[event.record].name});
  }
  std::stable_sort(activities.begin(), activities.end(),
                   [](const Activity& a, const Activity& b) { return a.time < b.time; });
  return activities;
}

/// Lists the activities of each thread that has enough of them, the thread with most first.
std::vector<std::vector<Activity>> host_activities(const Records& records) {
  std::vector<std::vector<Activity>> threads(records.trace.threads.size());
  const Enclosing enclosing(records);
  for (const Enclosing::Range& range : enclosing.ranges())
    threads[range.thread].push_back({range.start, records.trace.hosts[range.record].name});
  std::erase_if(threads, [](const auto& all) { return all.size() < kMinActivities; });
  std::stable_sort(threads.begin(), threads.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return threads;
}

/// Names of host work with which a step ends, or a call that steps repeat but layers do not.
bool ends_step(std::string_view name) {
  return contains_any(name, {"ynchroniz", "GraphLaunch", "ptimizer", "aten::item"});
}
/// Names of kernels that update weights.
bool updates(std::string_view name) {
  return contains_any(name, {"ptimizer", "multi_tensor_apply", "adam", "Adam", "sgd_", "lamb_"});
}

/// The times at which something happened that a step needs, sorted.
using StepEnds = std::vector<std::int64_t>;

StepEnds ends_of_steps(const Records& records, bool by_device) {
  const Trace& trace = records.trace;
  enum : std::uint8_t { kEnds = 1, kUpdates = 2 };
  std::vector<std::uint8_t> names(trace.names.size(), 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = trace.names[static_cast<NameId>(i)];
    names[i] =
        static_cast<std::uint8_t>((ends_step(name) ? kEnds : 0) | (updates(name) ? kUpdates : 0));
  }
  StepEnds ends;
  for (const HostRecord& record : trace.hosts) {
    if ((names[static_cast<std::size_t>(record.name)] & kEnds) != 0)
      ends.push_back(record.start_ns);
  }
  for (const DeviceEvent& event : records.events) {
    const std::uint8_t name =
        names[static_cast<std::size_t>(trace.devices[event.record].name)] & kUpdates;
    if (event.kind != TaskKind::copy_out && name == 0) continue;
    const Call* call = records.call_of(event);
    ends.push_back(by_device || !call ? event.start : call->start);
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

/// Whether a range is that of a module with a number: "FSDP::forward (blocks.7)", "nn.Module:
/// Block_7". Other numbers in names ("op_id = 7") count up for ever.
bool names_numbered_module(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (name.starts_with("nn.Module: ")) return is_digit(name.back());
  for (std::size_t i = 1; i + 1 < name.size(); ++i)
    if (name[i] == '.' && is_letter(name[i - 1]) && is_digit(name[i + 1])) return true;
  return false;
}

/// Whether the activities from `begin` to `end` mostly repeat themselves, but not the repetition
/// with what surrounds it: the layers of a model between its begin and its end.
bool holds_layers(const std::vector<Activity>& activities, std::size_t begin, std::size_t end);

/// Decides whether repetitions can be steps.
class StepJudge {
 public:
  /// Device activities need an end of a step in each; records of a thread do not.
  StepJudge(const Records& records, bool by_device, bool of_device) : of_device_(of_device) {
    if (!of_device) return;
    ends_ = ends_of_steps(records, by_device);
    const Trace& trace = records.trace;
    std::vector<char> numbered(trace.names.size(), 0);
    for (std::size_t i = 0; i < numbered.size(); ++i)
      numbered[i] = names_numbered_module(trace.names[static_cast<NameId>(i)]) ? 1 : 0;
    for (const HostRecord& record : trace.hosts) {
      if (numbered[static_cast<std::size_t>(record.name)] != 0 && !is_call(record.kind))
        modules_.emplace_back(record.start_ns, record.name);
    }
    std::sort(modules_.begin(), modules_.end());
  }

  bool accepts(const std::vector<Activity>& activities,
               const std::vector<std::size_t>& begins) const {
    if (begins.size() < 2) return false;
    if (of_device_ && is_one_kernel(activities, begins[0], begins[1])) return false;
    std::size_t within = 0, layers = 0, ended = 0;
    std::set<NameId> before;
    for (std::size_t i = 1; i < begins.size(); ++i) {
      const Activity &from = activities[begins[i - 1]], &to = activities[begins[i]];
      within += to.within != kNone && to.within == from.within ? 1 : 0;
      const auto end = std::lower_bound(ends_.begin(), ends_.end(), from.time);
      ended += end != ends_.end() && *end < to.time ? 1 : 0;
      const std::set<NameId> modules = modules_between(from.time, to.time);
      layers += !before.empty() && are_others(modules, before) ? 1 : 0;
      before = modules;
    }
    if (2 * within >= begins.size() || 2 * layers >= begins.size() - 1) return false;
    constexpr std::size_t kMaxWithout = 10;  // One in this many may lack an end; chosen.
    return !of_device_ || (begins.size() - 1 - ended) * kMaxWithout <= begins.size() - 1 ||
           holds_layers(activities, begins[0], begins[1]);
  }

 private:
  static bool is_one_kernel(const std::vector<Activity>& activities, std::size_t begin,
                            std::size_t end) {
    const auto from = activities.begin() + static_cast<std::ptrdiff_t>(begin);
    return std::all_of(from, activities.begin() + static_cast<std::ptrdiff_t>(end),
                       [&](const Activity& each) { return each.name == from->name; });
  }

  std::set<NameId> modules_between(std::int64_t from, std::int64_t to) const {
    std::set<NameId> names;
    for (auto at = std::lower_bound(modules_.begin(), modules_.end(), std::pair(from, NameId{}));
         at != modules_.end() && at->first < to; ++at)
      names.insert(at->second);
    return names;
  }

  static bool are_others(const std::set<NameId>& modules, const std::set<NameId>& before) {
    return !modules.empty() && std::none_of(modules.begin(), modules.end(),
                                            [&](NameId name) { return before.contains(name); });
  }

  bool of_device_;
  StepEnds ends_;
  std::vector<std::pair<std::int64_t, NameId>> modules_;  ///< By time.
};

/// Positions of each name, or of each stretch of names.
using Positions = std::map<std::uint32_t, std::vector<std::size_t>>;
using VotesByDistance = std::map<std::size_t, std::size_t>;  ///< Votes by distance.

/// Returns the positions of every stretch of a few activities, by content. At the border between
/// two layers there are stretches that occur once in a step, even if each activity in them occurs
/// often.
Positions positions_of_stretches(const std::vector<Activity>& activities) {
  constexpr std::size_t kLength = 8;
  Positions positions;
  for (std::size_t i = 0; i + kLength <= activities.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t k = 0; k < kLength; ++k) {
      hash = (hash ^ static_cast<std::uint32_t>(activities[i + k].name)) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29U;
    }
    positions[static_cast<std::uint32_t>(hash >> 32U)].push_back(i);
  }
  return positions;
}

/// Gives one vote to the distance of each stretch that nearly always repeats at the same distance:
/// a model has many layers that are alike, but one beginning and one end.
VotesByDistance regular_distances(const Positions& positions) {
  VotesByDistance votes;
  for (const auto& [hash, at] : positions) {
    if (at.size() < kMinRepeats) continue;
    std::vector<std::size_t> gaps;
    for (std::size_t i = 0; i + 1 < at.size(); ++i) gaps.push_back(at[i + 1] - at[i]);
    const std::size_t typical = lower_median(gaps);
    const auto alike = std::count(gaps.begin(), gaps.end(), typical);
    if (static_cast<std::size_t>(alike) * 4 >= gaps.size() * kQuartersAlike) ++votes[typical];
  }
  return votes;
}

/// Adds the `most` distances with most votes, weighted by their length.
void add_best(const VotesByDistance& votes, std::size_t activities, std::size_t most,
              std::set<std::size_t>& periods) {
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (const auto& [distance, count] : votes) {
    if (distance * kMinRepeats <= activities + distance / 2)
      ranked.emplace_back(count * distance, distance);
  }
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > most) ranked.resize(most);
  for (const auto& [weight, distance] : ranked) periods.insert(distance);
}

/// Returns distances that occur often between two activities of the same name, in ascending order.
std::set<std::size_t> candidate_periods(const std::vector<Activity>& activities) {
  Positions positions;
  for (std::size_t i = 0; i < activities.size(); ++i) {
    positions[static_cast<std::uint32_t>(activities[i].name)].push_back(i);
  }
  VotesByDistance votes;
  for (const auto& [name, at] : positions) {
    if (at.size() < kMinRepeats) continue;
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
  add_best(regular_distances(positions_of_stretches(activities)), activities.size(), 10, periods);
  return periods;
}

double match(const std::vector<Activity>& activities, std::size_t period) {
  std::size_t alike = 0;
  for (std::size_t i = 0; i + period < activities.size(); ++i) {
    if (activities[i].name == activities[i + period].name) ++alike;
  }
  return static_cast<double>(alike) / static_cast<double>(activities.size() - period);
}

/// Returns where steps begin: after the longest pauses of the launching side.
std::vector<std::size_t> begins_at(const std::vector<Activity>& activities, std::size_t period) {
  std::vector<std::int64_t> pause(period, 0);
  for (std::size_t i = 1; i < activities.size(); ++i) {
    pause[i % period] += activities[i].time - activities[i - 1].time;
  }
  std::vector<std::size_t> begins;
  for (auto i =
           static_cast<std::size_t>(std::max_element(pause.begin(), pause.end()) - pause.begin());
       i < activities.size(); i += period)
    begins.push_back(i);
  return begins;
}

/// Activities and their counterparts in the next repetition. Occasionally a repetition has
/// activities that others lack:
///
///     A B C D   A B X C D   A B C D         next of the first C is the C after the X
struct Repetition {
  double share = 0;                 ///< Share of activities that have a counterpart.
  std::size_t lacking = 0;          ///< Number of activities that have none.
  std::vector<std::uint32_t> next;  ///< Index of the counterpart, or kNone.
};

bool agree(const std::vector<Activity>& activities, std::size_t i, std::size_t j) {
  constexpr std::size_t kAgreeBehind = 4;  // Activities; chosen.
  for (std::size_t k = 0; k < kAgreeBehind; ++k) {
    if (i + k >= activities.size() || j + k >= activities.size()) return false;
    if (activities[i + k].name != activities[j + k].name) return false;
  }
  return true;
}

/// Counts the activities to leave out on either side until both agree again.
std::pair<std::size_t, std::size_t> gap(const std::vector<Activity>& activities, std::size_t i,
                                        std::size_t j) {
  constexpr std::size_t kMaxLeftOut = 8;  // Activities left out at one place; chosen.
  for (std::size_t sum = 1; sum <= kMaxLeftOut; ++sum) {
    for (std::size_t skipped = 0; skipped <= sum; ++skipped) {
      if (agree(activities, i + skipped, j + sum - skipped)) return {skipped, sum - skipped};
    }
  }
  return {1, 1};
}

Repetition follow(const std::vector<Activity>& activities, std::size_t period) {
  Repetition found{.next = std::vector<std::uint32_t>(activities.size(), kNone)};
  std::size_t alike = 0, all = 0;
  for (std::size_t i = 0, j = period; j < activities.size(); ++all) {
    if (activities[i].name == activities[j].name) {
      found.next[i++] = static_cast<std::uint32_t>(j++);
      ++alike;
      continue;
    }
    const auto [skipped, skipped_later] = gap(activities, i, j);
    i += skipped, j += skipped_later;
    if (i >= j) return {};
  }
  found.lacking = all - alike;
  found.share = all == 0 ? 0 : static_cast<double>(alike) / static_cast<double>(all);
  return found;
}

/// Returns where repetitions begin: the path along counterparts that leads through the longest
/// pauses.
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

bool holds_layers(const std::vector<Activity>& activities, std::size_t begin, std::size_t end) {
  constexpr std::size_t kMinLayers = 4;  // Chosen.
  constexpr double kMinOfLayers = 0.8;   // Share of a step that its layers are; chosen.
  const std::vector<Activity> step(activities.begin() + static_cast<std::ptrdiff_t>(begin),
                                   activities.begin() + static_cast<std::ptrdiff_t>(end));
  const double share =
      std::max(match(activities, step.size()), follow(activities, step.size()).share);
  const std::set<std::size_t> layers = candidate_periods(step);
  return std::any_of(layers.begin(), layers.end(), [&](std::size_t layer) {
    return layer > 1 && layer * kMinLayers <= step.size() && match(step, layer) >= kMinOfLayers &&
           match(activities, layer) < share - kClearlyBetter;
  });
}

/// Returns where repetitions begin for the best period with the same number of activities in each
/// repetition.
std::vector<std::size_t> repeated(const std::vector<Activity>& activities,
                                  const std::set<std::size_t>& candidates, const StepJudge& judge,
                                  std::size_t& period) {
  std::vector<std::size_t> begins;
  double best = 0;
  for (const std::size_t candidate : candidates) {
    const double share = match(activities, candidate);
    if (share <= best + kClearlyBetter || share < kMinMatch) continue;
    std::vector<std::size_t> found = begins_at(activities, candidate);
    if (!judge.accepts(activities, found)) continue;
    best = share, period = candidate, begins = std::move(found);
  }
  return begins;
}

/// Returns where repetitions of nearly the same length begin, for the shortest candidate whose
/// number of activities without counterpart is nearly the least. With the period of a layer,
/// activities lack a counterpart at every beginning and end of a step; with that of a step, only if
/// a step differs.
std::vector<std::size_t> nearly_repeated(const std::vector<Activity>& activities,
                                         const std::set<std::size_t>& candidates,
                                         const StepJudge& judge, std::size_t& period) {
  std::map<std::size_t, std::pair<std::size_t, std::vector<std::size_t>>> lacking;
  std::size_t least = activities.size();
  for (const std::size_t candidate : candidates) {
    const Repetition found = follow(activities, candidate);
    if (found.share < kMinMatch) continue;
    std::vector<std::size_t> begins = begins_along(activities, found, candidate);
    if (!judge.accepts(activities, begins)) continue;
    least = std::min(least, found.lacking);
    lacking[candidate] = {found.lacking, std::move(begins)};
  }
  for (auto& [candidate, found] : lacking) {
    if (found.first > 2 * least + 2) continue;
    period = candidate;
    if (found.second.size() < kMinRepeats) return {};
    return std::move(found.second);
  }
  return {};
}

struct Repetitions {
  std::vector<std::size_t> begins;  ///< Indices of activities; empty if nothing repeats.
  std::size_t period = 0;           ///< Number of activities.
};

Repetitions find_repetitions(const std::vector<Activity>& activities, const StepJudge& judge) {
  Repetitions found;
  if (activities.size() < kMinActivities) return found;
  const std::set<std::size_t> candidates = candidate_periods(activities);
  found.begins = repeated(activities, candidates, judge, found.period);
  if (found.begins.empty())
    found.begins = nearly_repeated(activities, candidates, judge, found.period);
  return found;
}

void mark_repetitions(const std::vector<Activity>& activities, const StepJudge& judge,
                      std::string_view unit, Steps& steps, Assumptions& assumptions) {
  const auto [begins, period] = find_repetitions(activities, judge);
  for (const std::size_t i : begins) {
    if (!steps.marks.empty()) steps.marks.back().finish = activities[i].time;
    if (i + period > activities.size()) break;
    steps.marks.push_back({activities[i].time, activities.back().time + 1,
                           "repetition " + std::to_string(steps.marks.size() + 1)});
  }
  if (begins.empty()) return;
  steps.source = StepSource::period;
  assumptions.push_back(fmt::format(
      "Steps are found by the repetition of {} {}; the trace has no step markers.", period, unit));
}

}  // namespace

Steps find_period(const Records& records, Assumptions& assumptions) {
  Steps steps;
  if (!records.events.empty()) {
    const std::vector<Activity> activities = activities_in_order(records, steps.by_device);
    const StepJudge judge(records, steps.by_device, true);
    mark_repetitions(activities, judge, "device activities", steps, assumptions);
    steps.by_device = steps.by_device && !steps.marks.empty();
    return steps;
  }
  if (is_snapshot(records.trace)) return steps;
  const StepJudge judge(records, false, false);
  for (const std::vector<Activity>& activities : host_activities(records)) {
    mark_repetitions(activities, judge, "records of a thread", steps, assumptions);
    if (!steps.marks.empty()) break;
  }
  return steps;
}

void find_repetition_in_only_step(const Records& records, Steps& steps) {
  bool by_device = false;
  std::vector<Activity> activities = activities_in_order(records, by_device);
  // A loop may launch nothing but one kernel, and so repeat only in its waits.
  for (const Call& call : records.calls) {
    const NameId name = records.trace.hosts[call.record].name;
    if (call.launched.empty() && ends_step(records.trace.names[name]))
      activities.push_back({.time = call.start, .name = name});
  }
  std::stable_sort(activities.begin(), activities.end(),
                   [](const Activity& a, const Activity& b) { return a.time < b.time; });
  std::erase_if(activities, [&](const Activity& each) {
    return each.time < steps.marks[0].start || each.time >= steps.marks[0].finish;
  });
  // The mark is the outermost range around all of them.
  for (Activity& each : activities) each.within = kNone;
  const StepJudge judge(records, by_device, true);
  const std::size_t count = find_repetitions(activities, judge).begins.size();
  if (count < kMinRepeats) return;
  steps.shortcomings.push_back(
      {.name = "repeats_within_step",
       .text = fmt::format("the work repeats {} times within the only step \"{}\", so its time is "
                           "that of {} iterations; mark each of them, as with profiler.step()",
                           count, steps.marks[0].name, count),
       .share = static_cast<double>(count)});
}

}  // namespace foretrace::infer_detail

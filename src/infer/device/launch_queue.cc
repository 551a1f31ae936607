// The launch queue: if some hundred activities are outstanding (1022 on the devices seen), a launch
// has to wait, and returns when one of them is done. The evidence is launches that take far longer
// than others, while the number outstanding at their return is always the same; that number is the
// depth of the queue. A host that runs ahead is then paced by the device:
//
//     launch n waits for the finish of activity n - depth
//
// The number seen varies by one, because the finish that makes room is recorded just before or
// just after the return. Of two neighbours, the one that explains more waiting is the depth.
//
// Some activities take no place in the queue, and records of events, which are not seen, take one
// (seen: 1,020 places without the copies within the device, 1,134 to 1,140 with them). Then the
// number varies with what is outstanding, and the depth is a band: a launch that took long waits
// for what had finished when it returned, the others for the largest number of the band.
//
// If every launch waits, none is longer than the others; then all of them must agree. That would be
// wrong for a host that keeps its lead over the device by chance, launch for launch.

#include <algorithm>
#include <fmt/core.h>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/statistics.h"
#include "base/wording.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// A queue holds at least this many activities; recalled: CUDA's has room for about 1000 launches.
constexpr std::int64_t kMinDepth = 100;
constexpr std::size_t kEnoughLaunches = 5;  ///< Number needed to infer the depth; chosen.
/// A launch was held back if it takes at least this long, in ns, and this many times as long as the
/// lower quartile of all. Chosen; recalled: a launch takes 2 to 10 us if the queue has room.
constexpr std::int64_t kMinHeldBack = 50'000;
constexpr std::int64_t kTimesHeldBack = 8;
/// Number of tenths of the slow launches that must agree on the depth. Chosen.
constexpr std::size_t kTenthsAgreeing = 6;
/// Likewise of all launches since the queue was first full, if none is slow; they are at least half
/// of the recording.
constexpr std::size_t kTenthsOfAll = 9;
/// The width of a band is at most one in this many places. Chosen; 0.6 % was seen.
constexpr std::int64_t kDepthForWidth = 100;

struct CompletionCounter {
  explicit CompletionCounter(const Records& records) {
    finishes.reserve(records.events.size());
    for (std::size_t i = 0; i < records.events.size(); ++i) {
      finishes.emplace_back(records.events[i].finish, static_cast<std::uint32_t>(i));
    }
    std::sort(finishes.begin(), finishes.end());
    orphans = static_cast<std::int64_t>(records.events.size() - records.by_launch.size());
    orphans_are_first = are_first(records);
  }
  /// Whether every activity without a launch runs before those with one, on its stream.
  static bool are_first(const Records& records) {
    for (const auto& [begin, end] : records.streams) {
      for (std::size_t i = begin + 1; i < end; ++i) {
        if (records.events[i].call == kNone && records.events[i - 1].call != kNone) return false;
      }
    }
    return true;
  }
  std::int64_t done_at(std::int64_t time) const {
    return std::upper_bound(finishes.begin(), finishes.end(), std::pair(time, kNone)) -
           finishes.begin();
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> finishes;
  std::int64_t orphans = 0;  ///< Activities without a launch, taken as launched before the others.
  bool orphans_are_first = false;
};

struct Launch {
  Call* call;
  std::int64_t before;  ///< Activities launched before it.
  bool slow = false;
  std::int64_t outstanding = 0;  ///< Activities before it that were not done when it returned.
};

/// Returns the launches in order. One that is ahead launches as many activities as the latest of
/// the same name, for example of a graph, whose work was recorded.
std::vector<Launch> launches_in_order(Records& records, const CompletionCounter& counter) {
  std::vector<Launch> launches;
  std::map<NameId, std::int64_t> activities;
  for (const std::uint32_t event : records.by_launch) {
    Call& call = records.calls[records.events[event].call];
    if (!launches.empty() && launches.back().call == &call) continue;
    launches.push_back({&call, std::ssize(call.launched)});
    activities[records.trace.hosts[call.record].name] = std::ssize(call.launched);
  }
  for (const std::uint32_t ahead : records.ahead) {
    Call& call = records.calls[ahead];
    launches.push_back(
        {&call, activities.try_emplace(records.trace.hosts[call.record].name, 1).first->second});
  }
  std::stable_sort(launches.begin(), launches.end(),
                   [](const Launch& a, const Launch& b) { return a.call->start < b.call->start; });
  std::int64_t before = 0;
  for (Launch& launch : launches) {
    before += std::exchange(launch.before, before);
    launch.outstanding = launch.before + counter.orphans - counter.done_at(launch.call->finish);
  }
  return launches;
}

/// The number of places in the queue: the numbers of a band if it varies with what is outstanding.
struct Depth {
  std::int64_t least = 0, most = 0;
  std::int64_t of(const Launch& launch) const {
    const bool seen = launch.slow && launch.outstanding >= least && launch.outstanding <= most;
    return seen ? launch.outstanding : most;
  }
};

/// The finish of the activity that a launch waits for if the queue has this depth.
struct FreedPlace {
  std::int64_t time = 0;
  std::uint32_t event = kNone;  ///< kNone if the launch waits for nothing that explains it.
};

FreedPlace place_for(const Launch& launch, std::int64_t depth, const Records& records,
                     const CompletionCounter& counter) {
  const std::int64_t place = launch.before + counter.orphans - depth - 1;
  if (place < 0 || place >= std::ssize(counter.finishes)) return {};
  const auto& [time, event] = counter.finishes[static_cast<std::size_t>(place)];
  const bool explains = time <= launch.call->finish + records.tolerance;
  const bool is_known = records.events[event].call != kNone || counter.orphans_are_first;
  return explains && is_known ? FreedPlace{time, event} : FreedPlace{};
}

/// How long launches wait for places in a queue of this depth.
std::int64_t explained_by(std::int64_t depth, const std::vector<Launch>& launches,
                          const Records& records, const CompletionCounter& counter) {
  std::int64_t total = 0;
  for (const Launch& launch : launches) {
    const FreedPlace freed = place_for(launch, depth, records, counter);
    if (freed.event == kNone) continue;
    total +=
        std::max<std::int64_t>(std::min(freed.time, launch.call->finish) - launch.call->start, 0);
  }
  return total;
}

/// Marks the launches that take far longer than others.
void mark_slow(std::vector<Launch>& launches) {
  std::vector<std::int64_t> durations;
  durations.reserve(launches.size());
  for (const Launch& launch : launches)
    durations.push_back(launch.call->finish - launch.call->start);
  const std::int64_t slow = std::max(kMinHeldBack, kTimesHeldBack * lower_quartile(durations));
  for (Launch& launch : launches)
    launch.slow = !launch.call->waits && launch.call->finish - launch.call->start >= slow;
}

/// Returns the band that holds the most of these numbers and is `width` wide.
std::pair<Depth, std::size_t> fullest_band(const std::map<std::int64_t, std::size_t>& numbers,
                                           const std::function<std::int64_t(std::int64_t)>& width) {
  std::pair<Depth, std::size_t> best;
  for (auto from = numbers.begin(); from != numbers.end(); ++from) {
    Depth band{from->first, from->first};
    std::size_t held = 0;
    for (auto at = from; at != numbers.end() && at->first <= from->first + width(from->first); ++at)
      held += at->second, band.most = at->first;
    if (held > best.second) best = {band, held};
  }
  return best;
}

/// Whether nearly all launches agree on the depth once the host is so far ahead.
bool all_agree(const Depth& depth, const std::vector<Launch>& launches) {
  const auto is_full = [&](const Launch& launch) {
    return launch.outstanding >= depth.least && launch.outstanding <= depth.most;
  };
  const auto first = std::find_if(launches.begin(), launches.end(), is_full);
  const auto since = static_cast<std::size_t>(launches.end() - first);
  const auto full = static_cast<std::size_t>(std::count_if(first, launches.end(), is_full));
  return depth.least >= kMinDepth && full >= static_cast<std::size_t>(kMinDepth) &&
         2 * full >= launches.size() && full * 10 >= since * kTenthsOfAll;
}

/// Returns how many activities are outstanding at the return of most slow launches, if any.
std::optional<Depth> find_depth(std::vector<Launch>& launches, const Records& records,
                                const CompletionCounter& counter) {
  if (launches.size() < kEnoughLaunches) return {};
  mark_slow(launches);
  std::map<std::int64_t, std::size_t> of_slow, of_all;
  std::size_t slow_launches = 0;
  for (const Launch& launch : launches) {
    if (launch.outstanding < kMinDepth) continue;
    ++of_all[launch.outstanding];
    if (!launch.slow) continue;
    ++slow_launches;
    ++of_slow[launch.outstanding];
  }
  const auto one = [](std::int64_t) -> std::int64_t { return 1; };
  const auto some = [](std::int64_t depth) { return depth / kDepthForWidth; };
  auto [depth, agreeing] = fullest_band(slow_launches < kEnoughLaunches ? of_all : of_slow, one);
  if (slow_launches < kEnoughLaunches) {
    if (!all_agree(depth, launches)) {
      std::tie(depth, agreeing) = fullest_band(of_all, some);
      return all_agree(depth, launches) ? std::optional(depth) : std::nullopt;
    }
  } else if (agreeing * 10 < slow_launches * kTenthsAgreeing) {
    std::tie(depth, agreeing) = fullest_band(of_slow, some);
    if (agreeing * 10 < slow_launches * kTenthsAgreeing) return {};
    return depth;
  }
  const auto explained = [&](std::int64_t number) {
    return explained_by(number, launches, records, counter);
  };
  const std::int64_t best = depth.least;
  const std::int64_t number = explained(best + 1) > explained(best) ? best + 1 : best;
  return Depth{number, number};
}

/// Without a launch whose work was recorded, the lead of the host is not known.
std::string depth_text(const Depth& depth, bool is_known) {
  std::string places = grouped(depth.most);
  if (!is_known) return fmt::format("was full, with at least {} activities", places);
  if (depth.least != depth.most) places = grouped(depth.least) + " to " + places;
  return fmt::format("holds {} activities, as seen in this trace", places);
}

}  // namespace

void resolve_launch_queue(Records& records, Assumptions& assumptions) {
  const CompletionCounter counter(records);
  std::vector<Launch> launches = launches_in_order(records, counter);
  const std::optional<Depth> depth = find_depth(launches, records, counter);
  if (!depth) return;
  std::int64_t bound = 0;
  for (const Launch& launch : launches) {
    const auto [freed, event] = place_for(launch, depth->of(launch), records, counter);
    if (event == kNone) continue;
    Call& call = *launch.call;
    call.queue_event = event;
    if (freed <= call.start) continue;
    ++bound;
    call.queued = true;
    call.launch_start = std::clamp(freed, call.launch_start, call.finish);
    call.launch_finish = std::max(call.launch_finish, call.launch_start);
  }
  assumptions.push_back(fmt::format("The launch queue {}; {} waited for a place in it.",
                                    depth_text(*depth, !records.by_launch.empty()),
                                    counted(bound, "launch")));
}

}  // namespace foretrace::infer_detail

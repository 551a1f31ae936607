// The launch queue: if some hundred activities are outstanding (1022 on the devices seen), a launch
// has to wait, and returns when one of them is done. The evidence is launches that take far longer
// than others, while the number outstanding at their return is always the same; that number is the
// depth of the queue. A host that runs ahead is then paced by the device:
//
//     launch n waits for the finish of activity n - depth
//
// The number seen varies by one, because the finish that makes room is recorded just before or
// just after the return. Of two neighbours, the one that explains more waiting is the depth.

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "base/statistics.h"
#include "base/wording.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// A queue holds at least this many activities; recalled: CUDA's has room for about 1000 launches.
constexpr std::int64_t kLeastDepth = 100;
constexpr std::size_t kEnoughLaunches = 5;  ///< Number needed to infer the depth; chosen.
/// A launch was held back if it takes at least this long, in ns, and this many times as long as the
/// lower quartile of all. Chosen; recalled: a launch takes 2 to 10 us if the queue has room.
constexpr std::int64_t kLeastHeldBack = 50'000;
constexpr std::int64_t kTimesHeldBack = 8;
/// Number of tenths of the slow launches that must agree on the depth. Chosen.
constexpr std::size_t kTenthsAgreeing = 6;

struct CompletionCounter {
  explicit CompletionCounter(const Records& records) {
    finishes.reserve(records.events.size());
    for (std::size_t i = 0; i < records.events.size(); ++i) {
      finishes.emplace_back(records.events[i].finish, static_cast<std::uint32_t>(i));
    }
    std::sort(finishes.begin(), finishes.end());
    orphans = static_cast<std::int64_t>(records.events.size() - records.by_launch.size());
  }
  std::int64_t done_at(std::int64_t time) const {
    return std::upper_bound(finishes.begin(), finishes.end(), std::pair(time, kNone)) -
           finishes.begin();
  }
  std::vector<std::pair<std::int64_t, std::uint32_t>> finishes;
  std::int64_t orphans = 0;
};

struct Launch {
  Call* call;
  std::int64_t before;  ///< Activities launched before it.
};

std::vector<Launch> launches_in_order(Records& records) {
  std::vector<Launch> launches;
  for (std::size_t i = 0; i < records.by_launch.size(); ++i) {
    const std::uint32_t call = records.events[records.by_launch[i]].call;
    if (launches.empty() || launches.back().call != &records.calls[call]) {
      launches.push_back({&records.calls[call], static_cast<std::int64_t>(i)});
    }
  }
  return launches;
}

/// The finish of the activity that a launch waits for if the queue has this depth.
struct FreedPlace {
  std::int64_t time = 0;
  std::uint32_t event = kNone;  ///< kNone if the launch waits for nothing that explains it.
};

FreedPlace place_for(const Launch& launch, std::int64_t depth, const Records& records,
                     const CompletionCounter& counter) {
  const std::int64_t place = launch.before + counter.orphans - depth - 1;
  if (place < 0) return {};
  const auto& [time, event] = counter.finishes[static_cast<std::size_t>(place)];
  const bool explains = time <= launch.call->finish + records.tolerance;
  return explains && records.events[event].call != kNone ? FreedPlace{time, event} : FreedPlace{};
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

/// Returns the number of activities outstanding at the return of most slow launches, or 0.
std::int64_t find_depth(const std::vector<Launch>& launches, const Records& records,
                        const CompletionCounter& counter) {
  std::vector<std::int64_t> durations;
  durations.reserve(launches.size());
  for (const Launch& launch : launches) {
    durations.push_back(launch.call->finish - launch.call->start);
  }
  if (durations.size() < kEnoughLaunches) return 0;
  const std::int64_t slow = std::max(kLeastHeldBack, kTimesHeldBack * lower_quartile(durations));
  std::map<std::int64_t, std::size_t> outstanding;
  std::size_t slow_launches = 0;
  for (const Launch& launch : launches) {
    if (launch.call->waits || launch.call->finish - launch.call->start < slow) continue;
    const std::int64_t depth =
        launch.before + counter.orphans - counter.done_at(launch.call->finish);
    if (depth < kLeastDepth) continue;
    ++slow_launches;
    ++outstanding[depth];
  }
  if (slow_launches < kEnoughLaunches) return 0;
  std::int64_t best = 0;
  std::size_t most = 0;
  for (const auto& [depth, count] : outstanding) {
    std::size_t near = count;
    if (const auto next = outstanding.find(depth + 1); next != outstanding.end()) {
      near += next->second;
    }
    if (near > most) most = near, best = depth;
  }
  if (most * 10 < slow_launches * kTenthsAgreeing) return 0;
  const auto explained = [&](std::int64_t depth) {
    return explained_by(depth, launches, records, counter);
  };
  return explained(best + 1) > explained(best) ? best + 1 : best;
}

}  // namespace

void resolve_launch_queue(Records& records, Assumptions& assumptions) {
  std::vector<Launch> launches = launches_in_order(records);
  const CompletionCounter counter(records);
  const std::int64_t depth = find_depth(launches, records, counter);
  if (depth == 0) return;
  std::int64_t bound = 0;
  for (const Launch& launch : launches) {
    const auto [freed, event] = place_for(launch, depth, records, counter);
    if (event == kNone) continue;
    Call& call = *launch.call;
    call.queue_event = event;
    if (freed <= call.start) continue;
    ++bound;
    call.queued = true;
    call.launch_start = std::clamp(freed, call.launch_start, call.finish);
    call.launch_finish = std::max(call.launch_finish, call.launch_start);
  }
  assumptions.push_back(fmt::format(
      "The launch queue holds {} activities, as seen in this trace; {} waited for a place in it.",
      grouped(depth), counted(bound, "launch")));
}

}  // namespace foretrace::infer_detail

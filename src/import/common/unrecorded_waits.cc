#include "import/common/unrecorded_waits.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "trace/step_name.h"

namespace foretrace {

namespace {

/// A shorter stretch, in ns, is no evidence. Chosen.
constexpr std::int64_t kLongStretch = 100'000;
/// The work launched last begins within this time, in ns. Chosen.
constexpr std::int64_t kLaunch = 50'000;
constexpr std::size_t kMinStretches = 3;
/// At least this share of the stretches must end behind the device's work. Chosen.
constexpr double kMaxStretches = 0.8;

struct Stretch {
  std::int64_t from = 0, to = 0;
  std::int64_t done = 0;  ///< The device's work ends here.

  std::int64_t length() const { return to - from; }
  std::int64_t tail() const { return to - done; }
};

/// Sorts intervals and joins those that touch.
void join_intervals(std::vector<std::pair<std::int64_t, std::int64_t>>& intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::size_t kept = 0;
  for (const auto& interval : intervals) {
    if (kept > 0 && interval.first <= intervals[kept - 1].second) {
      intervals[kept - 1].second = std::max(intervals[kept - 1].second, interval.second);
    } else {
      intervals[kept++] = interval;
    }
  }
  intervals.resize(kept);
}

std::int64_t median_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class WaitFinder {
 public:
  explicit WaitFinder(Trace& trace) : trace_(trace) {
    for (const DeviceRecord& record : trace.devices) {
      if (record.kind != DeviceKind::annotation)
        busy_.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
    join_intervals(busy_);
  }

  /// Adds the waits of a thread whose steps are marked from `from` to `to`.
  std::int64_t add(std::uint16_t thread, std::int64_t from, std::int64_t to) {
    std::vector<std::pair<std::int64_t, std::int64_t>> events{{from, from}, {to, to}};
    for (const HostRecord& record : trace_.hosts) {
      if (record.thread != thread || record.kind == HostKind::annotation) continue;
      if (record.kind == HostKind::python || record.start_ns < from || record.start_ns > to)
        continue;
      events.emplace_back(record.start_ns, record.start_ns + record.duration_ns);
    }
    join_intervals(events);
    std::size_t begun = 0;
    std::vector<Stretch> found;
    for (std::size_t i = 1; i < events.size(); ++i) {
      Stretch stretch{events[i - 1].second, events[i].first};
      if (stretch.length() < kLongStretch || !is_busy(stretch.from, kLaunch)) continue;
      ++begun;
      if (is_busy(stretch.to, 0)) continue;
      stretch.done = last_done(stretch.to);
      found.push_back(stretch);
    }
    if (!are_waits(found, begun)) return 0;
    const NameId name = trace_.names.intern("block_until_ready (not recorded)");
    for (const Stretch& stretch : found) {
      trace_.hosts.push_back({.start_ns = stretch.from,
                              .duration_ns = stretch.done - stretch.from,
                              .name = name,
                              .thread = thread,
                              .kind = HostKind::runtime});
    }
    return std::ssize(found);
  }

 private:
  static bool are_waits(const std::vector<Stretch>& found, std::size_t begun) {
    if (found.size() < kMinStretches) return false;
    if (static_cast<double>(found.size()) < kMaxStretches * static_cast<double>(begun))
      return false;
    std::vector<std::int64_t> lengths, tails;
    for (const Stretch& stretch : found) {
      lengths.push_back(stretch.length());
      tails.push_back(stretch.tail());
    }
    return median_of(std::move(tails)) <= median_of(std::move(lengths)) / 2;
  }

  /// The first interval of work that begins after `time`.
  auto behind(std::int64_t time) const {
    return std::partition_point(busy_.begin(), busy_.end(),
                                [&](const auto& work) { return work.first <= time; });
  }
  /// Whether the device works at `time`, or begins to at most `soon` later.
  bool is_busy(std::int64_t time, std::int64_t soon) const {
    const auto next = behind(time);
    if (next != busy_.end() && next->first - time <= soon) return true;
    return next != busy_.begin() && std::prev(next)->second > time;
  }
  /// REQUIRES: the device was busy before `time`, at which it is idle.
  std::int64_t last_done(std::int64_t time) const { return std::prev(behind(time))->second; }

  Trace& trace_;
  std::vector<std::pair<std::int64_t, std::int64_t>> busy_;
};

}  // namespace

void add_unrecorded_waits(Trace& trace) {
  if (trace.devices.empty()) return;
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::vector<std::pair<std::int64_t, std::int64_t>> marked(trace.threads.size(), {kNever, 0});
  for (const HostRecord& record : trace.hosts) {
    if (!std::string_view(trace.names[record.name]).starts_with(kProfilerStep)) continue;
    auto& [from, to] = marked[record.thread];
    if (from == kNever) to = record.start_ns;
    from = std::min(from, record.start_ns);
    to = std::max(to, record.start_ns + record.duration_ns);
  }
  WaitFinder finder(trace);
  std::int64_t added = 0;
  for (std::size_t thread = 0; thread < marked.size(); ++thread) {
    const auto& [from, to] = marked[thread];
    if (from < to) added += finder.add(static_cast<std::uint16_t>(thread), from, to);
  }
  if (added == 0) return;
  trace.notes.add(Severity::info,
                  "waits for the device that the profile does not hold, found by stretches of the "
                  "host without an event that end behind the device's work",
                  {}, added);
}

}  // namespace foretrace

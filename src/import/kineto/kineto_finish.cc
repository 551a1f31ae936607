// Does the work that needs all events: the origin of time, names of lanes, sizes of copies from
// their calls, notes.

#include <algorithm>
#include <fmt/core.h>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "import/common/times.h"
#include "import/kineto/kineto_records.h"

namespace foretrace {

namespace {

/// Removes events at time 0, which the profiler writes for events that it never timed. Returns
/// their number.
std::int64_t drop_unrecorded_times(Trace& trace) {
  constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::int64_t first = kNever;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t zeros = 0;
  each_time(trace, [&](std::int64_t time) {
    if (time == 0) {
      ++zeros;
      return;
    }
    first = std::min(first, time);
    last = std::max(last, time);
  });
  // Time 0 is valid, unless all other times are at least a minute, and more than ten times their
  // own span, away from it.
  constexpr std::int64_t kFar = 60'000'000'000;
  if (zeros == 0 || first == kNever || first < kFar || first / 10 <= last - first) return 0;
  const auto drop = [](auto& records) {
    std::erase_if(records, [](const auto& record) { return record.start_ns == 0; });
  };
  drop(trace.hosts);
  drop(trace.devices);
  drop(trace.syncs);
  std::erase_if(trace.memory, [](const MemoryRecord& record) { return record.time_ns == 0; });
  std::erase_if(trace.links, [](const LinkRecord& record) { return record.time_ns == 0; });
  return zeros;
}

using CallBytes = std::vector<std::pair<std::uint32_t, std::int64_t>>;

void fill_copy_sizes(CallBytes& calls, std::vector<DeviceRecord>& devices) {
  if (calls.empty()) return;
  const auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(calls.begin(), calls.end(), before);
  for (DeviceRecord& record : devices) {
    const bool moves = record.kind == DeviceKind::copy || record.kind == DeviceKind::fill;
    if (!moves || record.bytes != 0 || record.correlation == 0) continue;
    const std::pair wanted(record.correlation, std::int64_t{0});
    const auto call = std::lower_bound(calls.begin(), calls.end(), wanted, before);
    if (call != calls.end() && call->first == record.correlation) {
      record.bytes = std::max<std::int64_t>(0, call->second);
    }
  }
}

/// The number of records whose correlation id another one has, too.
template <class Records>
std::int64_t shared_correlations(const Records& records) {
  std::vector<std::uint32_t> ids;
  for (const auto& record : records) {
    if (record.correlation != 0) ids.push_back(record.correlation);
  }
  if (ids.empty()) return 0;
  // Profilers count upwards, so one bit for each id up to the last takes less memory than the ids.
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  const std::size_t range = std::size_t{*most} - *least + 1;
  std::int64_t shared = 0;
  if (range / 64 <= ids.size()) {
    std::vector<bool> seen(range);
    const std::uint32_t first = *least;
    for (const std::uint32_t id : ids) {
      shared += seen[id - first] ? 1 : 0;
      seen[id - first] = true;
    }
  } else {
    std::sort(ids.begin(), ids.end());
    shared = ids.end() - std::unique(ids.begin(), ids.end());
  }
  return shared;
}

/// Removes records with the key of an earlier one; those whose key is nullopt stay. Returns their
/// number.
template <class Records, class Key>
std::int64_t drop_equal(Records& records, const Key& key) {
  std::vector<std::pair<typename decltype(key(records[0]))::value_type, std::size_t>> keys;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (const auto of = key(records[i])) keys.emplace_back(*of, i);
  }
  std::sort(keys.begin(), keys.end());
  std::vector<char> drops(records.size(), 0);
  for (std::size_t i = 1; i < keys.size(); ++i)
    drops[keys[i].second] = keys[i].first == keys[i - 1].first ? 1 : 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (drops[i] == 0) records[kept++] = records[i];
  }
  const std::size_t dropped = records.size() - kept;
  records.erase(records.end() - static_cast<std::ptrdiff_t>(dropped), records.end());
  return static_cast<std::int64_t>(dropped);
}

/// Removes exact copies of calls and device activities, which share the id of their originals:
/// files that were merged with themselves have them. Other events have copies only where these do,
/// so that short events with equal times stay. Returns the number of all.
std::int64_t drop_copies(Trace& trace) {
  if (shared_correlations(trace.hosts) == 0 && shared_correlations(trace.devices) == 0) return 0;
  const auto of_host = [](const HostRecord& record) {
    return std::tuple(record.start_ns, record.duration_ns, record.name, record.correlation,
                      record.external, record.thread, record.kind);
  };
  const auto of_device = [](const DeviceRecord& record) {
    return std::tuple(record.start_ns, record.duration_ns, record.name, record.correlation,
                      record.graph_node, record.stream, record.kind);
  };
  using HostKey = std::optional<decltype(of_host(HostRecord{}))>;
  using DeviceKey = std::optional<decltype(of_device(DeviceRecord{}))>;
  std::int64_t dropped = drop_equal(trace.hosts, [&](const HostRecord& record) {
    return record.correlation == 0 || record.duration_ns == 0 ? HostKey{} : of_host(record);
  });
  dropped += drop_equal(trace.devices, [&](const DeviceRecord& record) {
    return record.correlation == 0 || record.duration_ns == 0 ? DeviceKey{} : of_device(record);
  });
  if (dropped == 0) return 0;
  dropped += drop_equal(trace.hosts, [&](const HostRecord& record) {
    const bool is_range = record.kind == HostKind::annotation;
    return record.duration_ns > 0 && (is_range || record.external != 0) ? of_host(record)
                                                                        : HostKey{};
  });
  dropped += drop_equal(trace.devices, [&](const DeviceRecord& record) {
    return record.kind == DeviceKind::annotation ? of_device(record) : DeviceKey{};
  });
  return dropped;
}

/// Describes a point-to-point message as a collective of its two ranks, whatever group they belong
/// to. It gets no sequence number, because PyTorch numbers collectives, but not messages.
void name_ends_of_messages(KinetoTrace& to) {
  for (const auto& [number, peer] : to.messages) {
    CollectiveDetails& details = to.trace.collectives[number];
    const std::int64_t own = to.trace.rank;
    if (!to.trace.rank_is_known || peer < 0 || peer == own) continue;
    details.ranks =
        to.trace.names.intern(fmt::format("[{}, {}]", std::min(own, peer), std::max(own, peer)));
    details.group_size = 2;
    details.sequence = -1;
  }
}

}  // namespace

void KinetoRecords::finish(std::int64_t base_ns) {
  Trace& trace = to_.trace;
  to_.lanes.finish();
  place_lane_work(trace, lane_work_, flows_,
                  [&](std::int64_t process) { return to_.lanes.process_name(process); });
  for (const auto& ranges : open_) to_.count(KinetoOddity::unclosed_begin, std::ssize(ranges));
  to_.count_at(KinetoOddity::zero_time, -1, drop_unrecorded_times(trace));
  to_.count_at(KinetoOddity::exact_copy, -1, drop_copies(trace));
  make_times_relative(trace, base_ns);
  fill_copy_sizes(call_bytes_, trace.devices);
  to_.count_at(KinetoOddity::shared_correlation, -1, shared_correlations(trace.hosts));
  name_ends_of_messages(to_);
  trace.tick_ns = to_.whole_us() && useful_ > 0 ? 1000 : 1;
  to_.write_notes();
}

}  // namespace foretrace

// Device times that cannot be true. A profiler may write a kernel's end too late (an overflow, the
// end of a later kernel), or convert device times to the host's clock with an error that grows:
//
//     stream   |===k==============================    k ends where a starts, because a stream
//                   |=a=| |=b=| |=c=|                  runs one activity at a time
//     host             (wait)|                        or where a wait for the stream returned
//
// It is wrong for a "stream" that stands for several queues of a device, and for a kernel that
// starts its successor early (programmatic dependent launch): so only a kernel over several whole
// successors counts, and only where hardly any other does so.

#include <algorithm>
#include <fmt/core.h>
#include <limits>

#include "base/contains.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// A kernel that covers this many of its successors on the stream has a wrong end. Chosen: one may
/// be started early.
constexpr std::size_t kCoveredWhole = 2;
/// At most one activity in this many has a wrong end; more are a property of the device. Chosen.
constexpr std::size_t kRarely = 100;
/// A wait that returned earlier than this, in ns, before the end of what it waited for: the clocks
/// of host and device differ by less (clock.cc).
constexpr std::int64_t kGreatestSkew = 200'000;

/// Returns of waits for the device or one stream.
class Returns {
 public:
  explicit Returns(const Records& records) : waits_(records.streams.size() + 1) {
    std::int32_t devices = 0;
    for (const auto& [begin, end] : records.streams) {
      if (begin == end) continue;
      const std::int32_t device = records.trace.streams[records.events[begin].stream].device;
      devices += devices == 0 || device != device_ ? 1 : 0;
      device_ = device;
    }
    for (const Call& call : records.calls) add(records, call, devices == 1);
    for (auto& waits : waits_) {
      std::sort(waits.begin(), waits.end());
      for (std::size_t i = waits.size(); i-- > 1;)
        waits[i - 1].second = std::min(waits[i - 1].second, waits[i].second);
    }
  }

  /// When the first wait returned that began behind `launched` and waited for the stream.
  std::int64_t first_behind(std::int64_t launched, std::uint16_t stream) const {
    return std::min(first_in(waits_[stream], launched), first_in(waits_.back(), launched));
  }

 private:
  using Waits = std::vector<std::pair<std::int64_t, std::int64_t>>;  // Begin, return.

  void add(const Records& records, const Call& call, bool one_device) {
    if (!call.launched.empty()) return;
    const SyncRecord* sync = records.sync_of(call);
    if (sync && sync->kind == SyncKind::stream && sync->stream < records.streams.size()) {
      waits_[sync->stream].emplace_back(call.start, call.finish);
    } else if (one_device && contains_any(records.name(records.trace.hosts[call.record]),
                                          {"DeviceSynchronize", "CtxSynchronize"})) {
      waits_.back().emplace_back(call.start, call.finish);
    }
  }

  static std::int64_t first_in(const Waits& waits, std::int64_t launched) {
    const auto first = std::lower_bound(
        waits.begin(), waits.end(), std::pair(launched, std::numeric_limits<std::int64_t>::min()));
    return first == waits.end() ? std::numeric_limits<std::int64_t>::max() : first->second;
  }

  std::int32_t device_ = 0;
  std::vector<Waits> waits_;  ///< By stream, and for the whole device; each by begin.
};

bool covers_successors(const Records& records, std::size_t i) {
  const std::size_t last = i + kCoveredWhole;
  if (last >= records.streams[records.events[i].stream].second) return false;
  for (std::size_t k = i + 1; k <= last; ++k) {
    const DeviceEvent& behind = records.events[k];
    if (behind.finish > records.events[i].finish || behind.finish <= behind.start) return false;
  }
  return records.events[i + 1].start > records.events[i].start;
}

}  // namespace

void mend_impossible_ends(Records& records, Notes& notes) {
  const Returns returns(records);
  std::vector<std::pair<std::size_t, std::int64_t>> ends;  // Event, and its latest possible end.
  for (std::size_t i = 0; i < records.events.size(); ++i) {
    const DeviceEvent& event = records.events[i];
    const Call* call = records.call_of(event);
    const std::int64_t returned = call ? returns.first_behind(call->finish, event.stream)
                                       : std::numeric_limits<std::int64_t>::max();
    const bool outlives = returned > event.start && returned < event.finish - kGreatestSkew;
    if (!outlives && !covers_successors(records, i)) continue;
    std::int64_t end = outlives ? returned : event.finish;
    if (i + 1 < records.streams[event.stream].second && records.events[i + 1].start > event.start)
      end = std::min(end, records.events[i + 1].start);
    ends.emplace_back(i, end);
  }
  if (ends.empty() || ends.size() > std::max<std::size_t>(1, records.events.size() / kRarely))
    return;
  for (const auto& [i, end] : ends) {
    DeviceEvent& event = records.events[i];
    notes.add(
        Severity::warning,
        "device activities that outlast the work behind them on their stream, or the wait for "
        "them; they end where the next one starts",
        fmt::format("{}: {} -> {}", records.trace.names[records.trace.devices[event.record].name],
                    to_text(Nanoseconds(event.finish - event.start)),
                    to_text(Nanoseconds(end - event.start))));
    event.finish = end;
  }
}

/// A launch reaches an idle device within this time, in ns. Chosen: more than any driver or virtual
/// device needs (10 ms were seen), less than a loop that looks hung.
constexpr std::int64_t kLatestStart = 100'000'000;
/// Late starts that may be odd: the device was busy with work that was not recorded.
constexpr std::size_t kFewLate = 3;
constexpr std::size_t kManyLate = 10;  ///< One in this many launches on an idle device; chosen.

std::optional<Shortcoming> find_late_starts(const Records& records) {
  std::vector<std::uint32_t> order(records.events.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(records.events[a].start, a) < std::pair(records.events[b].start, b);
  });
  std::size_t launches = 0, late = 0;
  std::int64_t busy = std::numeric_limits<std::int64_t>::min(), latest = 0;
  for (const std::uint32_t i : order) {
    const DeviceEvent& event = records.events[i];
    const Call* call = records.call_of(event);
    if (call && busy <= call->start) {
      ++launches;
      const std::int64_t delay = event.start - call->finish;
      late += delay > kLatestStart ? 1 : 0;
      latest = std::max(latest, delay);
    }
    busy = std::max(busy, event.finish);
  }
  if (late < kFewLate || late * kManyLate < launches) return {};
  return Shortcoming{
      .name = "device_times",
      .text = fmt::format("device times cannot be trusted: {} of {} launches on an idle device "
                          "start up to {} late; "
                          "steps are those of the host; record again with times of one clock",
                          late, launches, to_text(Nanoseconds(latest))),
      .share = static_cast<double>(late) / static_cast<double>(launches),
      .is_fatal = true};
}

}  // namespace foretrace::infer_detail

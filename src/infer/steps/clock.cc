// Corrects the clocks of host and device. A profiler converts device times to the host's clock,
// with an error of up to some tens of microseconds, which shows in two ways:
//
//     early   kernels start before the call that launched them
//     late    calls that wait for the device return before the awaited work is done
//
// The shift is the smallest one that corrects all but a few of these.

#include <algorithm>

#include "infer/passes.h"
#include "trace/wait_call.h"

namespace foretrace::infer_detail {
namespace {

/// A shift greater than this, in ns, has another cause than the clock. Chosen: ten times the tens
/// of microseconds that profilers are off by.
constexpr std::int64_t kGreatestShift = 200'000;
/// One value in this many may still be wrong: odd records, not the clock. Chosen.
constexpr std::size_t kStragglers = 200;

std::int64_t without_outliers(std::vector<std::int64_t>& values) {
  const auto straggler = values.begin() + static_cast<std::ptrdiff_t>(values.size() / kStragglers);
  std::nth_element(values.begin(), straggler, values.end());
  return *straggler;
}

/// Collects, for each call that certainly waited, the time from the end of what it waited for to
/// its return.
class ReturnDelays {
 public:
  explicit ReturnDelays(const Records& records)
      : records_(records),
        last_on_stream_(records.streams.size(), kNone),
        last_of_thread_(records.trace.threads.size(), kNone) {}

  std::vector<std::int64_t> run() {
    std::vector<const Call*> calls;
    for (const Call& call : records_.calls) calls.push_back(&call);
    std::sort(calls.begin(), calls.end(), [](const Call* a, const Call* b) {
      return std::pair(a->start, a->record) < std::pair(b->start, b->record);
    });
    auto next = records_.by_launch.begin();
    for (const Call* call : calls) {
      for (; next != records_.by_launch.end(); ++next) {
        const DeviceEvent& event = records_.events[*next];
        const Call& launch = *records_.call_of(event);
        if (launch.start > call->start || &launch == call) break;
        last_on_stream_[event.stream] = last_of_thread_[launch.thread] = *next;
        latest_ = std::max(latest_, event.finish);
      }
      add_call(*call);
    }
    return std::move(delays_);
  }

 private:
  void add_call(const Call& call) {
    const std::string_view name = records_.name(records_.trace.hosts[call.record]);
    if (!call.launched.empty()) {
      const DeviceEvent& copy = records_.events[call.launched.back()];
      const bool pinned = records_.trace.devices[copy.record].pinned_host;
      const bool asynchronous = name.find("Async") != name.npos;
      if (copy.kind == TaskKind::copy_out && !(pinned && asynchronous)) add(call, copy.finish);
      return;
    }
    const SyncRecord* sync = records_.sync_of(call);
    if (wait_call(name) == WaitCall::device) {
      add(call, latest_);
    } else if (sync && sync->kind == SyncKind::stream && sync->stream != kNone) {
      add(call, last_on_stream_[sync->stream]);
    } else if (wait_call(name) == WaitCall::stream) {
      const std::uint32_t last = last_of_thread_[call.thread];
      if (last != kNone && records_.events[last].kind == TaskKind::copy_out) add(call, last);
    }
  }

  void add(const Call& call, std::uint32_t event) {
    if (event != kNone) add(call, records_.events[event].finish);
  }
  /// An end that is later than any clock error means that the call did not wait for it.
  void add(const Call& call, std::int64_t done) {
    if (call.finish - done >= -kGreatestShift) delays_.push_back(call.finish - done);
  }

  const Records& records_;
  std::vector<std::uint32_t> last_on_stream_, last_of_thread_;  ///< The event launched last.
  std::int64_t latest_ = std::numeric_limits<std::int64_t>::min() / 2;
  std::vector<std::int64_t> delays_;
};

/// Returns the offset for device times. Launches are more reliable evidence than returns.
std::int64_t find_shift(const Records& records, std::vector<std::int64_t>& delays) {
  const std::int64_t delay = without_outliers(delays);
  if (delay <= 0) return std::min(-delay, kGreatestShift);
  std::vector<std::int64_t> returns = ReturnDelays(records).run();
  if (returns.empty()) return 0;
  const std::int64_t least = without_outliers(returns);
  if (least >= -records.tolerance) return 0;
  return std::max(least, -delay);
}

}  // namespace

void align_clocks(Records& records, Notes& notes) {
  std::vector<std::int64_t> delays;
  delays.reserve(records.by_launch.size());
  for (const std::uint32_t i : records.by_launch) {
    delays.push_back(records.events[i].start - records.call_of(records.events[i])->start);
  }
  if (delays.empty()) return;
  const std::int64_t shift = find_shift(records, delays);
  if (shift == 0) return;
  for (DeviceEvent& event : records.events) event.start += shift, event.finish += shift;
  notes.add(Severity::info, "device times shifted to the host's clock",
            to_text(Nanoseconds(shift)));
}

}  // namespace foretrace::infer_detail

// Finds when a call stops working and starts to wait. A call that copies from pageable memory waits
// for its own copy. A call that synchronizes waits for the last activity launched before it, on the
// stream that the sync record names or, without a record, on the stream that fits the time of its
// return.
//
//     |-- host work --|-- launch --|......waits......|-- tail --|
//     start           launch_start launch_finish     released   finish
//
// A call that stages its copy also waits first for the activities before the copy.

#include <algorithm>

#include "infer/passes.h"
#include "trace/wait_call.h"

namespace foretrace::infer_detail {
namespace {

/// A wait for work returns this long, in ns, after the work is done at the latest; the rest is not
/// its own. Chosen: returns take 5 to 50 us, a sleeping thread longer.
constexpr std::int64_t kLongestReturn = 200'000;

/// A CUDA event, as far as calls show it.
struct EventMark {
  std::int64_t done;  ///< When the activity was done.
  std::int64_t time;  ///< When the program recorded the event.
  std::uint32_t event;
};

class Resolver {
 public:
  Resolver(const Records& records, const TypicalDelays& typical, const EventWaits& waits)
      : records_(records), typical_(typical), waits_(waits) {
    mark_events();
  }

  void resolve(Call& call) {
    call.launch_start = call.start;
    call.launch_finish = call.finish;
    call.released = call.start;
    const HostRecord& record = records_.trace.hosts[call.record];
    if (!call.launched.empty()) {
      cut_launch(call);
      return;
    }
    const SyncRecord* recorded = records_.sync_of(call);
    const WaitCall wait = wait_call(records_.name(record));
    // A record may name a stream without work: Nsight names device 0 for the streams of any device.
    if (recorded) await_recorded(call, *recorded);
    call.recorded_wait = call.waits;
    if (!call.waits && call.waits_by_time)
      await(call, latest_done(records_, call.start, call.finish));
    if (!call.waits && wait != WaitCall::none) await_named(call, wait);
    const bool only_waits = recorded || (wait != WaitCall::none && wait != WaitCall::at_release);
    if (only_waits) find_unknown(call);
  }

 private:
  /// Finds what the program's CUDA events may stand for: the activity that a thread launched last
  /// before it recorded an event. If the calls that record events were not traced, any activity.
  void mark_events() {
    std::vector<const HostRecord*> records;
    for (const HostRecord& record : records_.trace.hosts) {
      if (records_.name(record).find("EventRecord") == std::string_view::npos) continue;
      if (is_call(record.kind)) records.push_back(&record);
    }
    std::sort(records.begin(), records.end(), [](const HostRecord* a, const HostRecord* b) {
      return std::pair(a->start_ns, a->thread) < std::pair(b->start_ns, b->thread);
    });
    std::vector<std::uint32_t> latest(records_.trace.threads.size(), kNone);
    auto record = records.begin();
    for (const std::uint32_t i : records_.by_launch) {
      const Call& launch = *records_.call_of(records_.events[i]);
      for (; record != records.end() && (*record)->start_ns < launch.start; ++record) {
        mark((*record)->start_ns, latest[(*record)->thread]);
      }
      latest[launch.thread] = i;
      if (records.empty()) mark(launch.start, i);
    }
    for (; record != records.end(); ++record) {
      mark((*record)->start_ns, latest[(*record)->thread]);
    }
    std::sort(marks_.begin(), marks_.end(), [](const EventMark& a, const EventMark& b) {
      return std::tuple(a.done, a.time, a.event) < std::tuple(b.done, b.time, b.event);
    });
  }
  void mark(std::int64_t time, std::uint32_t event) {
    if (event != kNone) marks_.push_back({records_.events[event].finish, time, event});
  }

  /// Returns the activity that finished last during the call, among those that events recorded
  /// before it may stand for; or kNone.
  std::uint32_t latest_event_done(const Call& call) const {
    auto mark = std::partition_point(marks_.begin(), marks_.end(), [&](const EventMark& m) {
      return m.done <= call.finish + records_.tolerance;
    });
    while (mark != marks_.begin()) {
      --mark;
      if (mark->done <= call.start) break;
      if (mark->time < call.start) return mark->event;
    }
    return kNone;
  }

  void cut_launch(Call& call) {
    const DeviceEvent& first = records_.events[call.launched.front()];
    const DeviceEvent& last = records_.events[call.launched.back()];
    const bool blocking = blocks(call, last);
    // If the activity starts late in a long call, the call worked or waited first.
    if (first.start - call.start > typical_.launch_fence &&
        first.start - typical_.launch <= call.finish) {
      cut_work(call, first, blocking);
    }
    if (!blocking) return;
    call.waits = call.recorded_wait = true;
    call.awaited.push_back(call.launched.back());
    call.released = std::min(last.finish, call.finish);
    call.launch_finish =
        std::clamp(call.launch_start + typical_.launch, call.launch_start,
                   std::max(call.launch_start, std::min(first.start, call.finish)));
  }

  /// Finds the work of a call before its first activity. A copy that the host stages waits for the
  /// activities before it (CUDA Runtime API, "API synchronization behavior"), so only the time
  /// after these is work (staging). Nothing else makes the host wait before it launches: if no
  /// earlier activity delayed this one, the driver was working (set-up).
  ///
  ///     |..waits for activities before..|-- work --|-- launch --|..waits..|
  ///     start                          held_until launch_start
  void cut_work(Call& call, const DeviceEvent& first, bool blocking) {
    bool held = false;
    std::int64_t from = call.start;
    std::vector<std::uint32_t> in_front;
    each_in_front(call.launched.front(), [&](std::uint32_t event, std::int64_t fence) {
      const std::int64_t finish = records_.events[event].finish;
      held = held || finish + fence >= first.start;
      if (finish <= call.start || finish > call.finish) return;
      in_front.push_back(event);
      from = std::max(from, finish);
    });
    const bool staged = is_staged(call, first);
    // The wait for the copy itself has the same effect.
    if (held && (blocking || !staged || in_front.empty())) return;
    if (staged) {
      call.held_by = std::move(in_front);
      call.held_until = from;
    } else {
      from = call.start;
    }
    call.launch_start = std::max(from, first.start - typical_.launch);
  }

  /// Calls `visit(event, fence)` with each event that an activity is known to wait for on the
  /// device. `fence` is the longest time after the event's end until the activity starts, if
  /// nothing else delays it.
  template <class Visit>
  void each_in_front(std::uint32_t event, const Visit& visit) const {
    if (event > records_.streams[records_.events[event].stream].first) {
      visit(event - 1, typical_.gap_fence);
    }
    for (auto wait = std::lower_bound(waits_.begin(), waits_.end(), EventWait{event, 0});
         wait != waits_.end() && wait->after == event; ++wait) {
      visit(wait->before, typical_.event + typical_.gap_fence + records_.tolerance);
    }
  }

  /// Whether the host takes part in a copy, or in submitting it.
  bool is_staged(const Call& call, const DeviceEvent& event) const {
    const bool across = crosses_host_link(event.kind);
    const bool asynchronous =
        records_.name(records_.trace.hosts[call.record]).find("Async") != std::string_view::npos;
    if (asynchronous) return across && !records_.trace.devices[event.record].pinned_host;
    return across || event.kind == TaskKind::copy_on_device;
  }

  bool blocks(const Call& call, const DeviceEvent& last) const {
    if (!is_staged(call, last)) return false;
    if (last.finish <= call.finish + records_.tolerance) return last.finish > call.start;
    // The call returns when the last piece is staged, while that piece is still being copied.
    return call.finish - last.start > (last.finish - last.start) / 2;
  }

  void await(Call& call, std::uint32_t event) {
    if (event == kNone) return;
    const std::int64_t finish = records_.events[event].finish;
    if (finish > call.finish + records_.tolerance) return;
    call.waits = true;
    call.awaited.push_back(event);
    call.released = std::max(call.released, std::min(finish, call.finish));
  }

  void await_all(Call& call, std::int64_t before) {
    for (std::size_t stream = 0; stream < records_.streams.size(); ++stream) {
      await(call, last_launched_before(records_, stream, before));
    }
  }

  void await_recorded(Call& call, const SyncRecord& sync) {
    if (sync.kind == SyncKind::context) return await_all(call, call.start);
    if (sync.kind == SyncKind::event && sync.wait_on_stream != kNone) {
      std::int64_t before = call.start;
      const auto record = records_.call_of_correlation.find(sync.wait_on_correlation);
      if (sync.wait_on_correlation != 0 && record != records_.call_of_correlation.end()) {
        before = records_.trace.hosts[record->second].start_ns;
      }
      return await(call, last_launched_before(records_, sync.wait_on_stream, before));
    }
    if (sync.stream != kNone) await(call, last_launched_before(records_, sync.stream, call.start));
  }

  void await_named(Call& call, WaitCall wait) {
    if (wait == WaitCall::device) return await_all(call, call.start);
    if (wait == WaitCall::stream) {
      // A thread usually waits for the stream it launches on, unless the time of the return
      // contradicts that.
      const std::uint32_t own = last_launched_by_thread(call);
      if (own != kNone && records_.events[own].finish <= call.finish + records_.tolerance) {
        return await(call, own);
      }
    }
    await(call, wait == WaitCall::event ? latest_event_done(call)
                                        : latest_done(records_, call.start, call.finish));
  }

  /// A call that does nothing but wait, and does not return although all that it is known to wait
  /// for is done, waits for something else: for the work that is done just before it returns, or
  /// else for work that the recording lacks. It is wrong where the thread lost its core inside the
  /// call for so long.
  void find_unknown(Call& call) {
    if (call.finish - call.released <= kLongestReturn) return;
    const std::uint32_t done = latest_done(records_, call.start, call.finish);
    if (done != kNone && call.finish - records_.events[done].finish <= kRightBehind)
      return await(call, done);
    call.waits = true;
    call.unknown_until = call.finish;
  }

  std::uint32_t last_launched_by_thread(const Call& call) const {
    const auto behind = std::partition_point(
        records_.by_launch.begin(), records_.by_launch.end(),
        [&](std::uint32_t i) { return records_.call_of(records_.events[i])->start < call.start; });
    for (auto i = behind; i != records_.by_launch.begin();) {
      if (records_.call_of(records_.events[*--i])->thread == call.thread) return *i;
    }
    return kNone;
  }

  const Records& records_;
  const TypicalDelays& typical_;
  const EventWaits& waits_;
  std::vector<EventMark> marks_;  ///< Sorted by when they were done.
};

}  // namespace

void resolve_calls(Records& records, const TypicalDelays& typical, const EventWaits& stream_waits) {
  Resolver resolver(records, typical, stream_waits);
  for (Call& call : records.calls) resolver.resolve(call);
}

}  // namespace foretrace::infer_detail

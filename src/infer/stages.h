#pragma once

// The data between the steps of inference. Each struct is filled by one stage and read by later
// ones; passes.h has the stages, infer.cc calls them in order:
//
//     Trace --> Records --> Steps, HostTime --> Threads --> Inference
//               events      segments,           handovers,  tasks and
//               and calls   contexts            roles       dependencies

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/trace.h"

namespace foretrace::infer_detail {

/// A device record with its times on the host's clock, in the order of its stream.
struct DeviceEvent {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;
  std::uint32_t call = kNone;  ///< Into Records::calls: who launched it.
  std::uint16_t stream = 0;
  TaskKind kind = TaskKind::kernel;
  // Filled by build_tasks():
  TaskId task = kNoTask;
  std::int32_t step = -1;
  Phase phase = Phase::none;
};

/// A runtime or driver call that launches, copies or synchronizes.
struct Call {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;
  std::uint16_t thread = 0;
  std::vector<std::uint32_t> launched;  ///< Device events, in order of start.

  // Filled by resolve_calls():
  bool waits = false;                  ///< Cannot return before `awaited` are done.
  bool recorded_wait = false;          ///< A record names what it waits for.
  std::vector<std::uint32_t> awaited;  ///< Device events it waits for.
  std::vector<std::uint32_t> held_by;  ///< Device events it waits for before it does anything.
  std::int64_t held_until = 0;         ///< When the last of `held_by` was done.
  /// The call is host work until here, then it hands over (launch task), then it waits.
  std::int64_t launch_start = 0;
  std::int64_t launch_finish = 0;
  /// When the task it waits for finished; `finish` - this is its own tail.
  std::int64_t released = 0;

  // Filled by resolve_launch_queue():
  std::uint32_t queue_event = kNone;  ///< Its finish freed the place in the launch queue.
  bool queued = false;                ///< It really waited for that.

  // Filled by build_tasks():
  std::uint32_t context = kNone;  ///< Into HostTime::contexts, of the segment in which it launches.
  TaskId launch_task = kNoTask;
  TaskId wait_task = kNoTask;
  TaskId held_task = kNoTask;
};

/// Device events in order of their streams, and the calls that launched or wait for them.
struct Records {
  const Trace& trace;
  std::vector<DeviceEvent> events{};                           ///< By stream, then start.
  std::vector<std::pair<std::size_t, std::size_t>> streams{};  ///< Range of events of each stream.
  std::vector<std::uint32_t> by_launch{};  ///< Launched events in order of their calls.
  /// When each event, or the last one before it on its stream with a launch, was launched; the
  /// least time for those launched before the recording.
  std::vector<std::int64_t> launch_times{};
  std::vector<Call> calls{};
  std::unordered_map<std::uint32_t, std::uint32_t> call_of_correlation{};  ///< To host records.
  /// Records of calls that wait (not of streams that do), by the call's correlation id.
  std::unordered_map<std::uint32_t, const SyncRecord*> sync_of_correlation{};
  std::vector<std::uint32_t> call_of_record{};  ///< Host record to call, or kNone.
  /// Times this close in ns count as the same: 1 us of clock skew (chosen), or the resolution of
  /// the clock if that is more.
  std::int64_t tolerance = 1000;

  std::string_view name(const HostRecord& record) const { return trace.names[record.name]; }
  /// The recorded wait of a call, or nullptr.
  const SyncRecord* sync_of(const Call& call) const {
    const auto found = sync_of_correlation.find(trace.hosts[call.record].correlation);
    return found == sync_of_correlation.end() ? nullptr : found->second;
  }
  const Call* call_of(const DeviceEvent& event) const {
    return event.call == kNone ? nullptr : &calls[event.call];
  }
};

/// Typical delays of this trace in ns, from those starts that only one cause explains. The values
/// here hold where too few starts do; recalled of CUDA on recent devices.
struct Typical {
  /// Start of a launch call to start of its kernel on an idle stream; median.
  std::int64_t launch = 5000;
  std::int64_t launch_fence = 20000;  ///< Beyond this a launch does not explain a start.
  std::int64_t gap = 1000;  ///< Between kernels that wait for nothing but each other; median.
  std::int64_t gap_fence = 10000;
  /// From the end of an event's work to the start of who waited for it.
  std::int64_t event = 3000;
};

struct MarkedStep {
  std::int64_t start = 0, finish = 0;
  std::string name;
};

/// The training steps, on the clock of the launches.
struct Steps {
  std::vector<MarkedStep> marks;  ///< In order of time.
  bool by_device = false;         ///< There are no launches: found by the starts of device events.
  StepSource source = StepSource::none;

  /// The step that a time lies in; -1 before the first and after the last.
  std::int32_t at(std::int64_t time) const;
};

/// A stretch of a thread's time, with the innermost record it belongs to.
struct Segment {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;   ///< kNone: between records.
  std::uint32_t context = kNone;  ///< Into HostTime::contexts.
  std::uint32_t call = kNone;
};

/// The context of a stretch of host time: the annotations, ops and modules around it.
struct Context {
  Phase phase = Phase::none;
  bool input = false;  ///< Inside a data loader's next.
  NameId module{};
  std::int32_t layer = -1;
  std::uint32_t op = kNone;      ///< Innermost op, a host record.
  std::uint32_t parent = kNone;  ///< Into HostTime::contexts, always a smaller number.
};

/// How each thread spent its time.
struct HostTime {
  const Trace& trace;
  std::vector<std::vector<Segment>> segments{};  ///< By thread, in order, without holes.
  std::vector<Context> contexts{};

  std::string_view name(const HostRecord& record) const { return trace.names[record.name]; }
};

/// While thread `waiter` waited in one segment, thread `worker` ran `first` to `last` of its own,
/// started by the waiter (unless it was busy already) and waited for by it.
struct Handover {
  std::uint16_t waiter = 0, worker = 0;
  bool starts = true;               ///< The worker was idle before.
  std::size_t segment = 0;          ///< Segment of the waiter.
  std::size_t first = 0, last = 0;  ///< Segments of the worker.
  // Filled by build_tasks():
  TaskId gives = kNoTask, takes = kNoTask;  ///< The waiter's tasks before and after the wait.
  TaskId first_task = kNoTask, last_task = kNoTask;
};

/// See thread_roles.cc.
enum class ThreadRole : std::uint8_t { works, helps, watches };

/// Who works for whom, and as which tasks.
struct Threads {
  std::vector<Handover> handovers;
  std::vector<ThreadRole> roles{};
  std::vector<std::vector<TaskId>> tasks{};  ///< Tasks of each thread, in order; by build_tasks().
};

/// A device event waits for another, in addition to those before both.
struct EventWait {
  std::uint32_t after = kNone, before = kNone;
  Provenance provenance = Provenance::inferred;
  Why why = Rule::event_wait;
  friend bool operator<(const EventWait& a, const EventWait& b) {
    return std::pair(a.after, a.before) < std::pair(b.after, b.before);
  }
};

/// The start of the recording: the first task of every graph that is inferred.
inline constexpr TaskId kOrigin{0};

/// A pattern that occurs less often than this is no sign of steps. Chosen.
inline constexpr std::size_t kLeastRepeats = 3;

}  // namespace foretrace::infer_detail

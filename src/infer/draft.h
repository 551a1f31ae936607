#pragma once

// Data shared by the rules of infer/: the sorted records, and the tasks they become before there is
// a graph. Each rule is one file with one function; infer.cc calls them in order.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/infer.h"
#include "foretrace/notes.h"
#include "foretrace/trace.h"

namespace foretrace::infer_detail {

/// A device record with its times on the host's clock, in the order of its stream.
struct DeviceEvent {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;
  std::uint32_t call = kNone;  ///< Into Draft::calls: who launched it.
  std::uint16_t stream = 0;
  TaskKind kind = TaskKind::kernel;
  TaskId task = kNoTask;
  std::int32_t step = -1;
  Phase phase = Phase::none;
};

/// A runtime or driver call that launches, copies or synchronizes.
struct Call {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;
  std::uint32_t context = kNone;  ///< Into Draft::contexts, of the segment in which it launches.
  std::uint16_t thread = 0;
  bool waits = false;                   ///< Cannot return before `awaited` are done.
  std::vector<std::uint32_t> launched;  ///< Device events, in order of start.
  std::vector<std::uint32_t> awaited;   ///< Device events it waits for.
  std::vector<std::uint32_t> held_by;   ///< Device events it waits for before it does anything.
  std::int64_t held_until = 0;          ///< When the last of `held_by` was done.
  /// The call is host work until here, then it hands over (launch task), then it waits.
  std::int64_t launch_start = 0;
  std::int64_t launch_finish = 0;
  std::int64_t released =
      0;  ///< When the task it waits for finished; `finish` - this is its own tail.
  std::uint32_t queue_event =
      kNone;                   ///< Device event whose finish freed the place in the launch queue.
  bool queued = false;         ///< It really waited for that.
  bool recorded_wait = false;  ///< A record names what it waits for.
  TaskId launch_task = kNoTask;
  TaskId wait_task = kNoTask;
  TaskId held_task = kNoTask;
};

/// A stretch of a thread's time, with the innermost record it belongs to.
struct Segment {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;   ///< kNone: between records.
  std::uint32_t context = kNone;  ///< Into Draft::contexts.
  std::uint32_t call = kNone;
};

/// The context of a stretch of host time: the annotations, ops and modules around it.
struct Context {
  Phase phase = Phase::none;
  bool input = false;  ///< Inside a data loader's next.
  NameId module{};
  std::int32_t layer = -1;
  std::uint32_t op = kNone;      ///< Innermost op, a host record.
  std::uint32_t parent = kNone;  ///< Into Draft::contexts, always a smaller number.
};

/// While thread `waiter` waited in one segment, thread `worker` ran `first` to `last` of its own,
/// started by the waiter (unless it was busy already) and waited for by it.
struct Handover {
  std::uint16_t waiter = 0, worker = 0;
  bool starts = true;                       ///< The worker was idle before.
  std::size_t segment = 0;                  ///< Segment of the waiter.
  std::size_t first = 0, last = 0;          ///< Segments of the worker.
  TaskId gives = kNoTask, takes = kNoTask;  ///< The waiter's tasks before and after the wait.
  TaskId first_task = kNoTask, last_task = kNoTask;
};

/// See thread_roles.cc.
enum class ThreadRole : std::uint8_t { works, helps, watches };

/// Typical delays of this trace in ns, from those starts that only one cause explains. The values
/// here hold where too few starts do; recalled of CUDA on recent devices.
struct Typical {
  std::int64_t launch =
      5000;  ///< Start of a launch call to start of its kernel on an idle stream; median.
  std::int64_t launch_fence = 20000;  ///< Beyond this a launch does not explain a start.
  std::int64_t gap = 1000;  ///< Between kernels that wait for nothing but each other; median.
  std::int64_t gap_fence = 10000;
  std::int64_t event =
      3000;  ///< From the end of an event's work to the start of who waited for it.
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
struct MarkedStep {
  std::int64_t start = 0, finish = 0;
  std::string name;
};

struct Draft {
  const Trace& trace;
  explicit Draft(const Trace& source) : trace(source) {}

  std::vector<DeviceEvent> events;                           ///< By stream, then start.
  std::vector<std::pair<std::size_t, std::size_t>> streams;  ///< Range of events of each stream.
  std::vector<std::uint32_t> by_launch;  ///< Launched events in order of their calls.
  std::vector<Call> calls;
  std::unordered_map<std::uint32_t, std::uint32_t> call_of_correlation;
  /// Records of calls that wait (not of streams that do), by the call's correlation id.
  std::unordered_map<std::uint32_t, const SyncRecord*> sync_of_correlation;
  std::vector<std::uint32_t>
      call_of_record;  ///< Host record to call, or kNone. Empty if there are no calls.

  /// Waits between streams, from records and the rules of CUDA; by the event that waits.
  std::vector<EventWait> stream_waits;

  std::vector<std::vector<Segment>> threads;  ///< Segments of each thread, in order, without holes.
  std::vector<Context> contexts;
  std::vector<Handover> handovers;
  std::vector<ThreadRole> thread_roles;
  std::vector<MarkedStep> steps;  ///< In order of time, on the clock of the launches.
  bool steps_by_device =
      false;  ///< There are no launches: steps are found by the starts of device events.
  StepSource step_source = StepSource::none;
  Typical typical;
  /// Times this close in ns count as the same: 1 us of clock skew (chosen), or the resolution of
  /// the clock if that is more.
  std::int64_t tolerance = 1000;

  /// When each event, or the last one before it on its stream with a launch, was launched; the
  /// least time for those launched before the recording.
  std::vector<std::int64_t> launch_times;

  Graph graph;
  Timeline recorded;
  std::vector<std::vector<TaskId>> thread_tasks;  ///< Tasks of each thread, in order.
  TaskId origin = kNoTask;
  Notes notes;
  std::vector<std::string> assumptions;
  std::vector<OpenTime> open;  ///< Time without a known cause, task by task.
  std::vector<RecordedCollective> collectives;

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

/// records.cc: device events by stream, calls by correlation id, launches of events.
void order_records(Draft& draft);
/// clock.cc: the shift between the clocks of host and device.
void align_clocks(Draft& draft);
/// typical.cc
void measure_typical_delays(Draft& draft);
/// steps.cc: from markers, else by finding the period.
void find_steps(Draft& draft);
/// A pattern that occurs less often than this is no sign of steps. Chosen.
inline constexpr std::size_t kLeastRepeats = 3;

/// step_period.cc: finds steps by repetition, where nothing marks them.
void find_period(Draft& draft);
/// steps.cc: which steps count towards the step time, and whether they suffice.
void settle_step_time(Draft& draft);
/// host.cc: nested records to segments of self time with their context.
void cut_host_time(Draft& draft);
/// calls.cc: where a call stops being work; blocking copies, synchronizing calls.
void resolve_calls(Draft& draft);
/// launch_queue.cc: launches that waited for a place in the queue.
void resolve_launch_queue(Draft& draft);
/// threads.cc: threads that wait for threads.
void find_handovers(Draft& draft);
/// thread_roles.cc: threads that have no part in the program's work.
void find_thread_roles(Draft& draft);
/// tasks.cc: segments and device events become tasks on lanes, with when they ran.
void build_tasks(Draft& draft);

/// events.cc: the last event of `stream` launched before `time`; kNone if there is none.
std::uint32_t last_launched_before(const Draft& draft, std::size_t stream, std::int64_t time);
/// events.cc: whether other kernels could run beside it, as far as known.
bool leaves_room(const Draft& draft, const DeviceEvent& event);
/// events.cc: recorded waits between streams.
void find_recorded_waits(const Draft& draft, std::vector<EventWait>& waits);
/// collectives.cc: a collective waits for the work before it, the update for the collectives.
void find_collective_waits(const Draft& draft, std::vector<EventWait>& waits);
/// default_stream.cc: blocking streams and the default stream wait for each other.
void find_default_stream_waits(Draft& draft, std::vector<EventWait>& waits);
/// repeated_waits.cc: the reason of calls that make streams wait, from what their work did each
/// time.
void find_repeated_waits(const Draft& draft, std::vector<EventWait>& waits);
/// graphs.cc: what the structure of CUDA graphs says.
void find_graph_waits(Draft& draft, std::vector<EventWait>& waits);
/// Names the work on another stream that explains an event's late start; nothing later than
/// `known` is a reason.
struct Explanation {
  std::uint32_t before = kNone;
  std::int64_t lag = 0;
  Rule why = Rule::event_wait;
};
/// events.cc
class WaitFinder {
 public:
  explicit WaitFinder(const Draft& draft);
  Explanation explain(std::uint32_t event, std::int64_t known) const;

 private:
  bool fills_device(const DeviceEvent& event) const;

  const Draft& draft_;
  std::vector<std::vector<std::uint32_t>> by_finish_;  ///< Events of each stream.
};

/// devices.cc: why each device task started when it did.
void connect_devices(Draft& draft);
/// collectives.cc: how much of the collectives' time only other ranks explain.
void measure_arrival_skew(Draft& draft);
/// collectives.cc: what other ranks can recognize each collective by.
void list_collectives(Draft& draft);
/// threads.cc: the waits of host tasks.
void connect_hosts(Draft& draft);
/// The step that a time lies in; -1 before the first and after the last. In steps.cc.
std::int32_t step_at(const Draft& draft, std::int64_t time);
/// flops.cc: arithmetic of kernels from the shapes of ops.
void count_flops(Draft& draft);
/// fill.cc: how much of a device the blocks of kernels take up.
void measure_fill(Draft& draft);
/// circles.cc: drops inferred waits that contradict each other.
void break_circles(Draft& draft);
/// memory.cc: allocator events become allocations between host tasks.
void connect_memory(Draft& draft);

/// snapshot.cc: the whole graph of a trace that only records an allocator. Throws TraceError if
/// there is no history.
void build_snapshot(Draft& draft);

/// Makes `task` start no earlier than it did, for want of a cause.
void pin(Draft& draft, TaskId task);

/// The overlap of a task that started `lag` after the finish of `before`; before it if negative.
inline Overlap overlap_behind(const Graph& graph, TaskId before, std::int64_t lag) {
  return lag < 0 ? overlap_of(Nanoseconds(-lag), graph.task(before).duration)
                 : Overlap{.lag = Nanoseconds(lag)};
}

}  // namespace foretrace::infer_detail

#pragma once

// The data that pass between the stages of inference. Each struct is filled by one stage and read
// by later ones; passes.h declares the stages, infer.cc calls them in order:
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

/// A device record with its times on the host's clock; in the order of its stream.
struct DeviceEvent {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;
  std::uint32_t call = kNone;  ///< Index into Records::calls of the call that launched it.
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

  bool waits_by_time = false;  ///< Filled by find_waits_by_time(): its returns show that it waits.

  // Filled by resolve_calls():
  bool waits = false;                  ///< The call cannot return before `awaited` are done.
  bool recorded_wait = false;          ///< A record names what it waits for.
  std::vector<std::uint32_t> awaited;  ///< Device events it waits for.
  std::vector<std::uint32_t> held_by;  ///< Device events it waits for before it does anything else.
  std::int64_t held_until = 0;         ///< Time when the last of `held_by` was done.
  /// The call is host work until `launch_start`, then submits its work (launch task) until
  /// `launch_finish`, then waits.
  std::int64_t launch_start = 0;
  std::int64_t launch_finish = 0;
  /// Time when the task it waits for finished; from here to `finish` is its own tail.
  std::int64_t released = 0;
  /// From `released` to here it waited for work that the recording lacks.
  std::int64_t unknown_until = 0;

  // Filled by resolve_launch_queue():
  /// The event whose finish freed the place in the launch queue.
  std::uint32_t queue_event = kNone;
  bool queued = false;  ///< Whether it had to wait for that place.

  // Filled by build_tasks():
  std::uint32_t context = kNone;  ///< Index into HostTime::contexts, for the segment that launches.
  TaskId launch_task = kNoTask;
  TaskId wait_task = kNoTask;
  TaskId held_task = kNoTask;
};

/// Device events in order of their streams, and the calls that launch or wait for them.
struct Records {
  const Trace& trace;
  std::vector<DeviceEvent> events{};                           ///< By stream, then start.
  std::vector<std::pair<std::size_t, std::size_t>> streams{};  ///< Range of events of each stream.
  std::vector<std::uint32_t> by_launch{};  ///< Launched events in order of their calls.
  /// Time at which each event, or the last one before it on its stream with a launch, was launched;
  /// the least time for events launched before the recording.
  std::vector<std::int64_t> launch_times{};
  std::vector<Call> calls{};
  /// Correlation id to host record.
  std::unordered_map<std::uint32_t, std::uint32_t> call_of_correlation{};
  /// Sync records of calls that wait (not of streams that do), by the call's correlation id.
  std::unordered_map<std::uint32_t, const SyncRecord*> sync_of_correlation{};
  std::vector<std::uint32_t> call_of_record{};  ///< By host record: index of its call, or kNone.
  /// Calls whose work the device had not begun when the recording ended, in order of time. Filled
  /// by count_launches().
  std::vector<std::uint32_t> ahead{};
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

/// Typical delays of this trace in ns, measured on starts that only one cause explains. The values
/// here apply if there are too few such starts; recalled of CUDA on recent devices.
struct TypicalDelays {
  /// Median time from the start of a launch call to the start of its kernel on an idle stream.
  std::int64_t launch = 5000;
  std::int64_t launch_fence = 20000;  ///< A launch does not explain a start later than this.
  std::int64_t gap = 1000;            ///< Median gap between kernels that wait only for each other.
  std::int64_t gap_fence = 10000;
  /// From the end of an event's work to the start of the work that waited for it.
  std::int64_t event = 3000;
};

struct MarkedStep {
  std::int64_t start = 0, finish = 0;
  std::string name;
};

/// The fate of the device work of a launch; see completeness.cc.
enum class WorkState : std::uint8_t { recorded, ahead, lost };

struct CountedLaunch {
  std::int64_t start = 0;
  WorkState work = WorkState::recorded;
};

/// Launches of kernels and graphs, counted against the device work.
struct Completeness {
  std::vector<CountedLaunch> launches;  ///< In order of time.
  std::int64_t lost = 0, ahead = 0;
};

/// The training steps, on the clock of the launches.
struct Steps {
  std::vector<MarkedStep> marks;  ///< In order of time.
  bool by_device = false;  ///< Found by the starts of device events, because there are no launches.
  StepSource source = StepSource::none;
  bool on_host_alone = false;  ///< Device work belongs to no step: its times cannot be trusted.
  std::vector<Shortcoming> shortcomings{};

  /// Returns the step that contains `time`; a gap belongs to the step before it. -1 before the
  /// first step and after the last.
  std::int32_t at(std::int64_t time) const;
};

/// A stretch of a thread's time, with the innermost record that it belongs to.
struct Segment {
  std::int64_t start = 0;
  std::int64_t finish = 0;
  std::uint32_t record = kNone;   ///< kNone between records.
  std::uint32_t context = kNone;  ///< Index into HostTime::contexts.
  std::uint32_t call = kNone;
};

/// The context of a stretch of host time: the annotations, ops and modules around it.
struct Context {
  Phase phase = Phase::none;
  bool input = false;  ///< Inside a data loader's next().
  NameId module{};
  std::int32_t layer = -1;
  std::uint32_t op = kNone;      ///< Host record of the innermost op.
  std::uint32_t parent = kNone;  ///< Index into HostTime::contexts, always smaller than its own.
};

/// How each thread spent its time.
struct HostTime {
  const Trace& trace;
  std::vector<std::vector<Segment>> segments{};  ///< By thread, in order and without gaps.
  std::vector<Context> contexts{};

  std::string_view name(const HostRecord& record) const { return trace.names[record.name]; }
};

/// While thread `waiter` waited in one segment, thread `worker` ran its segments `first` to `last`.
/// The waiter started it (unless it was busy already) and waited for it.
struct Handover {
  std::uint16_t waiter = 0, worker = 0;
  bool starts = true;               ///< Whether the worker was idle before.
  std::size_t segment = 0;          ///< Index of the waiter's segment.
  std::size_t first = 0, last = 0;  ///< Indices of the worker's segments.
  // Filled by build_tasks():
  /// The waiter's tasks before and after the wait.
  TaskId before_task = kNoTask, after_task = kNoTask;
  TaskId first_task = kNoTask, last_task = kNoTask;
};

/// See thread_roles.cc.
enum class ThreadRole : std::uint8_t { works, helps, watches };

/// Which thread works for which, and the tasks of each.
struct Threads {
  std::vector<Handover> handovers;
  std::vector<ThreadRole> roles{};
  /// Tasks of each thread, in order; filled by build_tasks().
  std::vector<std::vector<TaskId>> tasks{};
};

/// A device event that waits for another, besides its predecessor on the stream and its launch.
struct EventWait {
  std::uint32_t after = kNone, before = kNone;
  Provenance provenance = Provenance::inferred;
  WaitReason why = Rule::event_wait;
  friend bool operator<(const EventWait& a, const EventWait& b) {
    return std::pair(a.after, a.before) < std::pair(b.after, b.before);
  }
};

/// The start of the recording, which is the first task of every inferred graph.
inline constexpr TaskId kOrigin{0};

/// A pattern must occur at least this often to mark steps. Chosen.
inline constexpr std::size_t kMinRepeats = 3;

}  // namespace foretrace::infer_detail

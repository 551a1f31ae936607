#pragma once

// The stages of inference and their rules, each in its own file. A signature shows what a stage
// reads and what it fills; see stages.h for the data.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/stages.h"

namespace foretrace::infer_detail {

/// If more than this share of the launches or of the time is missing, answers may be completely
/// wrong. Chosen, as kMuchOpenTime in trust.h.
constexpr double kMuchMissing = 0.1;

/// Sentences that state what the graph assumes.
using Assumptions = std::vector<std::string>;

/// The longest time, in ns, between the end of the awaited work and the start of the waiting work
/// that counts as following directly. Chosen.
constexpr std::int64_t kRightBehind = 20'000;

/// records.cc: sorts device events by stream, calls by correlation id, and events by launch.
Records order_records(const Trace& trace, Notes& notes);
/// records.cc: returns the index of the call of a host record, which becomes one if it was none.
std::uint32_t call_at(Records& records, std::uint32_t record);
/// completeness.cc: counts launches that have no device work, and fills Records::ahead.
Completeness count_launches(Records& records, Notes& notes);
/// clock.cc: corrects the shift between the clocks of host and device.
void align_clocks(Records& records, Notes& notes);
/// impossible.cc: shortens activities that outlast the work behind them. After align_clocks().
void mend_impossible_ends(Records& records, Notes& notes);
/// impossible.cc: whether work starts so late on an idle device that its times cannot be trusted.
std::optional<Shortcoming> find_late_starts(const Records& records);
/// waits_by_time.cc: finds calls with unknown names that again and again return just behind the
/// last work launched.
void find_waits_by_time(Records& records);
/// waits_by_time.cc: gives a call that frees memory the time that its op waited in front of it.
void widen_releases(Records& records, HostTime& host);
/// typical.cc: measures typical delays.
TypicalDelays measure_typical_delays(const Records& records);
/// steps.cc: finds the steps by markers, or else by other evidence.
Steps find_steps(const Records& records, const Completeness& found, Notes& notes,
                 Assumptions& assumptions);
/// step_period.cc: finds steps by repetition if nothing marks them.
Steps find_period(const Records& records, Assumptions& assumptions);
/// step_period.cc: adds a shortcoming if the work repeats itself within the only step. REQUIRES:
/// one mark.
void find_repetition_in_only_step(const Records& records, Steps& steps);
/// host.cc: converts nested records to segments of self time with their context. Interns paths of
/// modules in `names`.
HostTime cut_host_time(const Records& records, Names& names);

/// recorder_time.cc: measures how long the recorder itself takes for a record; 0 if too few ops are
/// nested to tell.
Nanoseconds measure_recorder(const HostTime& host);
/// recorder_time.cc: adds a shortcoming if a step has much host work that the recorder made longer
/// by an unknown part. After settle_step_time().
void note_unknown_recorder_time(const Trace& trace, Inference& result);

/// events.cc: returns the last event of `stream` launched before `time`; kNone if there is none.
std::uint32_t last_launched_before(const Records& records, std::size_t stream, std::int64_t time);
/// events.cc: returns the event that finished last between `start` and `finish`, among the last
/// ones launched on each stream before `start`; kNone if there is none.
std::uint32_t latest_done(const Records& records, std::int64_t start, std::int64_t finish);
/// events.cc: whether other kernels could run beside the event, as far as known.
bool leaves_room(const Records& records, const DeviceEvent& event);

// Waits between streams, sorted by the event that waits. find_stream_waits() in events.cc returns
// those that calls establish, from records and the rules of CUDA.
using EventWaits = std::vector<EventWait>;
EventWaits find_stream_waits(const Records& records, const TypicalDelays& typical, Notes& notes,
                             Assumptions& assumptions);
/// Stable: for equal pairs, a recorded wait stays before an inferred one.
void sort_waits(EventWaits& waits);
/// default_stream.cc: blocking streams and the default stream wait for each other.
void find_default_stream_waits(const Records& records, const TypicalDelays& typical,
                               EventWaits& waits, Notes& notes, Assumptions& assumptions);
/// repeated_waits.cc: infers what streams wait for after cudaStreamWaitEvent, from repeated
/// behaviour.
void find_repeated_waits(const Records& records, const TypicalDelays& typical, EventWaits& waits);
/// graphs.cc: waits between the nodes of CUDA graphs.
void find_graph_waits(const Records& records, Names& names, EventWaits& waits);
/// collectives.cc: a collective waits for the work before it, and the update for the collectives.
/// Reads the steps and phases of events.
void find_collective_waits(const Records& records, EventWaits& waits);

/// calls.cc: finds when a call stops working and waits; blocking copies, synchronizing calls.
void resolve_calls(Records& records, const TypicalDelays& typical, const EventWaits& stream_waits);
/// waits_by_time.cc: states how much of the recording the host waited for work that it lacks.
void note_unknown_device_time(const Records& records, Inference& result);
/// launch_queue.cc: finds launches that waited for a place in the queue.
void resolve_launch_queue(Records& records, Assumptions& assumptions);
/// completeness.cc: drops steps that are not whole, and says if too little is left.
void keep_whole_steps(const Records& records, const Completeness& found, Steps& steps,
                      Inference& result);
/// completeness.cc: adds a shortcoming if most ops of the recording are missing. After
/// connect_devices().
void note_missing_ops(const Records& records, Inference& result);
/// threads.cc: finds threads that wait for other threads.
std::vector<Handover> find_handovers(const HostTime& host, std::int64_t tolerance);
/// thread_roles.cc: finds threads that take no part in the program's work.
std::vector<ThreadRole> find_thread_roles(const Records& records,
                                          const std::vector<Handover>& handovers, Notes& notes);
/// tasks.cc: begins a graph with kOrigin and the steps.
void begin_graph(std::int32_t rank, const Steps& steps, Inference& result);
/// tasks.cc: appends a task that ran from `start` to `finish`.
TaskId append_run(LaneId lane, std::int64_t start, std::int64_t finish, Task task,
                  Inference& result);
/// tasks.cc: turns segments and device events into tasks on lanes, with their recorded times.
void build_tasks(const HostTime& host, const Steps& steps, Records& records, Threads& threads,
                 Inference& result);

/// threads.cc: adds the waits of host tasks, and a shortcoming if nothing but threads was recorded
/// and what starts most of them was not.
void connect_hosts(const Records& records, const Threads& threads, Inference& result);
/// devices.cc: adds the waits of device tasks, which explain their starts.
void connect_devices(const Records& records, const TypicalDelays& typical, EventWaits waits,
                     Inference& result);
/// cycles.cc: drops inferred waits that form cycles.
void break_cycles(Inference& result);
/// steps.cc: decides which steps count for the step time, and notes if they are too few.
void settle_step_time(StepSource source, Inference& result);
/// collectives.cc: measures how much of the collectives' time only other ranks explain.
void measure_arrival_skew(const Records& records, Inference& result);
/// collectives.cc: lists the facts by which other ranks can recognize each collective.
void list_collectives(const Records& records, Inference& result);
/// flops.cc: computes the arithmetic of kernels from the shapes of ops.
void count_flops(const Records& records, const std::vector<Context>& contexts, Graph& graph);
/// autocast.cc: finds what torch.autocast would change in the work of ops, from their shapes.
void find_autocast_work(const Records& records, const std::vector<Context>& contexts, Graph& graph);
/// fill.cc: computes how much of a device the blocks of kernels fill.
void measure_fill(const Records& records, Graph& graph);

/// The data about the program that the memory rules need.
struct Program {
  const Records& records;
  const HostTime& host;
  const Steps& steps;
};
/// gradient_sizes.cc: estimates the bytes of all gradients of a step.
void estimate_gradients(const Program& program, Graph& graph);
/// memory.cc: turns allocator events into allocations between host tasks.
void connect_memory(const Program& program, const Threads& threads, Inference& result);

/// snapshot.cc: builds the whole graph of a trace that only records an allocator. Throws TraceError
/// if there is no history.
void build_snapshot(const Trace& trace, Inference& result);

/// Pins `task`, which has no known cause: it starts no earlier than recorded. Does nothing if it
/// starts within `tolerance` of the start of the recording.
void pin(TaskId task, std::int64_t tolerance, Inference& result);

/// Returns the overlap of a task that started `lag` after the finish of `before`, or before it if
/// negative.
inline Overlap overlap_behind(const Graph& graph, TaskId before, std::int64_t lag) {
  return lag < 0 ? overlap_of(Nanoseconds(-lag), graph.task(before).duration)
                 : Overlap{.lag = Nanoseconds(lag)};
}

}  // namespace foretrace::infer_detail

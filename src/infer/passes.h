#pragma once

// The stages of inference and their rules, each in a file of its own. A signature says what a stage
// reads and what it fills; see stages.h for the data.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/notes.h"
#include "infer/stages.h"

namespace foretrace::infer_detail {

/// Sentences about what the graph assumes.
using Assumptions = std::vector<std::string>;

/// records.cc: device events by stream, calls by correlation id, launches of events.
Records order_records(const Trace& trace, Notes& notes);
/// clock.cc: the shift between the clocks of host and device.
void align_clocks(Records& records, Notes& notes);
/// typical.cc
Typical measure_typical_delays(const Records& records);
/// steps.cc: from markers, else by finding the period.
Steps find_steps(const Records& records, Notes& notes, Assumptions& assumptions);
/// step_period.cc: finds steps by repetition, where nothing marks them.
Steps find_period(const Records& records, Assumptions& assumptions);
/// host.cc: nested records to segments of self time with their context. Paths of modules become
/// `names`.
HostTime cut_host_time(const Records& records, Names& names);

/// events.cc: the last event of `stream` launched before `time`; kNone if there is none.
std::uint32_t last_launched_before(const Records& records, std::size_t stream, std::int64_t time);
/// events.cc: whether other kernels could run beside it, as far as known.
bool leaves_room(const Records& records, const DeviceEvent& event);

// Waits between streams, by the event that waits. find_stream_waits() in events.cc has those that
// calls depend on, from records and the rules of CUDA.
using EventWaits = std::vector<EventWait>;
EventWaits find_stream_waits(const Records& records, const Typical& typical, Notes& notes,
                             Assumptions& assumptions);
/// For one pair, a recorded wait stays before an inferred one.
void sort_waits(EventWaits& waits);
/// default_stream.cc: blocking streams and the default stream wait for each other.
void find_default_stream_waits(const Records& records, const Typical& typical, EventWaits& waits,
                               Notes& notes, Assumptions& assumptions);
/// repeated_waits.cc: the reason of calls that make streams wait, from what their work did each
/// time.
void find_repeated_waits(const Records& records, const Typical& typical, EventWaits& waits);
/// graphs.cc: what the structure of CUDA graphs says.
void find_graph_waits(const Records& records, Names& names, EventWaits& waits);
/// collectives.cc: a collective waits for the work before it, the update for the collectives.
/// Reads the steps and phases of events.
void find_collective_waits(const Records& records, EventWaits& waits);

/// calls.cc: where a call stops being work; blocking copies, synchronizing calls.
void resolve_calls(Records& records, const Typical& typical, const EventWaits& stream_waits);
/// launch_queue.cc: launches that waited for a place in the queue.
void resolve_launch_queue(Records& records, Assumptions& assumptions);
/// threads.cc: threads that wait for threads.
std::vector<Handover> find_handovers(const HostTime& host, std::int64_t tolerance);
/// thread_roles.cc: threads that have no part in the program's work.
std::vector<ThreadRole> find_thread_roles(const Records& records,
                                          const std::vector<Handover>& handovers, Notes& notes);
/// tasks.cc: how every graph begins: with kOrigin, and the steps.
void begin_graph(std::int32_t rank, const Steps& steps, Inference& result);
/// tasks.cc: a task that ran from `start` to `finish`.
TaskId append_run(LaneId lane, std::int64_t start, std::int64_t finish, Task task,
                  Inference& result);
/// tasks.cc: segments and device events become tasks on lanes, with when they ran.
void build_tasks(const HostTime& host, const Steps& steps, Records& records, Threads& threads,
                 Inference& result);

/// threads.cc: the waits of host tasks.
void connect_hosts(const Records& records, const Threads& threads, Inference& result);
/// devices.cc: why each device task started when it did.
void connect_devices(const Records& records, const Typical& typical, EventWaits waits,
                     Inference& result);
/// cycles.cc: drops inferred waits that contradict each other.
void break_cycles(Inference& result);
/// steps.cc: which steps count towards the step time, and whether they suffice.
void settle_step_time(StepSource source, Inference& result);
/// collectives.cc: how much of the collectives' time only other ranks explain.
void measure_arrival_skew(const Records& records, Inference& result);
/// collectives.cc: what other ranks can recognize each collective by.
void list_collectives(const Records& records, Inference& result);
/// flops.cc: arithmetic of kernels from the shapes of ops.
void count_flops(const Records& records, const std::vector<Context>& contexts, Graph& graph);
/// fill.cc: how much of a device the blocks of kernels take up.
void measure_fill(const Records& records, Graph& graph);

/// The program that ran, as far as the rules about memory look at it.
struct Program {
  const Records& records;
  const HostTime& host;
  const Steps& steps;
};
/// memory.cc: allocator events become allocations between host tasks.
void connect_memory(const Program& program, const Threads& threads, Inference& result);

/// snapshot.cc: the whole graph of a trace that only records an allocator. Throws TraceError if
/// there is no history.
void build_snapshot(const Trace& trace, Inference& result);

/// Makes `task` start no earlier than it did, for want of a cause. A start within `tolerance` of
/// that of the recording needs none.
void pin(TaskId task, std::int64_t tolerance, Inference& result);

/// The overlap of a task that started `lag` after the finish of `before`; before it if negative.
inline Overlap overlap_behind(const Graph& graph, TaskId before, std::int64_t lag) {
  return lag < 0 ? overlap_of(Nanoseconds(-lag), graph.task(before).duration)
                 : Overlap{.lag = Nanoseconds(lag)};
}

}  // namespace foretrace::infer_detail

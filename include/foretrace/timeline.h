#pragma once

// When each task of a graph runs, and which allocations are in use: as recorded, or as simulate()
// finds it. The same questions (step time, breakdown, peak) apply to both.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Why a task started when it did.
struct StartReason {
  TaskId before = kNoTask;  ///< kNoTask if it waited for nothing and could start at 0.
  WaitReason why{};
  Nanoseconds lag{0};
};

struct MemoryCurve {
  std::int32_t device = 0;
  struct Point {
    Nanoseconds time{};
    Bytes allocated{};
  };
  std::vector<Point> points;  ///< In order of time; a level holds until the next point.
  Bytes peak{};
  Nanoseconds peak_time{};
  TaskId peak_task = kNoTask;  ///< The task whose allocation made the peak.
};

/// Indexed by TaskId. A removed task has the time at which it would pass on its waits.
struct Timeline {
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> finish;
  std::vector<StartReason> reasons;  ///< Empty unless asked for.
  std::vector<MemoryCurve> memory;
  Nanoseconds length{0};  ///< The greatest finish.
};

/// How long a training step takes. Every step time in an answer is defined this way.
///
///     device   |A A A   |A A A    |A A A A A   |
///              |--each--|--each---|---each-----|    distances of first activities launched
///
/// Steps that alternate are counted by whole periods; see Graph::step_rule().
struct StepTimes {
  /// The distance of each step to the next, from the first device activity launched in one to that
  /// in the other (between first host tasks if most steps have no device work). If the busiest
  /// stream has more work than fits into these distances, because copies on a stream of their own
  /// run ahead, only activities of that stream count; if the distances fall below 0, only those of
  /// the stream with work in the most steps. The last step has no next one. With fewer than four
  /// distances it counts as well. Then each step begins with its work on a launching thread, or
  /// when the device has finished earlier work, whichever is later, but no later than its first
  /// device activity; and the last one ends when its work is done on both. It takes no less than
  /// its work on the launching threads, as far as all steps together fit into the recording.
  std::vector<Nanoseconds> each;
  /// The mean step of each whole period that counts, in order. Empty without steps.
  std::vector<Nanoseconds> counted;
  Nanoseconds step_time{0};  ///< Median of `counted`; `length` for a graph without steps.
  Nanoseconds mean{0}, fastest{0}, slowest{0};  ///< Over `counted`.
  double spread = 0;                            ///< (slowest - fastest) / step time.
  std::size_t first = 0;  ///< How many of `each` precede the first one that counts.
  std::int32_t period = 1;
  StepSource source = StepSource::none;

  std::size_t steps() const { return each.size() - first; }  ///< Number of steps that count.
};

StepTimes step_times(const Graph& graph, const Timeline& timeline);

/// A step time is less certain if it comes from fewer steps, or from steps that spread wider.
constexpr std::size_t kFewSteps = 3;
constexpr double kWideSpread = 0.3;

/// Sets Graph::step_rule() except for its source. The period follows from the names of the work in
/// each step. The first period is skipped if it is further from the median of the others than these
/// are from each other, and if at least three others remain.
void set_step_rule(Graph& graph, const Timeline& recorded);

/// The window in which steps count, and their number; 1 for a graph without steps.
struct StepWindow {
  Nanoseconds from{}, to{};
  std::int64_t steps = 1;
  StepTimes times;  ///< Result of step_times().
};
StepWindow step_window(const Graph& graph, const Timeline& timeline);

/// Where the time of a typical step goes: of the average one, or of the one or two that take the
/// step time if others differ by more than a half of it. The parts add up to the step time. Each
/// instant counts as the first that applies: compute (a kernel runs), communication (only
/// collectives run), copy, unknown (the host waits for device work that is not recorded), input
/// (nothing on the device, a data-loading task runs on a host thread), host (host work), idle.
struct Breakdown {
  Nanoseconds compute{0}, communication{0}, copy{0}, input{0}, host{0}, idle{0}, unknown{0};
};
Breakdown breakdown(const Graph& graph, const Timeline& timeline);

/// How long collectives run in such a step, hidden by kernels or not;
/// Breakdown::communication is the part that is not hidden.
Nanoseconds communication_time(const Graph& graph, const Timeline& timeline);

/// A block that the allocator made or freed.
struct MemoryEvent {
  Nanoseconds time{};
  std::uint32_t allocation = 0;  ///< Into Graph::allocations().
  bool frees = false;
};

/// Returns all allocator events after the beginning, ordered by time, then as recorded. A block
/// that an edited graph frees before making it is held for no time. Blocks of 0 bytes do not count;
/// blocks that nothing makes exist before the first event.
std::vector<MemoryEvent> memory_events(const Graph& graph, const Timeline& timeline);

/// The repetition of sizes among the blocks made on a device, as training steps cause it. Numbers
/// count those blocks in the order in which they are made.
struct MemoryPeriod {
  std::size_t first = 0;
  std::size_t length = 0;  ///< Blocks in each repetition; 0 if there is no period.
  std::size_t repetitions = 0;
};

/// Takes the result of memory_events(). Repetitions have the same sizes at the same level in use,
/// are complete, occur at least twice, and cover most of the events. About linear.
MemoryPeriod memory_period(const Graph& graph, const std::vector<MemoryEvent>& events,
                           std::int32_t device);

/// Bytes in use on `device` when the recording began: as recorded, but at least the sum of the
/// blocks that nothing in the recording makes.
Bytes initial_memory(const Graph& graph, std::int32_t device);

/// Returns one curve for each device that has allocations.
std::vector<MemoryCurve> memory_curves(const Graph& graph, const Timeline& timeline);

/// Time of a typical step that waits for input: the device is idle while the training thread loads,
/// or does nothing but copy input. For loading whose kind the records tell:
///
///     train   |LLLLLLxxxxLLLx|       stall   7, nothing runs on the device
///     device  |......KKKKKK..|       hidden  2, the device works
///                                    (the second load is hidden for 2 and stalls for 1)
///
/// A stall is observed time, not time that could be saved: the work behind it may wait for
/// something else, too. To know the savings, replay the graph with loading that takes no time.
struct InputStalls {
  /// The share that they have of all steps, of the typical step.
  struct StallTime {
    Nanoseconds stall{0};
    Nanoseconds hidden{0};
  };
  StallTime reading;    ///< Reading from files and sockets, as records say.
  StallTime preparing;  ///< Operators, decoding and transforming.
  StallTime waiting;    ///< Waiting for loader processes, whose work is not recorded.
  StallTime unknown;    ///< Loading in the training thread that no record identifies.
  StallTime copying;    ///< Copies to the device; hidden while the device does other work.

  Nanoseconds step{0};
  std::int64_t steps = 0;     ///< Number of steps that the averages are over.
  std::int64_t batches = 0;   ///< Batches loaded in these steps.
  std::int64_t pageable = 0;  ///< Copies in from pageable memory.
  std::int64_t pinned = 0;    ///< Copies in from pinned memory. Some records tell neither.
  Bytes copied{};             ///< Bytes copied in per step.
};

/// Covers the steps that the step time is taken from. Takes O(n log n) time.
InputStalls input_stalls(const Graph& graph, const Timeline& timeline);

/// The kind of a loading task (TaskKind::input), which its name reveals.
enum class Loading : std::uint8_t { unknown, reading, preparing, waiting };
Loading loading_named(std::string_view name);

/// The chain of tasks, each waiting for the one before, that ends last; in order of time. REQUIRES:
/// the timeline has `reasons`.
std::vector<TaskId> critical_path(const Graph& graph, const Timeline& timeline);
/// The chain that ends with `last`. REQUIRES: the timeline has `reasons`.
std::vector<TaskId> path_to(const Timeline& timeline, TaskId last);

/// One line per lane that has tasks, one character per `tick` (each task drawn with the first
/// letter of its name):
///
///     cpu    |LLMM....|
///     stream |..AAAABB|
std::string to_ascii(const Graph& graph, const Timeline& timeline, Nanoseconds tick = 1us);

}  // namespace foretrace

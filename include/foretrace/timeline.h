#pragma once

// When each task of a graph runs, and which allocations are in use: as recorded, or as simulate()
// finds it. The same questions (step time, breakdown, peak) apply to both.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Why a task started when it did.
struct Reason {
  TaskId before = kNoTask;  ///< kNoTask: nothing, it could start at 0.
  Why why{};
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

/// Indexed by TaskId; removed tasks have the time at which they would pass waits on.
struct Timeline {
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> finish;
  std::vector<Reason> reasons;  ///< Empty unless asked for.
  std::vector<MemoryCurve> memory;
  Nanoseconds length{0};  ///< The greatest finish.
};

/// How long a training step takes. Everything that speaks of the time of a step means this.
///
///     device   |A A A   |A A A    |A A A A A   |
///              |--each--|--each---|---each-----|    distances of first activities launched
///
/// Steps that alternate are counted by whole periods; see Graph::step_rule().
struct StepTimes {
  /// The distance of each step to the next (first device activity launched to first device activity
  /// launched; between first host tasks where most steps have no device work). Where they are
  /// closer than the busiest stream has work for, because copies on a stream of their own run
  /// ahead, only activities of that stream count. The last step has no next: with fewer than four
  /// distances it counts as well, as long as its device work or the thread that launches it takes,
  /// whichever is longer. The only step reaches from the begin of either to the end of both.
  std::vector<Nanoseconds> each;
  /// The mean of the steps of each whole period that counts, in order. Empty without steps.
  std::vector<Nanoseconds> counted;
  Nanoseconds step_time{0};  ///< Median of `counted`; `length` for a graph without steps.
  Nanoseconds mean{0}, fastest{0}, slowest{0};  ///< Over `counted`.
  /// (slowest - fastest) / step time, where a tenth of `counted` at either end is left out.
  double spread = 0;
  std::size_t first = 0;  ///< How many of `each` come before the first that is counted.
  std::int32_t period = 1;
  StepSource source = StepSource::none;

  std::size_t steps() const { return each.size() - first; }  ///< That count.
};

StepTimes step_times(const Graph& graph, const Timeline& timeline);

/// A step time taken from fewer steps, or from steps that spread wider, is known less well.
constexpr std::size_t kFewSteps = 3;
constexpr double kWideSpread = 0.3;

/// Sets Graph::step_rule() except for its source: the period, from the names of the work in each
/// step, and whether the first is an outlier: further from the median of the others than these are
/// from each other. It is left out only if three others remain.
void settle_steps(Graph& graph, const Timeline& recorded);

/// From where to where steps count, and how many these are; 1 for a graph without steps.
struct StepWindow {
  Nanoseconds from{}, to{};
  std::int64_t steps = 1;
  StepTimes times;  ///< As step_times().
};
StepWindow step_window(const Graph& graph, const Timeline& timeline);

/// Where the time of an average steady step goes; the parts add up to the step time. Each instant
/// counts as the first that applies: compute (a kernel runs), communication (only collectives run),
/// copy, input (nothing on the device, a data-loading task runs on a host thread), host (host
/// work), idle.
struct Breakdown {
  Nanoseconds compute{0}, communication{0}, copy{0}, input{0}, host{0}, idle{0};
};
Breakdown breakdown(const Graph& graph, const Timeline& timeline);

/// One thing that an allocator did.
struct MemoryEvent {
  Nanoseconds time{};
  std::uint32_t allocation = 0;  ///< Into Graph::allocations().
  bool frees = false;
};

/// All allocator events after the beginning, in order: by time, then as recorded. A block that an
/// edited graph frees before making it is held for no time. Blocks of 0 bytes do not count; blocks
/// that nothing makes are there before the first event.
std::vector<MemoryEvent> memory_events(const Graph& graph, const Timeline& timeline);

/// Where the sizes of the blocks made on a device repeat: training steps. Numbers count those
/// blocks in the order in which they are made.
struct MemoryPeriod {
  std::size_t first = 0;
  std::size_t length = 0;  ///< Blocks in each repetition; 0 if there is no period.
  std::size_t repetitions = 0;
};

/// Takes the result of memory_events(). Repetitions are complete: the same sizes at the same level
/// in use, at least twice and over most of the events. About linear.
MemoryPeriod memory_period(const Graph& graph, const std::vector<MemoryEvent>& events,
                           std::int32_t device);

/// Bytes in use on `device` when the recording began: as recorded, or at least those of the blocks
/// that nothing in the recording makes.
Bytes initial_memory(const Graph& graph, std::int32_t device);

/// From the allocations of the graph. One curve for each device that has any.
std::vector<MemoryCurve> memory_curves(const Graph& graph, const Timeline& timeline);

/// Time of a step that waits for input: the device stands still while the training thread loads, or
/// has nothing to do but copies of input. Of loading that is told by its records:
///
///     train   |LLLLLLxxxxLLLx|       stall   6, nothing runs on the device
///     device  |......KKKKKK..|       hidden  2, the device works
///                                    (of the second L, one is stall)
///
/// A stall is time that was seen, not time that would be won: what follows may wait for something
/// else, too. Replaying the graph with loading that takes no time tells that.
struct InputStalls {
  /// Times are averages over the steps.
  struct Part {
    Nanoseconds stall{0};
    Nanoseconds hidden{0};
  };
  Part reading;    ///< Records that say so: files, sockets.
  Part preparing;  ///< Operators, decoding and transforming.
  Part waiting;    ///< For processes that load; what these do is not recorded.
  Part untold;     ///< Loading in the training thread that no record tells apart.
  Part copying;    ///< To the device. Hidden beside kernels and other work of the device.

  Nanoseconds step{0};
  std::int64_t steps = 0;     ///< That the averages are of.
  std::int64_t batches = 0;   ///< Loaded in these.
  std::int64_t pageable = 0;  ///< Copies in, by the memory they come from.
  std::int64_t pinned = 0;    ///< Copies whose records do not say are neither.
  Bytes copied{};             ///< In a step.
};

/// Over the steps that the step time is taken from. n log n.
InputStalls input_stalls(const Graph& graph, const Timeline& timeline);

/// The name of a loading task says what it does; such tasks have kind input.
enum class Loading : std::uint8_t { untold, reading, preparing, waiting };
Loading loading_named(std::string_view name);

/// The chain of tasks that ends last, in order of time. Needs `reasons`.
std::vector<TaskId> critical_path(const Graph& graph, const Timeline& timeline);
/// The one that ends with `last`.
std::vector<TaskId> path_to(const Timeline& timeline, TaskId last);

/// One line per lane that has tasks, one character per `tick` (each task drawn with the first
/// letter of its name):
///
///     cpu    |LLMM....|
///     stream |..AAAABB|
std::string to_ascii(const Graph& graph, const Timeline& timeline, Nanoseconds tick = 1us);

}  // namespace foretrace

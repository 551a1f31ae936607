#pragma once

// The blocks of one device in order of time. All sections of the memory report are made from them.

#include <vector>

#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct DeviceMemory {
  const Graph& graph;
  const Timeline& timeline;
  std::int32_t device = 0;
  Nanoseconds from{0}, to{0};       ///< The window; it includes `to` only if that is `end`.
  std::vector<MemoryEvent> events;  ///< Events of the device, in order, from first to last.
  std::vector<TimedBlock> blocks;   ///< Blocks of the device, in order of number.
  Bytes unnamed{};                  ///< Bytes always in use that belong to no known block.
  /// The time of a step on the host: from the start of its first host task to the next step. A step
  /// without host tasks begins with its first task; a step without tasks has no span.
  struct StepSpan {
    std::int32_t step = -1;
    Nanoseconds begin{0}, end{0};
  };
  std::vector<StepSpan> steps;
  Nanoseconds end{0};  ///< The end of the recording; blocks that are never freed end here.

  const Allocation& allocation(std::uint32_t number) const { return graph.allocations()[number]; }
  Bytes initial() const { return initial_memory(graph, device); }
  bool in_window(Nanoseconds time) const { return from <= time && (time < to || to == end); }
};

DeviceMemory device_memory(const Graph& graph, const Timeline& timeline, std::int32_t device);

/// Returns the task that makes or frees the block of an event; kNoTask if it was not recorded.
TaskId task_of(const Graph& graph, const MemoryEvent& event);

/// Returns the bytes in use after each event; the first point is the beginning of the recording.
std::vector<MemoryCurve::Point> level_curve(const DeviceMemory& memory);

/// Returns the maker of a block: its op, else the task that made it, else a remark in parentheses.
std::string maker_of(const Graph& graph, const Allocation& block);

/// Returns the most informative frame of the block's stack, cut to fit a line; empty without a
/// stack.
std::string line_of(const Graph& graph, const Allocation& block);

/// Sorts the times first; returns zeros if there are none.
Quantiles quantiles(std::vector<Nanoseconds> times);

/// Counts times by decade, from below 1 us to 10 s and more. trimmed_bins() leaves out empty bins
/// at both ends.
class TimeHistogram {
 public:
  TimeHistogram();
  TimeBin& bin_of(Nanoseconds time);
  std::vector<TimeBin> trimmed_bins() const;

 private:
  std::vector<TimeBin> bins_;
};

void describe_occupation(const DeviceMemory& memory, const MemoryQuestion& question,
                         MemoryReport& report);
void describe_lifetimes(const DeviceMemory& memory, MemoryReport& report);
void describe_growth(const DeviceMemory& memory, const MemoryQuestion& question,
                     MemoryReport& report);
void describe_pool(const DeviceMemory& memory, MemoryReport& report);
void describe_intervals(const DeviceMemory& memory, const MemoryQuestion& question,
                        MemoryReport& report);

}  // namespace foretrace

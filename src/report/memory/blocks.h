#pragma once

// The blocks of one device in order of time: the source of every section of the memory report.

#include <vector>

#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

struct DeviceMemory {
  const Graph& graph;
  const Timeline& timeline;
  std::int32_t device = 0;
  Nanoseconds from{0}, to{0};       ///< The window, `to` included only at the very end.
  std::vector<MemoryEvent> events;  ///< Events of the device, in order, from first to last.
  std::vector<TimedBlock> blocks;   ///< Blocks of the device, in order of number.
  Bytes unnamed{};                  ///< Bytes in use all the time that belong to no known block.
  /// When each step begins on the host: where its first task does that is not on a device. In
  /// order; steps without tasks have none.
  struct StepSpan {
    std::int32_t step = -1;
    Nanoseconds begin{0}, end{0};
  };
  std::vector<StepSpan> steps;
  Nanoseconds end{0};  ///< End of the recording, and of blocks that outlive it.

  const Allocation& allocation(std::uint32_t number) const { return graph.allocations()[number]; }
  Bytes initial() const { return initial_memory(graph, device); }
  bool in_window(Nanoseconds time) const { return from <= time && (time < to || to == end); }
};

DeviceMemory device_memory(const Graph& graph, const Timeline& timeline, std::int32_t device);

/// The task of an event; kNoTask where the recording has none.
TaskId task_of(const Graph& graph, const MemoryEvent& event);

/// Bytes in use after each event; the first point is the beginning.
std::vector<MemoryCurve::Point> level_curve(const DeviceMemory& memory);

/// The maker of a block: its op, else the task that made it, else a remark in brackets.
std::string maker_of(const Graph& graph, const Allocation& block);

/// The most informative frame of its stack, cut to fit a line; empty without a stack.
std::string line_of(const Graph& graph, const Allocation& block);

/// Sorts the times first; returns zeros if there are none.
Quantiles quantiles(std::vector<Nanoseconds> times);

/// Decades from below 1 us to 10 s and more, without the empty ones at both ends.
class Decades {
 public:
  Decades();
  TimeBin& at(Nanoseconds time);
  std::vector<TimeBin> used() const;

 private:
  std::vector<TimeBin> bins_;
};

void describe_occupation(const DeviceMemory& memory, const MemoryQuestion& question,
                         MemoryReport& report);
void describe_lifetimes(const DeviceMemory& memory, const MemoryQuestion& question,
                        MemoryReport& report);
void describe_growth(const DeviceMemory& memory, const MemoryQuestion& question,
                     MemoryReport& report);
void describe_pool(const DeviceMemory& memory, MemoryReport& report);
void describe_intervals(const DeviceMemory& memory, const MemoryQuestion& question,
                        MemoryReport& report);

}  // namespace foretrace

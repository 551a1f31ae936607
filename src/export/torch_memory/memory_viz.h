#pragma once

// The content of a memory snapshot, as far as a trace has it.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// One event of a device's history. Stacks are texts here, because those of a profiler's trace are
/// made from the ops around the event.
struct VizEvent {
  MemoryAction action = MemoryAction::block;
  bool frees = false;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< Never negative.
  std::int64_t time_us = 0;
  std::int64_t stream = 0;
  std::uint32_t stack = 0;  ///< Into VizState::stacks.
};

struct VizBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0, requested_bytes = 0;
  BlockState state = BlockState::allocated;
  std::uint32_t stack = 0;
};

struct VizSegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t stream = 0;
  std::int32_t device = 0;
  bool is_large = true, is_expandable = false;
  std::uint32_t stack = 0;
  std::string pool;  ///< JSON text; may be empty.
  std::vector<VizBlock> blocks;
};

struct VizState {
  /// "file:line name" for each frame, innermost first. Number 0 is the empty stack.
  std::vector<std::vector<std::string>> stacks = {{}};
  std::vector<VizSegment> segments;
  std::vector<std::vector<VizEvent>> histories;  ///< By device.
  bool has_times = true;
};

/// From a trace that was a snapshot: its state.
VizState state_of_snapshot(const Trace& trace);

/// From a profiler's trace with memory events: blocks alive at its end lie in segments, which the
/// profiler does not record, so segments are made around the blocks. Throws Error if the events
/// have no addresses.
VizState state_of_events(const Trace& trace);

}  // namespace foretrace

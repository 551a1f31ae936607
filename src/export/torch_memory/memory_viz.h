#pragma once

// The part of a memory snapshot's content that a trace provides.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/trace.h"

namespace foretrace {

/// One event of a device's history.
struct VizEvent {
  MemoryAction action = MemoryAction::block;
  bool frees = false;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< Never negative.
  std::int64_t time_us = 0;
  std::int64_t stream = 0;
  std::uint32_t stack = 0;  ///< Index into VizState::stacks.
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
  /// For each stack, its frames as "file:line name", innermost first. Stack 0 is empty. Frames are
  /// texts, because stacks of a profiler's trace are made from the ops around the event.
  std::vector<std::vector<std::string>> stacks = {{}};
  std::vector<VizSegment> segments;
  std::vector<std::vector<VizEvent>> histories;  ///< By device.
  bool has_times = true;
};

/// Takes the state of a trace that was read from a snapshot.
VizState state_of_snapshot(const Trace& trace);

/// Derives the state from a profiler's trace with memory events. The profiler does not record
/// segments, so segments are made around the blocks that are in use at its end. Throws Error if the
/// events have no addresses.
VizState state_of_events(const Trace& trace);

}  // namespace foretrace

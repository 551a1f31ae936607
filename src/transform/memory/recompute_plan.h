#pragma once

// Which work a program repeats to restore dropped activations. A dropped block needs the tasks that
// wrote it; these need what they read, unless it still exists: other dropped blocks, and blocks
// that the forward pass had freed. Everything is computed again at most once, in the order of the
// forward pass, before the first backward use of anything that depends on it:
//
//     forward    A B C D        a, b, c made by A, B, C; b and c dropped
//     backward           B C d c b a        c is needed first, and for it b: one unit
//
// A plan is made without editing the graph; recompute_replay.h carries it out.

#include <cstdint>
#include <map>
#include <vector>

#include "transform/memory/memory_view.h"

namespace foretrace {

constexpr std::int32_t kNoSegment = -1;

/// A stretch of a forward pass in the order of time.
struct ForwardPlaces {
  std::vector<std::int32_t>
      segment;  ///< Segment of each task, counted over the recording, or kNoSegment.
  std::vector<std::int32_t> unit;  ///< Number of each task's layer in its pass; likewise.
  std::vector<std::int32_t> pass;  ///< Forward pass of each segment.
  bool by_layer = false;           ///< Layers are known; otherwise each kept block is one.
  std::int32_t passes = 0;
};

/// Cuts each forward pass into segments of `length` layers; 0: of about the square root of their
/// number, rounded up.
ForwardPlaces cut_forward(const MemoryView& view, const std::vector<Activation>& activations,
                          std::int64_t length);

/// Work that is repeated before one task.
struct RecomputeUnit {
  TaskId before = kNoTask;                ///< The first backward use.
  std::vector<TaskId> work{};             ///< In the order of the forward pass.
  std::vector<std::uint32_t> restored{};  ///< Dropped blocks that are restored after it.
  std::int32_t segment = kNoSegment;      ///< Segment in ForwardPlaces, if it is in one.
};

/// The copies of two tasks between which a block must exist (once more).
struct ExtraLife {
  TaskId first = kNoTask, last = kNoTask;
};

struct RecomputePlan {
  std::vector<RecomputeUnit> units;
  std::vector<Activation> dropped;
  std::map<std::uint32_t, ExtraLife> temporaries;  ///< Blocks that live again for a short time.
  std::map<std::uint32_t, TaskId> kept;    ///< Blocks not freed until the copy of this has run.
  std::map<std::uint32_t, TaskId> longer;  ///< Restored blocks that later copies read as well.
  /// Restored blocks that go when this, the last use of any of their segment, has been given to the
  /// device: a segment has a graph of its own, which its backward pass uses up.
  std::map<std::uint32_t, TaskId> let_go;
};

/// `places`: work is only repeated inside the segment that needs it, and blocks from other segments
/// are kept until then. nullptr: as far back as needed.
RecomputePlan plan_recompute(const MemoryView& view, const std::vector<Activation>& dropped,
                             const ForwardPlaces* places);

/// The cost of dropping one block alone.
struct RecomputeCost {
  std::vector<TaskId> work;
  Bytes kept;             ///< Bytes of other blocks that must be kept longer for it.
  bool possible = false;  ///< False if its writers are unknown or cannot be repeated.
};
/// One for each of `activations`. `limit` bounds the work in each and in all (then not possible).
std::vector<RecomputeCost> recompute_costs(const MemoryView& view,
                                           const std::vector<Activation>& activations,
                                           const ForwardPlaces* places);

}  // namespace foretrace

#pragma once

// Plans which work to repeat to restore dropped activations. A dropped block needs the tasks that
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

/// The place of each task in the forward passes, which are cut into segments in order of time.
struct ForwardSegments {
  std::vector<std::int32_t>
      segment;  ///< Segment of each task, counted over the recording, or kNoSegment.
  std::vector<std::int32_t> unit;  ///< Layer of each task, counted in its pass, or kNoSegment.
  std::vector<std::int32_t> pass;  ///< Forward pass of each segment.
  bool by_layer = false;           ///< Layers are known; otherwise each kept block ends one, or
  bool by_repetition = false;      ///< the parts of a pass that repeat are the layers.
  std::int32_t passes = 0;
};

/// Cuts each forward pass into segments of `length` layers. If `length` is 0, it is the square root
/// of the number of layers in the pass, rounded up.
ForwardSegments cut_forward(const MemoryView& view, const std::vector<Activation>& activations,
                            std::int64_t length);

/// Work that is repeated before one task.
struct RecomputeUnit {
  TaskId before = kNoTask;                ///< The first backward use.
  std::vector<TaskId> work{};             ///< In the order of the forward pass.
  std::vector<std::uint32_t> restored{};  ///< Dropped blocks that the work restores.
  std::int32_t segment = kNoSegment;      ///< Segment in ForwardSegments, if it is in one.
};

/// The first and the last task whose copies use a block; between these copies the block must exist
/// again.
struct ExtraLifetime {
  TaskId first = kNoTask, last = kNoTask;
};

struct RecomputePlan {
  std::vector<RecomputeUnit> units;
  std::vector<Activation> dropped;
  std::map<std::uint32_t, ExtraLifetime> temporaries;  ///< Blocks that live again for a short time.
  std::map<std::uint32_t, TaskId> kept_until;  ///< Blocks kept until the copy of this task has run.
  std::map<std::uint32_t, TaskId>
      kept_for_copy;  ///< Restored blocks that the task's copy still reads.
  /// Restored blocks that are freed once this task, the last use of any block of their segment, has
  /// been launched: a segment has an autograd graph of its own, which its backward pass consumes.
  std::map<std::uint32_t, TaskId> freed_with_segment;
};

/// Plans how to restore the `dropped` blocks. With `segments`, work is repeated only inside the
/// segment that needs it, and blocks from other segments are kept until then. With nullptr, work is
/// repeated as far back as needed.
RecomputePlan plan_recompute(const MemoryView& view, const std::vector<Activation>& dropped,
                             const ForwardSegments* segments);

/// The cost of dropping one block alone.
struct RecomputeCost {
  std::vector<TaskId> work;
  Bytes kept;             ///< Bytes of other blocks that must be kept longer for it.
  bool possible = false;  ///< False if its writers are unknown or cannot be repeated.
};
/// Returns a cost for each of `activations`. An activation counts as not possible if it needs too
/// many tasks, or if the activations in front of it already needed too many in total.
std::vector<RecomputeCost> recompute_costs(const MemoryView& view,
                                           const std::vector<Activation>& activations,
                                           const ForwardSegments* segments);

}  // namespace foretrace

#pragma once

// Common parts of transforms of memory: when tasks use a block, which blocks the forward pass keeps
// for the backward pass, and how to cut the unused time out of a lifetime.
//
//     block     |mmmmmmmmmmmmmmmmmmm|        made, last used forward (f), first used backward (b)
//     uses       w   f         b            it is unused between f and b
//     block     |mmmmmm|                     freed after f,
//     after                |mmmmmm|          made again before b
//
// Times are those of a replay.

#include <cstdint>
#include <span>
#include <vector>

#include "foretrace/graph.h"
#include "transform/edit/edit.h"

namespace foretrace {

/// The accesses of each block in order of time, and the accesses of each task. Valid as long as the
/// graph is not edited. Linear, except for sorting the accesses of each block.
class BlockUses {
 public:
  BlockUses(const Graph& graph, const std::vector<Nanoseconds>& starts);

  std::span<const Access> of_block(std::uint32_t allocation) const;
  std::span<const Access> of_task(TaskId task) const;

 private:
  std::vector<std::size_t> block_begins_, task_begins_;
  std::vector<Access> by_block_, by_task_;
};

/// A block that the forward pass makes and the backward pass reads.
struct Activation {
  std::uint32_t allocation = 0;
  TaskId last_forward = kNoTask;    ///< The block is unused from the end of this ...
  TaskId first_backward = kNoTask;  ///< ... to the start of this, in the backward pass.
};

/// Returns the `blocks` that are made in the recording, used before the backward pass and then used
/// in it or in the update, in the order given.
std::vector<Activation> find_activations(const Graph& graph, const BlockUses& uses,
                                         const std::vector<std::uint32_t>& blocks);

/// Throws Error that says why `blocks` contain no activation: accesses or passes are unknown, or
/// the backward pass uses none.
[[noreturn]] void no_activation(const Graph& graph, const std::vector<std::uint32_t>& blocks);

/// The time `after` the start of `task`.
struct TaskTime {
  TaskId task = kNoTask;
  Nanoseconds after{0};
};

/// The task that requests `block` from the allocator when `task` uses it: its launch if the
/// allocator is called on the host, as PyTorch's is, otherwise `task` itself.
TaskId allocating_task(const Graph& graph, const Launches& launches, const Allocation& block,
                       TaskId task);
TaskTime start_of(TaskId task);
TaskTime end_of(const Graph& graph, TaskId task);

struct LifetimeCut {
  std::uint32_t allocation = 0;
  TaskId first_behind =
      kNoTask;     ///< This use, and all that start no earlier, belong to the second half.
  TaskTime freed;  ///< End of the first half.
  TaskTime made;   ///< Begin of the second half.
};

/// Cuts each of these lifetimes in two: the first half keeps its number, and the second is added
/// with the later accesses. Returns the numbers of the second halves. A block may be cut several
/// times; each part then ends at the next cut. Linear in all accesses, except for sorting the cuts.
std::vector<std::uint32_t> split_lifetimes(Graph& graph, const std::vector<LifetimeCut>& splits,
                                           const std::vector<Nanoseconds>& starts);

/// Additional work on a device, next to `beside` on its lane.
struct ExtraWork {
  Task task;
  TaskId beside = kNoTask;
  bool behind = false;             ///< Directly after `beside`, otherwise before it.
  Nanoseconds launch_duration{0};  ///< Duration of the call that launches it.
};
struct InsertedWork {
  TaskId task = kNoTask;
  TaskId launch = kNoTask;  ///< kNoTask if `beside` has none; work then waits only for its lane.
};

/// Inserts the work on the lane of `beside`, and its launch call on the same side of the launch of
/// `beside`.
InsertedWork insert_work(Graph& graph, const Launches& launches, const ExtraWork& work);

}  // namespace foretrace

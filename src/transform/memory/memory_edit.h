#pragma once

// Common parts of transforms of memory: which tasks use a block when, which blocks wait between the
// forward and the backward pass, and how to cut such a wait out of a lifetime.
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

/// The accesses of each block in order of time, and those of each task. Valid as long as the graph
/// is not edited. Linear except for sorting those of each block.
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
  TaskId last_forward = kNoTask;    ///< It is unused from the end of this ...
  TaskId first_backward = kNoTask;  ///< ... until this, of the backward pass.
};

/// Blocks in `blocks` that are made in the recording, used before the backward pass and then by a
/// task of it, in order of `blocks`. `starts` are those of `uses`.
std::vector<Activation> find_activations(const Graph& graph, const BlockUses& uses,
                                         const std::vector<std::uint32_t>& blocks);

/// Throws Error that says why `blocks` contain no activation: accesses or passes are unknown, or
/// the backward pass uses none.
[[noreturn]] void no_activation(const Graph& graph, const std::vector<std::uint32_t>& blocks);

/// So long after the start of a task.
struct Moment {
  TaskId task = kNoTask;
  Nanoseconds after{0};
};

/// The task that requests `block` from the allocator when `task` uses it: its launch if the
/// allocator is called on the host, as PyTorch's is, otherwise `task` itself.
TaskId allocator_side(const Graph& graph, const Launches& launches, const Allocation& block,
                      TaskId task);
Moment start_of(TaskId task);
Moment end_of(const Graph& graph, TaskId task);

struct LifetimeCut {
  std::uint32_t allocation = 0;
  TaskId first_behind =
      kNoTask;   ///< This use, and all that start no earlier, are the second half's.
  Moment freed;  ///< End of the first half.
  Moment made;   ///< Begin of the second.
};

/// Cuts each of these lifetimes in two: the first part keeps the number, the second one is added
/// with the later accesses. Returns the numbers of the second parts. A block may be cut several
/// times; then each part ends at the next cut. Linear in all accesses, but for sorting the cuts.
std::vector<std::uint32_t> split_lifetimes(Graph& graph, const std::vector<LifetimeCut>& splits,
                                           const std::vector<Nanoseconds>& starts);

/// Work on a device that a program does in addition, beside `beside` on its line.
struct ExtraWork {
  Task task;
  TaskId beside = kNoTask;
  bool behind = false;             ///< Directly after `beside`, otherwise before it.
  Nanoseconds launch_duration{0};  ///< Duration of the call that launches it.
};
struct InsertedWork {
  TaskId task = kNoTask;
  TaskId launch = kNoTask;  ///< kNoTask where `beside` has none: it waits for its line only.
};

/// Puts the work in line, and its launch on the same side of that of `beside`.
InsertedWork insert_work(Graph& graph, const Launches& launches, const ExtraWork& work);

}  // namespace foretrace

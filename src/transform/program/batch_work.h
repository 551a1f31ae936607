#pragma once

// Finds which part of a run grows with the batch, and by how much: the work and memory of the
// passes, not those of parameters. For transforms that change or divide the batch, the sequence or
// the work of each layer.
//
//     t' = floor + (t - floor) * max(1, fill * g * f) / max(1, fill * g)
//
//     f     samples in the new batch / samples now
//     g     samples now / samples recorded: 1, unless a change before this one made it another
//     fill  how many times over the kernel's blocks fill the device (Task::fill)
//
// `floor` is the minimum time of a kernel: the shortest of the trace, as starting and draining cost
// the same whatever it computes. As long as a device is not full, more blocks run in the same time,
// and fewer save none; but libraries cut arithmetic finer for smaller batches, so that it fills the
// device as before. If the fill is unknown, the kernel is assumed to fill it. Nor does a larger
// batch bring more blocks to statistics and sums of channels, which loop over the samples: a kernel
// of few blocks that take long grows in proportion. Where a job that does not train has products of
// few tokens, these take the time to read their weights, and attention that to read each sample's
// cache. The part of a
// memory-bound kernel's traffic that is parameters does not grow.

#include <optional>
#include <set>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "transform/edit/device_change.h"

namespace foretrace {

/// The work of a task, and the time it takes.
struct TaskWork {
  Nanoseconds duration{};
  Bytes bytes{};
  double flops = 0;

  void set(Task& task) const { task.duration = duration, task.bytes = bytes, task.flops = flops; }
};

class BatchWork {
 public:
  /// `most`: the greatest factor that will be asked about.
  explicit BatchWork(const Graph& graph, double most = 1e6);

  /// The work of `task` with a batch `factor` times as large, where earlier changes made the
  /// recorded one `before` times as large. A factor and then its inverse give the same work.
  TaskWork grown(TaskId task, double factor, double before = 1);

  /// Whether a task takes longer for some batch.
  bool grows(TaskId task);

  /// Whether the size of an allocation follows the batch. That of blocks that the passes make does,
  /// except for parameters, gradients, optimizer state, blocks so small that they may hold a single
  /// number, temporaries of the backward pass that have the size of a parameter and that the
  /// forward pass never makes, and casts of parameters: conversions with half of the bytes of at
  /// least two parameters, of which a step's forward pass makes exactly one for each.
  bool grows(std::uint32_t allocation) const;

 private:
  Nanoseconds duration(TaskId task, double factor, double before);
  Bytes bytes(TaskId task, double factor) const;
  double flops(TaskId task, double factor) const;
  /// The share of a task's bytes that follows the batch; 1 if unknown.
  double growing_share(TaskId task) const;
  bool copies_samples(const Task& task) const;
  /// The tokens of a product of few tokens in a job that does not train, which takes the time to
  /// read its weights, whatever the batch, until arithmetic takes longer; 0 for other tasks.
  double bound_by_weights(const Task& task);
  /// Whether a kernel is attention in a job with such products: each sample has keys and values of
  /// its own to read.
  bool reads_a_cache(const Task& task);
  /// Whether the blocks of a kernel are as many for any batch, and each works on all samples.
  bool loops_over_samples(const Task& task);

  void find_sizes_of_weights();
  bool is_conversion(const Allocation& block) const;
  void find_casts();

  const Graph& graph_;
  double most_;
  KernelClasses classes_;
  std::set<std::int64_t> sizes_of_weights_;  ///< Except for sizes that the forward pass makes.
  std::set<std::uint32_t> casts_;            ///< Allocations that are copies of parameters.
  bool has_phases_ = false;
  bool trains_ = false;
  std::optional<bool> answers_tokens_;  ///< Whether any product is bound by its weights.
  double balance_ = 256;  ///< Tokens for which arithmetic takes as long as reading weights of 2 B.
  Nanoseconds kernel_floor_{};
  Nanoseconds copy_floor_{};
  std::vector<float> growing_, touched_;  ///< Bytes that each task touches.
};

/// Returns `to` / `from` if both are given, otherwise `factor`. Throws Error if only one of the two
/// is given, or a factor together with them.
double growth_factor(double factor, const std::optional<std::int64_t>& from,
                     const std::optional<std::int64_t>& to);

/// A tally of what grew, and of how much of that changed.
struct GrowthTally {
  std::size_t tasks = 0, blocks = 0, changed = 0;
  Nanoseconds before{}, after{};  ///< Total time of these tasks; saturates.
};

/// Scales the work of every task that follows the batch, by `factors[task]`, after earlier changes
/// scaled it by `before[task]`.
void grow_work(Graph& graph, BatchWork& work, const std::vector<double>& factors,
               const std::vector<double>& before, GrowthTally& tally);

/// Scales every allocation that follows the batch, by `factors[allocation]`.
void grow_blocks(Graph& graph, const BatchWork& work, const std::vector<double>& factors,
                 GrowthTally& tally);

}  // namespace foretrace

#pragma once

// A model whose layers several devices share: the common part of tensor_parallel and
// context_parallel.
//
//     stream   |F1 F1 F2 F2|      ->      |F1 F1 c F2 F2 c|      divided work, and collectives that
//                                                                the next layer waits for

#include <functional>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/transform.h"
#include "transform/parallel/step_units.h"

namespace foretrace {

class DividedModel {
 public:
  /// Divides the passes into `blocks` units of equal time; 0: into those that the trace names, as
  /// units_of_steps() does. Throws Error if no step has both passes.
  DividedModel(Graph& graph, std::int64_t blocks);

  /// Gives each kernel of both passes for which `divides` is true the time of `part` of its work.
  void divide_kernels(double part, const std::function<bool(const Task&)>& divides);
  /// Appends a collective to each block of a pass, behind its last task. Does nothing if `time` is
  /// 0.
  void add_behind_blocks(Phase phase, const std::string& name, Nanoseconds time, Bytes bytes);
  /// Divides the size of each allocation of this use by `parts`.
  void divide_memory(MemoryUse use, std::int64_t parts);
  /// Divides the memory in use when the recording began, mostly parameters and optimizer state, by
  /// `parts`.
  void divide_levels(std::int64_t parts);

  const UnitsOfSteps& units() const { return units_; }
  std::size_t blocks() const;
  std::size_t changed() const { return changed_; }
  Nanoseconds transfer_per_step() const;

 private:
  Graph& graph_;
  UnitsOfSteps units_;
  std::size_t changed_ = 0;
  Nanoseconds transfer_{0};
};

}  // namespace foretrace

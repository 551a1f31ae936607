#pragma once

// A model whose layers several devices share: what tensor_parallel, context_parallel and
// expert_parallel have in common.
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
  /// `blocks`: layers of the model, cut by time; 0: as the trace tells them.
  DividedModel(Graph& graph, std::int64_t blocks);

  /// Gives each kernel of both passes that `divides` says so the time of its part.
  void divide_kernels(double part, const std::function<bool(const Task&)>& divides);
  /// Appends work to each block of a pass, on the stream of its last task. Nothing if no time.
  void add_behind_blocks(Phase phase, const std::string& name, Nanoseconds time, Bytes bytes);
  /// Memory of that use is cut into so many parts.
  void divide_memory(MemoryUse use, std::int64_t parts);
  /// Memory in use when the recording began, which is mostly parameters and optimizer state.
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

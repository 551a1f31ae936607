#pragma once

// Chooses which activations to drop: the policies of "recompute".

#include <cstdint>
#include <string>
#include <vector>

#include "transform/memory/recompute_plan.h"

namespace foretrace {

struct RecomputeSettings {
  std::string policy;       ///< every, sqrt, selected, all or budget.
  std::int64_t layers = 1;  ///< Layers in a segment, for every.
  double share = 1;         ///< Share to drop of the bytes that the policy would drop, 0 to 1.
  Bytes save{};             ///< For budget: bytes to save in each pass; 0: by share or peak.
  Bytes peak{};             ///< For budget: the greatest peak allowed; 0: by share or save.
  bool exact = true;
};

struct RecomputeChoice {
  RecomputePlan plan;
  Bytes droppable{};  ///< Bytes that could be dropped, in the pass with the most.
  Bytes saved{};      ///< Bytes dropped, in the pass that saves the most.
  std::int32_t passes = 0;
  std::size_t impossible = 0;  ///< Activations whose work is unknown or cannot be done again.
  bool least = false;          ///< For budget: the plan is proven to take the least time.
  bool reached = true;         ///< For budget: the plan saves as much as was asked for.
  bool by_layer = true;        ///< Layers are known.
  bool by_repetition = false;  ///< The parts of a pass that repeat are taken for layers.
  std::int64_t length = 0;     ///< Layers of a segment, where there are segments.
};

/// Throws Error, naming the setting, if the policy leaves nothing to drop.
RecomputeChoice choose_recompute(const MemoryView& view, const std::vector<Activation>& activations,
                                 const RecomputeSettings& settings);

/// Returns the greatest level of any device if the plan took no time: dropped blocks are freed
/// after their last forward use, and all blocks of a unit appear at once before its first backward
/// use.
Bytes peak_of(const MemoryView& view, const RecomputePlan& plan);

}  // namespace foretrace

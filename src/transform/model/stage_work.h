#pragma once

// The layers of a recorded step, and how stages of a pipeline share them.
//
//     stream   |F1 F2 F3 F4|B4 B3 B2 B1|U|     two stages:  F1 F2 | F3 F4
//                                                           B2 B1 | B4 B3
//
// A layer takes the time from the start of its first kernel to that of the next layer: pauses
// between kernels are part of it.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "transform/parallel/gradients.h"

namespace foretrace {

struct LayerWork {
  Nanoseconds forward{0}, backward{0};
  Bytes gradients{};    ///< From the passes given to recorded_layers().
  Bytes activations{};  ///< 0 if the trace does not record memory.
};

/// One step with a forward and a backward pass.
struct StepLayers {
  std::int32_t step = -1;
  std::vector<LayerWork> layers;  ///< In forward order; the same number in each step.
  Nanoseconds update{0};
};

struct RecordedLayers {
  std::vector<StepLayers> steps;  ///< In order of time. Not empty.
  /// Whether the layers are those that the trace names; otherwise they are pieces of equal forward
  /// time.
  bool are_recorded = false;
};

/// Finds the layers of each step that has both passes. `passes` provides the gradients, if they are
/// wanted. Throws Error if no step of the trace has both passes. Linear, apart from sorting.
RecordedLayers recorded_layers(const Graph& graph, const Timeline& timeline,
                               std::span<const BackwardPass> passes = {});

/// Returns the first layer of each stage, beginning with 0: the layers that `cuts` names
/// ("6,12,18", counted from 0) or, if it is empty, layers such that the slowest stage is as fast as
/// possible. Throws Error if there are fewer layers than stages or `cuts` is no such list.
std::vector<std::size_t> stage_begins(const RecordedLayers& recorded, std::size_t stages,
                                      const std::string& cuts);

/// The work of each stage in one step.
std::vector<LayerWork> stages_of(const StepLayers& step, const std::vector<std::size_t>& begins);

}  // namespace foretrace

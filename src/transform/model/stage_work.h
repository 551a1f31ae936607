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
  Bytes gradients{};    ///< Of the passes that were given.
  Bytes activations{};  ///< 0 where the trace does not show memory.
};

/// One step with a forward and a backward pass.
struct StepLayers {
  std::int32_t step = -1;
  std::vector<LayerWork> layers;  ///< In forward order; the same number in each step.
  Nanoseconds update{0};
};

struct RecordedLayers {
  std::vector<StepLayers> steps;  ///< In order of time. Not empty.
  /// The layers are those of the trace; otherwise pieces of equal forward time.
  bool are_recorded = false;
};

/// `passes` says which gradients there are, if they are wanted. Throws Error where no step of the
/// trace has both passes. Linear, apart from sorting.
RecordedLayers recorded_layers(const Graph& graph, const Timeline& timeline,
                               std::span<const BackwardPass> passes = {});

/// Where stages begin, first 0: in front of the layers that `cuts` names ("6,12,18", counted from
/// 0), or such that the slowest stage is as fast as can be. Throws Error where there are fewer
/// layers than stages, or cuts that are no such list.
std::vector<std::size_t> stage_begins(const RecordedLayers& recorded, std::size_t stages,
                                      const std::string& cuts);

/// The work of each stage in one step.
std::vector<LayerWork> stages_of(const StepLayers& step, const std::vector<std::size_t>& begins);

}  // namespace foretrace

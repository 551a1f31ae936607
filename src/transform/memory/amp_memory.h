#pragma once

// The effect of mixed precision on memory: the blocks that torch.autocast makes in half precision,
// by its lists of ops (graph/ops.h).
//
// If the trace does not show accesses (snapshots of memory), an op of the last kind is assumed to
// read the block made before its own result.
//
// FP32 inputs of a product are cast first. The cast is kept for the backward pass instead of its
// source, or in addition to it if the op keeps its own output (softmax). Casts of weights are made
// once a step, and autograd keeps them until the backward pass has used them; without a backward
// pass they are kept to the end of the forward pass. Gradients of weights, optimizer state and
// weights stay in FP32.

#include <vector>

#include "transform/memory/memory_view.h"

namespace foretrace {

struct HalvedMemory {
  std::size_t blocks = 0;   ///< Made in half precision.
  std::size_t casts = 0;    ///< Copies that exist in addition.
  Bytes before{}, after{};  ///< Bytes of the blocks.
  Bytes weight_casts{};     ///< Casts of weights that are in use at once.
  Bytes unknown{};          ///< Memory of unknown use from before the recording.
};

/// Halves the blocks that autocast makes in half precision, and adds casts. For each task,
/// `may_change` says whether it was selected to run in half precision, and `already_half` whether
/// it was recorded so.
HalvedMemory halve_memory(Graph& graph, const std::vector<char>& may_change,
                          const std::vector<char>& already_half);

}  // namespace foretrace

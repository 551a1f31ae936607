#pragma once

// What mixed precision does to memory: which blocks torch.autocast makes in half precision. By its
// published lists of ops (PyTorch documentation, "Automatic Mixed Precision package", op
// reference):
//
//     matrix products, convolutions, attention      half
//     softmax, norms, losses, sums, exp, log, pow   stay in FP32
//     all others                                    half if all they read is, else FP32
//
// Where the trace does not tell who uses what (snapshots of memory), an op of the last kind is
// taken to read what was made in front of its own result.
//
// What such a product reads in FP32 is cast first. The cast is kept for the backward pass in the
// place of what was cast, or beside it where an op keeps its own output (softmax). Casts of weights
// are made once a step, and autograd keeps them until the backward pass has used them; without one
// they are kept to the end of the forward pass. Gradients of weights, optimizer state and weights
// stay in FP32.

#include <vector>

#include "transform/memory/memory_view.h"

namespace foretrace {

struct HalvedMemory {
  std::size_t blocks = 0;   ///< Made in half precision.
  std::size_t casts = 0;    ///< Copies that exist in addition.
  Bytes before{}, after{};  ///< Of the blocks.
  Bytes weight_casts{};     ///< In use at once.
  Bytes unknown{};          ///< Was there before the recording, for nobody knows what.
};

/// `may_change`: of each task, whether it was among those that run in half precision.
/// `already_half`: whether it did so before.
HalvedMemory halve_memory(Graph& graph, const std::vector<char>& may_change,
                          const std::vector<char>& already_half);

}  // namespace foretrace

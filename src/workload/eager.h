#pragma once

// Models whose norms, rotary embedding and gates are one operator of PyTorch after the other, as in
// Hugging Face's modules: what their kernels move and keep beyond fused ones.

#include "workload/workload.h"

namespace foretrace {

/// Elements of a token in a block.
struct EagerBlock {
  double normed = 0;  ///< In norms of root mean squares.
  double turned = 0;  ///< Turned by the rotary embedding.
  double gated = 0;   ///< Outputs of gates.
  double sent = 0;    ///< Inputs of experts, a copy for each.
};

/// Adds to `row` what `tokens` of a block, and adapters of its products, move and keep.
void add_eager(const EagerBlock& block, double tokens, const LayerSlice& slice, LayerRow& row);

/// Bytes of an element of logits beyond those of a fused loss: the logarithm of its probability,
/// and its gradient in 4 bytes.
constexpr double kEagerLoss = 8;

}  // namespace foretrace

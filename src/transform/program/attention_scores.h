#pragma once

// Finds the blocks of attention's scores: one number for each pair of positions, so that they grow
// with the square of the sequence. Shapes are not recorded; ops, source lines and sizes are:
//
//     made by      a softmax, a masked fill or a batched product with a bias added, of the forward
//                  pass; where source lines or modules name attention, by anything there that
//                  comes with them (exp, where, bmm) and nowhere else
//     never made   by a linear layer, norm, embedding or activation function: blocks of that size
//     by           have a number for each position, not for each pair
//     size         of the scores of the forward pass; blocks of the backward pass count by it
//
// Fused attention (flash, memory-efficient) keeps no scores, and none are found.

#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// By allocation: 1 for scores. With `length`, the positions of a recorded sequence, only sizes
/// count that are a multiple of its square. Linear, but for sorting sizes.
std::vector<char> attention_scores(const Graph& graph, std::optional<std::int64_t> length);

}  // namespace foretrace

#pragma once

// Finds the blocks of attention's scores: one number for each pair of positions, so that they grow
// with the square of the sequence. Shapes are not recorded; ops, source lines and sizes are:
//
//     made by      a softmax, a masked fill or a batched product with a bias added, in the forward
//                  pass; if source lines or modules name attention, only there, and then also by
//                  the ops that come with these (exp, where, bmm)
//     never made   a linear layer, norm, embedding or activation function: blocks of that size
//     by           have a number for each position, not for each pair; in the forward pass, those
//                  that a softmax of attention makes (an op, or a function of the program), and
//                  other blocks of that size there, are scores nevertheless: 16 heads of 256 x 256
//                  are as large as a layer of 256 x 4096
//     size         blocks of the backward pass are scores if scores of the forward pass have the
//                  same size
//
// Fused attention (flash, memory-efficient) keeps no scores, and none are found.

#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Returns 1 for each allocation that holds scores, otherwise 0. With `length`, the positions of a
/// recorded sequence, only sizes that are a multiple of its square count. Linear, except for
/// sorting sizes.
std::vector<char> attention_scores(const Graph& graph, std::optional<std::int64_t> length);

}  // namespace foretrace

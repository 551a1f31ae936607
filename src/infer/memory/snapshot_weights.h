#pragma once

// Decides which blocks of a memory snapshot are parameters if no source line shows it. A backward
// pass makes a gradient for each parameter. So among the blocks that existed before the first
// forward pass and outlive the history, as many of each size are parameters as gradients of that
// size exist at the same time:
//
//     held       4 MB x 3   1 MB x 6      parameters, and an optimizer's states of their sizes
//     gradients  4 MB x 1   1 MB x 2
//     found      4 MB x 1   1 MB x 2      among equal blocks the choice makes no difference
//
// If a history has only forward passes and no optimizer, all blocks from before the history are
// parameters. Ignored: gradients that are never freed, and caches passed to a forward pass.

#include <cstdint>
#include <vector>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {

/// Sets the use of parameters among blocks of unknown use. Blocks beyond the end of `sites` existed
/// all the time. `first_forward` is on the clock of `sites`. Returns whether any block became a
/// parameter.
bool infer_weights(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites,
                   std::int64_t first_forward, bool is_forward_only);

}  // namespace foretrace::infer_detail

#pragma once

// Which blocks of a memory snapshot are parameters, where no source line tells. A backward pass
// makes a gradient for each parameter, so of the blocks that were there before the first forward
// pass and outlive the history as many of each size are parameters as there are gradients at once:
//
//     held       4 MB x 3   1 MB x 6      parameters, and an optimizer's states of their sizes
//     gradients  4 MB x 1   1 MB x 2
//     told       4 MB x 1   1 MB x 2      which of those that are alike makes no difference
//
// Where a history has forward passes alone, and nothing was there of an optimizer, all that was
// there before the history is. Ignored: gradients that are never freed, and caches that a forward
// pass is given.

#include <cstdint>
#include <vector>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {

/// Only blocks of unknown use change; those behind the end of `sites` were there all the time.
/// Times are those of `sites`. Returns whether any became a parameter.
bool tell_weights(std::vector<Allocation>& blocks, const std::vector<BlockSites>& sites,
                  std::int64_t first_forward, bool is_forward_only);

}  // namespace foretrace::infer_detail

#pragma once

// Whether host and device wait for each other where the graph says so. A replay cannot show it,
// because copied time replays as well as time whose cause is known. Removing one side does:
//
//     host    |HHHH.......HHHH|        no device:  HHHHHHHH         the time in which only the
//     device  |..DDDDDDDDDDD..|        no host:    DDDDDDDDDDD      removed side worked is gone
//
// Time in which both sides worked may stay or go: only the graph knows which of the two delayed the
// step. So these are bounds, not predictions.
//
// Ignored: gaps and lags, which stay. On a busy device most are hidden, and only count without it.

#include "foretrace/answer/validation.h"
#include "foretrace/infer.h"

namespace foretrace {

/// Replays with the durations of all device tasks at zero, and of all host tasks. REQUIRES: all
/// lanes are FIFO, as they are in a recording.
SideRemovals remove_sides(const Inference& inference);

}  // namespace foretrace

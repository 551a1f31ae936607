#pragma once

// The gradients that a job sends already, in all-reduces that the trace recorded or that a step in
// front has added.

#include <cstdint>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "graph/select.h"

namespace foretrace {

struct SentBucket {
  TaskId task = kNoTask;
  Bytes bytes{};
  Bytes end{};             ///< Within the bytes of the step, from the first bucket on.
  TaskId ready = kNoTask;  ///< The device work that it waits for; of several the last.
  Operation operation = Operation::all_reduce;
  std::int32_t ranks = 0;
};

/// The buckets of one step and process group, in the order in which they are sent.
using SentGradients = std::vector<SentBucket>;

/// The settings that choose them.
void describe_sent_gradients(Fields& fields, std::int64_t& ranks, Selector& where);

/// Never empty. `ranks` is for collectives that do not tell how many they have. All-reduces of the
/// forward pass, and those whose size or ranks are unknown, are left out. Throws Error where none
/// is left.
std::vector<SentGradients> sent_gradients(const Graph& graph, const Timeline& timeline,
                                          const Selector& where, std::int64_t ranks);

}  // namespace foretrace

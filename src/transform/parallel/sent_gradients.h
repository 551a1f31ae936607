#pragma once

// The gradients that a job sends already, in all-reduces that the trace recorded or that a step in
// front has added; or, where asked for, the rows and tokens that it exchanges in all-to-alls.

#include <cstdint>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "graph/select.h"
#include "network/collective.h"

namespace foretrace {

struct SentBucket {
  TaskId task = kNoTask;
  Bytes bytes{};
  Bytes end{};             ///< End of the bucket in the bytes of the step, in sending order.
  TaskId ready = kNoTask;  ///< The device task that it waits for; if several, the last to end.
  Operation operation = Operation::all_reduce;
  std::int32_t ranks = 0;
  NameId type{};  ///< The type of its elements; empty if unknown.
};

/// The buckets of one step and process group, in the order in which they are sent.
using SentGradients = std::vector<SentBucket>;

/// Describes the settings that choose the all-reduces.
void describe_sent_gradients(Fields& fields, std::int64_t& ranks, Selector& where);

/// Returns the buckets of each step and process group; never empty. `ranks` is for collectives
/// whose number of ranks is not recorded. All-reduces of the forward pass, those that
/// exchange activations, and those of unknown size or ranks are left out. Throws Error if none is
/// left. With all_to_all, returns all-to-alls of both passes instead.
std::vector<SentGradients> sent_gradients(const Graph& graph, const Timeline& timeline,
                                          const Selector& where, std::int64_t ranks,
                                          Operation operation = Operation::all_reduce);

}  // namespace foretrace

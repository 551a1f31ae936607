#pragma once

// The collectives of a graph that a model can price, because their operation, bytes and number of
// ranks are known. The trace recorded them, or an earlier step added them.

#include <cstdint>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/transform.h"
#include "graph/select.h"
#include "network/collective.h"

namespace foretrace {

struct KnownCollective {
  TaskId task = kNoTask;
  Operation operation = Operation::all_reduce;
  Bytes bytes{};
  std::int32_t ranks = 0;
  NameId type{};  ///< The type of its elements; empty if unknown.
  /// Whether it sums gradients: it sums, outside the forward pass, and not what the forward pass
  /// exchanges in the same way, as the activations of tensor parallel ranks.
  bool is_gradient = false;
};

struct KnownCollectives {
  std::vector<KnownCollective> all;  ///< Collectives among several ranks.
  std::size_t unknown = 0;           ///< How many lack an operation, a size or ranks.

  /// Throws Error if none is known.
  void require() const;
  /// Adds a warning that unknown ones keep their time.
  void note_unknown(Effect& effect) const;
};

/// Describes the setting `ranks`, for collectives whose number of ranks is not recorded; 0: it is
/// unknown.
void describe_ranks(Fields& fields, std::int64_t& ranks);
KnownCollectives known_collectives(const Graph& graph, const Selector& where, std::int64_t ranks);

}  // namespace foretrace

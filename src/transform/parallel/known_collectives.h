#pragma once

// The collectives of a graph that a model can price: those of which operation, bytes and number of
// ranks are known, as the trace has them or as a step in front has added them.

#include <cstdint>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/transform.h"
#include "graph/select.h"

namespace foretrace {

struct KnownCollective {
  TaskId task = kNoTask;
  Operation operation = Operation::all_reduce;
  Bytes bytes{};
  std::int32_t ranks = 0;
};

struct KnownCollectives {
  std::vector<KnownCollective> all;  ///< Those among several ranks.
  std::size_t unknown = 0;           ///< How many lack an operation, a size or ranks.

  /// Throws Error where none is known.
  void require() const;
  /// Adds a warning that unknown ones keep their time.
  void note_unknown(Effect& effect) const;
};

/// The setting `ranks`, for collectives that do not tell how many they have; 0: they are unknown.
void describe_ranks(Fields& fields, std::int64_t& ranks);
KnownCollectives known_collectives(const Graph& graph, const Selector& where, std::int64_t ranks);

}  // namespace foretrace

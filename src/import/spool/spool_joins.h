#pragma once

// Joins rows of different kinds after all of them are read.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"
#include "import/spool/spool_index.h"
#include "trace/spool.h"

namespace foretrace {

/// A driver call inside a runtime call. Work that it launched counts as launched by the outer call.
struct InnerCall {
  std::uint32_t inner = 0, outer = 0;  ///< Indices of host records.
};

/// A range in which NCCL describes a collective, on the thread that calls it.
struct NamedCollective {
  std::int64_t time = 0;
  std::uint32_t record = 0;   ///< Index of the range's host record.
  std::uint32_t payload = 0;  ///< Number of the text with the facts.
};

/// A wait for an event, and the index of its sync record.
struct EventWaitRow {
  spool::Sync row;
  std::uint32_t record = 0;
};

struct SpoolJoins {
  std::vector<InnerCall> inner;
  std::vector<std::uint32_t> dropped;  ///< Host records that join_calls() deletes.
  std::vector<EventWaitRow> waits;
  std::vector<NamedCollective> collectives;
  std::vector<spool::GraphClone> clones;
};

/// Attributes work launched by inner calls to the outer ones, and deletes the dropped host records.
void join_calls(SpoolJoins& joins, SpoolIndex& index, Trace& trace);
void resolve_events(const SpoolJoins& joins, SpoolIndex& index, Trace& trace);
/// Gives copies of graphs the edges of their originals, and all edges their direction.
void join_graphs(const SpoolJoins& joins, Trace& trace);
void describe_collectives(const SpoolJoins& joins, const SpoolIndex& index, Trace& trace);

}  // namespace foretrace

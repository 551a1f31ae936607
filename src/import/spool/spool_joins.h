#pragma once

// Joins rows of different kinds once all are read.

#include <cstdint>
#include <vector>

#include "foretrace/trace.h"
#include "import/spool/spool_index.h"
#include "trace/spool.h"

namespace foretrace {

/// A call inside another: work that it launched counts as launched by the outer one.
struct InnerCall {
  std::uint32_t inner = 0, outer = 0;  ///< Host records.
};

/// The facts that NCCL records about a collective on the thread that calls it.
struct NamedCollective {
  std::int64_t time = 0;
  std::uint32_t record = 0;  ///< Host record of its range.
  std::uint32_t payload = 0;
};

/// A wait for an event, and its sync record.
struct EventWaitRow {
  spool::Sync row;
  std::uint32_t record = 0;
};

struct SpoolJoins {
  std::vector<InnerCall> inner;
  std::vector<std::uint32_t> dropped;  ///< Host records that go.
  std::vector<EventWaitRow> waits;
  std::vector<NamedCollective> collectives;
  std::vector<spool::GraphClone> clones;
};

/// Work launched by inner calls becomes that of the outer ones; drops the records that go.
void join_calls(SpoolJoins& joins, SpoolIndex& index, Trace& trace);
void resolve_events(const SpoolJoins& joins, SpoolIndex& index, Trace& trace);
/// Gives copies of graphs the edges of their originals, and all edges their direction.
void join_graphs(const SpoolJoins& joins, Trace& trace);
void describe_collectives(const SpoolJoins& joins, const SpoolIndex& index, Trace& trace);

}  // namespace foretrace

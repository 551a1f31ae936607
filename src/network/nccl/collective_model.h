#pragma once

// Models the time of a collective by six numbers that are the same for every size and number of
// nodes:
//
//     t = l + w + m sqrt(l w)
//     l = base + a_within h_within + a_across h_across       hops and their latencies
//     w = max(bytes_within / B_within, bytes_across / B_across) + bytes_copied / B_within
//
// The numbers are fitted by least squares of logarithms (Huber's loss beyond 0.5, Nelder and Mead's
// search). A weak pull towards the start of the search keeps numbers there on which no row depends.

#include <vector>

#include "network/nccl/measured.h"

namespace foretrace {

/// How ranks are distributed over nodes, without the links between them.
struct Shape {
  std::uint32_t nodes = 1, per_node = 1;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};
Shape shape_of(const MeasuredCollective& row);

/// Microseconds and GB/s.
struct CollectiveModel {
  double base = 8, within_hop = .6, across_hop = 6;
  double within = 100, across = 25;  ///< Per rank; per NIC of a rank.
  double mixed = .3;                 ///< m: loss of a pipeline between latency and bandwidth.

  double us(Operation operation, Shape shape, Bytes bytes) const;
};

CollectiveModel fit_model(const std::vector<MeasuredCollective>& rows,
                          const CollectiveModel& start);

}  // namespace foretrace

#pragma once

// The traffic of workers that divide parameters, gradients or optimizer state among them
// (Rajbhandari et al., ZeRO, SC'20; Zhao et al., PyTorch FSDP, VLDB 2023):
//
//     stage 1, 2   compute   |FFFF|B3 B2 B1|u|      u: the update of a part
//                  network        |r3 r2 r1| |g|    r: reduce-scatter of a bucket, g: all-gather of
//                                                      the parameters behind the update
//     stage 3      compute   |F1 F2 F3|B3 B2 B1|u|  a: all-gather of a unit in front of its passes
//                  gathers   |a1 a2 a3|a3 a2 a1|    r: reduce-scatter behind its backward pass
//                  reduces             |r3 r2 r1|

#include <cstdint>

#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/transform.h"
#include "transform/parallel/gradient_exchange.h"

namespace foretrace {

struct ShardedTraffic {
  NetworkSettings network;
  ExchangeSettings exchange;
  std::int64_t stage = 1, workers = 8;
  std::int64_t shard = 0;  ///< Workers that divide one copy among them; 0: all.
  std::int64_t units = 0, prefetch = 1;
  bool reshard = true;

  ShardedTraffic();
  void describe(Fields& fields);
  std::int64_t divided_by() const { return shard == 0 ? workers : shard; }
};

/// Adds the traffic and shortens the update; returns the effect. If `gradients` is 0, their size is
/// taken from the trace; if `parameters` is 0, they are as large as the gradients. Throws Error if
/// the job communicates already, and as find_gradients() and Communicator do.
Effect add_sharded_traffic(Graph& graph, const Context& context, const ShardedTraffic& settings,
                           Bytes parameters, Bytes gradients);

}  // namespace foretrace

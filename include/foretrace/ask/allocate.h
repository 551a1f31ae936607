#pragma once

// `foretrace plan allocate`: which elastic jobs get idle nodes.

#include <cstdint>
#include <optional>
#include <string>

#include "foretrace/answer/allocation.h"

namespace foretrace {

/// A file of jobs is JSON:
///
///     {"jobs": [{"name": "a", "count": 10, "arrival": "0s", "every": "36s", "nodes": 4,
///                "least": 1, "most": 64, "up": "18s", "down": "12s", "samples": 1.3e8,
///                "value": 0.001, "deadline": "10h", "rates": {"1": 2831, "8": 20379.2}}]}
///
/// `rates` are samples a second by nodes. Instead of them "model", "machine" and "global_batch"
/// name a described job, whose rates are those of its fastest layouts.
struct AllocateQuestion {
  std::string jobs;                      ///< Path of a file of jobs.
  std::optional<std::int64_t> nodes{};   ///< Nodes that are idle, for one decision.
  std::string events{}, sacct{}, swf{};  ///< Or one of these logs to replay.
  std::string objective = "throughput";  ///< throughput, speedup, deadline, price
  std::string solver = "knapsack";       ///< knapsack, milp, equal
  Nanoseconds ahead{120'000'000'000};    ///< How far a decision looks ahead.
  std::size_t at_once = 10;              ///< Jobs that may run at once in a replay.
};

/// Throws Error if the question cannot be answered.
AllocationReport allocate(const AllocateQuestion& question);

}  // namespace foretrace

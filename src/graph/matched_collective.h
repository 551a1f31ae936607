#pragma once

// A collective, or a message, as all of its ranks recorded it. Each member has a task on a lane of
// its own rank. It enters when that task could start, the transfer begins when the last has
// entered, and each leaves when its part of the transfer is over:
//
//     rank 0   ...|enter|~~~~~~|TTT|       ~ waits for the others: a dependency
//     rank 1   ......|enter|~~~|TTT|       T transfer: the duration
//     rank 2   ............|enter|TTT|

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

struct CollectiveMember {
  std::uint32_t rank = 0;  ///< Index into the ranks of the job.
  TaskId task = kNoTask;
  /// Recorded time that the task waited for the last to enter, and its whole recorded duration. A
  /// transform that changes the duration of the task scales both parts alike.
  Nanoseconds skew{0}, recorded{0};
  /// True if it left before the last had entered, as the root of a broadcast can: it waits for
  /// nobody.
  bool left_early = false;
};

struct MatchedCollective {
  std::string operation, group;  ///< In words: "allreduce", "ranks 0, 1".
  std::int64_t sequence = -1;    ///< Number within its group.
  /// measured: the recordings number the collectives; inferred: matched by the order of operations.
  Provenance matched = Provenance::inferred;
  std::vector<CollectiveMember> members;  ///< By rank; at least two.
  std::size_t last = 0;                   ///< Index of the member that entered last.
  Nanoseconds arrival_skew{0};            ///< From the first entry to the last, on a common clock.
};

}  // namespace foretrace

#pragma once

// One step of all ranks on one clock: who is late, and who waits for it.
//
//     rank 0   |#### kernels ####|~~~ waits ~~~|== transfer ==|### ...
//     rank 1   |######## kernels, longer #######|== transfer ==|### ...

#include <cstddef>
#include <span>
#include <vector>

#include "foretrace/answer/prediction_page.h"
#include "job/job.h"

namespace foretrace {

/// The replay of one rank, on its own clock.
struct DrawnRank {
  const Graph* graph = nullptr;
  const Timeline* timeline = nullptr;
};

/// The step of rank `shown` that is in the middle of the recording, on the devices of all recorded
/// ranks. `runs` are the replays of all ranks together, by rank of the world. Empty if ranks do not
/// meet or the rank has fewer than two steps. Linear.
std::vector<RankLane> rank_lanes(const JobRanks& job, std::span<const DrawnRank> runs,
                                 std::size_t shown);

}  // namespace foretrace

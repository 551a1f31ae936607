// Collectives wait for work that their thread launched before them, and updates wait for
// collectives.

#include <gtest/gtest.h>

#include "infer/recording.h"

namespace foretrace {
namespace {

TEST(Collectives, StandBetweenTheBackwardPassAndTheUpdate) {
  Recording run;
  run.call(0, "launch_backward", 0, 2, 1).call(0, "launch_reduce", 3, 2, 2);
  run.host(0, HostKind::annotation, "Optimizer.step#SGD.step", 6, 10);
  run.call(0, "launch_update", 7, 2, 3);
  run.kernel(0, "backward", 5, 8, 1).kernel(1, "ncclDevKernel_AllReduce", 13, 20, 2);
  run.kernel(0, "update", 33, 5, 3);
  const std::string seen = waits(run);
  for (const char* wait : {"backward -> ncclDevKernel_AllReduce: collective input",
                           "ncclDevKernel_AllReduce -> update: update after collectives"}) {
    EXPECT_NE(seen.find(wait), std::string::npos) << wait << seen;
  }
}

// Among three equal collectives, only the time beyond the quickest can be arrival skew.
TEST(Collectives, WhatExceedsTheQuickestAlikeOnlyOtherRanksExplain) {
  Recording run;
  const int durations[] = {10, 14, 11};
  for (int i = 0; i < 3; ++i) {
    const auto id = static_cast<std::uint32_t>(i + 1);
    run.call(0, "launch", 100 * i, 2, id);
    run.kernel(0, "ncclDevKernel_AllReduce", 100 * i + 5, durations[i], id);
  }
  run.trace().world_size = 2;
  EXPECT_EQ(infer(run.trace()).graph.unexplained().peers, 5us);
}

}  // namespace
}  // namespace foretrace

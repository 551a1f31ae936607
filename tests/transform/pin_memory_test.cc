#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

// Copies in both directions, from and to pageable memory: each call blocks the host.
constexpr auto kBothWays = R"(
    cpu: L:launch 1, w=cudaStreamSynchronize:sync 1, M:launch 1, v=cudaStreamSynchronize:sync 1, S=cudaDeviceSynchronize:sync 1
    in:  i:copy_in 6 {bytes=100kB}
    out: o:copy_out 6 {bytes=100kB}
    L -> i
    i -> w
    M -> o
    o -> v
    i -> S
    o -> S
)";

TEST(PinMemory, Baseline) {
  EXPECT_EQ(simulated(kBothWays), R"(
cpu |L......cM......cc|
in  |.iiiiii..........|
out |.........oooooo..|
)");
}

TEST(PinMemory, BothDirectionsOverlap) {
  EXPECT_EQ(simulated(kBothWays, R"({"use": "pin_memory", "host_copy": "0B/s"})"), R"(
cpu |LcMc.....c|
in  |.iiiiii...|
out |...oooooo.|
)");
}

TEST(PinMemory, TheHostsCopyOnTheWayOutGoes) {
  // 100 kB at 50 GB/s take 2us.
  EXPECT_EQ(simulated(kBothWays, R"({"use": "pin_memory", "host_copy": "50GB/s"})"), R"(
cpu |LcMc...c|
in  |.iiiiii.|
out |...oooo.|
)");
}

// The call waited for the previous kernel before it staged the copy.
TEST(PinMemory, NorDoesTheHostWaitForWhatIsInFront) {
  constexpr auto kStaged = R"(
    cpu: K:launch 1, h=cudaMemcpyAsync:sync 0, p=stage:host 2, L:launch 1, w=cudaMemcpyAsync:sync 1, X:host 1
    gpu: k=A 6, o:copy_out 3 {bytes=100kB}
    K -> k
    k -> h [inferred "blocking copy"]
    L -> o
    o -> w [measured "blocking copy"]
)";
  EXPECT_EQ(simulated(kStaged), R"(
cpu |K......ssL...cX|
gpu |.AAAAAA...ooo..|
)");
  EXPECT_EQ(simulated(kStaged, R"({"use": "pin_memory", "host_copy": "0B/s"})"), R"(
cpu |KssLcX....|
gpu |.AAAAAAooo|
)");
}

TEST(PinMemory, AMeasuredBandwidthIsWhatCounts) {
  EXPECT_EQ(simulated(kBothWays, R"({"use": "pin_memory", "bandwidth": "50GB/s"})"), R"(
cpu |LcMc.c|
in  |.ii...|
out |...oo.|
)");
}

TEST(PinMemory, WhatIsReadAtOnceStillIs) {
  EXPECT_EQ(
      simulated(kBothWays, R"({"use": "pin_memory", "least": "1MB"})"),
      "where: must select copies between the device and pageable memory of at least 1 MB, there is "
      "none");
}

TEST(PinMemory, PinnedCopiesAreLeftAlone) {
  EXPECT_EQ(simulated(R"g(
    cpu: L:launch 1
    in:  "Memcpy HtoD (Pinned -> Device)":copy_in 6 {bytes=100kB}
)g",
                      R"({"use": "pin_memory"})"),
            "where: must select copies between the device and pageable memory of at least 65.54 "
            "kB, there is none");
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

/// Three layers, whose gradients take 1, 1 and 6 us between two workers at 1 GB/s.
constexpr auto kThreeLayers = R"(
    stream: C 2 {phase=backward step=0 layer=3}, B 2 {phase=backward step=0 layer=2}, A 2 {phase=backward step=0 layer=1}, f 1 {phase=forward step=1 layer=1}, g 1 {phase=forward step=1 layer=2}, h 1 {phase=forward step=1 layer=3}
    @step one
    @step two
    @alloc 6kB use=gradient: C .. h writes C
    @alloc 1kB use=gradient: B .. h writes B
    @alloc 1kB use=gradient: A .. h writes A
)";

std::string p3(const std::string& more) {
  return R"({"use": "p3", "gpus": 2, "bandwidth": "1GB/s", "latency": "0us", "slice": "4B",
             "lateness": "0us", "lateness_share": 0, "kernel_contention": 0, "collective_contention": 0)" +
         more + "}";
}

/// The small example of the Daydream method: 13 in the order of readiness, 11 by priority.
TEST(PriorityPropagation, FrontLayersDoNotWaitForBackLayers) {
  EXPECT_EQ(simulated(kThreeLayers, p3(R"(, "priority": false)")), R"(
stream           |CCBBAA....fgh|
parameter slices |..gggggggg...|
)");
  EXPECT_EQ(simulated(kThreeLayers, p3("")), R"(
stream           |CCBBAA.fg.h|
parameter slices |..gggggggg.|
                 |....g.g....|
)");
}

TEST(PriorityPropagation, ALongSliceKeepsUrgentOnesWaiting) {
  // Gradient C is one slice: A and B wait until all of it has been sent.
  EXPECT_EQ(simulated(kThreeLayers, p3(R"(, "slice": "6kB")")), R"(
stream           |CCBBAA...fgh|
parameter slices |..gggggggg..|
)");
}

TEST(PriorityPropagation, EverybodyWaitsForTheSlowestWorker) {
  // When passes end, the later one of two workers is 0.56 deviations behind the mean.
  EXPECT_EQ(simulated(kThreeLayers, p3(R"(, "priority": false, "lateness": "3.54us")")), R"(
stream           |CCBBAA.....fgh|
parameter slices |...gggggggg...|
)");
}

TEST(PriorityPropagation, ServersUpdateUnlessWorkersDo) {
  constexpr auto kOneLayer = R"(
    stream: B 2 {phase=backward step=0}, U 2 {phase=update step=0}, f 1 {phase=forward step=1}
    @step one
    @step two
)";
  EXPECT_EQ(simulated(kOneLayer, p3(R"(, "gradient_bytes": "3kB")")), R"(
stream           |BB...f|
parameter slices |..ggg.|
)");
  EXPECT_EQ(simulated(kOneLayer, p3(R"(, "gradient_bytes": "3kB", "server_update": false)")), R"(
stream           |BBUU.f|
parameter slices |..ggg.|
)");
}

}  // namespace
}  // namespace foretrace

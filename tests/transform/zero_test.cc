#include <gtest/gtest.h>

#include "foretrace/answer/figure.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "foretrace/transform.h"
#include "support/simulated.h"

namespace foretrace {
namespace {

// 7.5 billion parameters in mixed precision with Adam: 2 + 2 + 12 bytes each (Rajbhandari et al.,
// SC'20, figure 1).
TEST(Zero, DividesTheStatesOfTheTableInItsPaper) {
  const std::pair<const char*, double> stages[] = {{"zero:stage=1,workers=64", 31.4},
                                                   {"zero:stage=2,workers=64", 16.6},
                                                   {"zero:stage=3,workers=64", 1.9}};
  for (const auto& [transform, gigabytes] : stages) {
    Graph graph = parse_graph("@memory 120GB device=0\ns: A 1\n");
    const Effect effect =
        read_transform_text(std::string(transform) +
                            ",parameter_bytes=15GB,gradient_bytes=15GB,optimizer_bytes=90GB")
            ->apply(graph, {});
    EXPECT_EQ(figure(effect, "state_before"), 120e9);
    EXPECT_NEAR(figure(effect, "state_after") / 1e9, gigabytes, 0.05);
    EXPECT_EQ(static_cast<double>(initial_memory(graph, 0).count), figure(effect, "state_after"));
  }
}

// Three of four workers hold 3 of 10 bytes, the last one holds the rest; each worker needs room
// for 3.
TEST(Zero, RoundsPartsUp) {
  Graph graph = parse_graph("@memory 10B device=0\ns: A 1\n");
  const Effect effect = read_transform_text("zero:workers=4,optimizer_bytes=10B")->apply(graph, {});
  EXPECT_EQ(figure(effect, "state_after"), 3);
  EXPECT_EQ(initial_memory(graph, 0), Bytes{3});
}

constexpr auto kZeroTraining = R"(
    @memory 16MiB device=0
    s: f 1 {layer=0}, g 1 {layer=1}, b 1 {phase=backward}, u 1 {phase=update}
    @alloc 3MiB use=parameter: .. reads f
    @alloc 1MiB use=parameter: .. reads g
    @alloc 8MiB use=optimizer_state: .. reads u
    @alloc 4MiB use=gradient: b .. writes b reads u
)";

Bytes peak_behind(std::string_view transform) {
  Graph graph = parse_graph(kZeroTraining);
  if (!transform.empty()) read_transform_text(transform)->apply(graph, {});
  return memory_curves(graph, simulate(graph)).at(0).peak;
}

TEST(Zero, EachStageDividesMore) {
  EXPECT_EQ(peak_behind(""), Bytes{20 << 20});
  EXPECT_EQ(peak_behind("zero:stage=1,workers=4"), Bytes{14 << 20});
  EXPECT_EQ(peak_behind("zero:stage=2,workers=4"), Bytes{11 << 20});
  // Parameters of 4 MiB become 1 MiB, and the larger layer, of 3 MiB, is gathered.
  EXPECT_EQ(peak_behind("zero:stage=3,workers=4"), Bytes{11 << 20});
  EXPECT_EQ(peak_behind("zero:stage=3,workers=4,layer_bytes=1MiB"), Bytes{9 << 20});
}

TEST(Zero, GathersOnTheDeviceThatHasTheParameters) {
  std::string text(kZeroTraining);
  for (std::size_t at = text.find("device=0"); at != text.npos; at = text.find("device=0"))
    text.replace(at, 8, "device=1");
  for (std::size_t at = text.find(" use="); at != text.npos; at = text.find(" use=", at + 14))
    text.insert(at, " device=1");
  Graph graph = parse_graph(text);
  read_transform_text("zero:stage=3,workers=4")->apply(graph, {});
  const auto curves = memory_curves(graph, simulate(graph));
  ASSERT_EQ(curves.size(), 1U);
  EXPECT_EQ(curves[0].peak, Bytes{11 << 20});
}

// The gathered parameters are freed before those of the next step are made.
TEST(Zero, GradientsOfOneStepAreHeldAtATime) {
  Graph graph = parse_graph(R"(
    @step a
    @step b
    s: b 1 {step=0 phase=backward}, u 1 {step=0 phase=update}, c 1 {step=1 phase=backward}, v 1 {step=1 phase=update}
    @alloc 4kB use=gradient: b .. u writes b
    @alloc 4kB use=gradient: c .. v writes c
  )");
  const Effect effect = read_transform_text("zero:stage=2,workers=2")->apply(graph, {});
  EXPECT_EQ(figure(effect, "state_before"), 4000);
  EXPECT_EQ(figure(effect, "state_after"), 2000);
}

TEST(Zero, OneWorkerKeepsAll) { EXPECT_EQ(peak_behind("zero:workers=1"), Bytes{20 << 20}); }

TEST(Zero, SaysWhatIsWrong) {
  EXPECT_EQ(simulated("@memory 1GB device=0\ns: A 1\n", R"({"use": "zero"})"),
            "optimizer_bytes: must be given, because this trace does not show which memory stage 1 "
            "divides");
  EXPECT_EQ(
      simulated("@memory 1GB device=0\ns: A 1\n", R"({"use": "zero", "optimizer_bytes": "2GB"})"),
      "optimizer_bytes: must be at most the 1 GB in use when the recording began, got 2GB");
  EXPECT_EQ(simulated("s: A 1\n", R"({"use": "zero", "stage": 4})"),
            "stage: must be at most 3, got 4");
}

/// Two layers of 4 kB each, and the forward pass of the next step. A reduce-scatter or an
/// all-gather of 4 kB between two workers at 1 GB/s takes 2 us.
constexpr auto kTwoZeroSteps = R"(
    stream: E 3 {phase=forward step=0 layer=0}, F 3 {phase=forward step=0 layer=1}, C 4 {phase=backward step=0 layer=1}, B 4 {phase=backward step=0 layer=0}, U 2 {phase=update step=0}, G 3 {phase=forward step=1 layer=0}
    @step one
    @step two
    @alloc 4kB use=gradient: C .. U writes C reads U
    @alloc 4kB use=gradient: B .. U writes B reads U
)";

std::string sharded(const std::string& more) {
  return R"({"use": "zero", "workers": 2, "bandwidth": "1GB/s", "latency": "0us",
             "lateness": "0us", "lateness_share": 0, "kernel_contention": 0, "collective_contention": 0, )" +
         more + "}";
}

TEST(Zero, WithANetworkStageTwoScattersGradientsAndGathersParameters) {
  // The update takes half as long.
  EXPECT_EQ(
      simulated(kTwoZeroSteps, sharded(R"("stage": 2, "bucket": "4kB", "first_bucket": "4kB")")),
      R"(
stream             |EEEFFFCCCCBBBB..U....GGG|
data parallel      |..........rr..rr........|
sharded parameters |.................aaaa...|
)");
}

TEST(Zero, WithANetworkStageThreeGathersUnitsAheadOfTheirPasses) {
  // The second unit is gathered while the first one runs, and again for the backward pass.
  EXPECT_EQ(simulated(kTwoZeroSteps, sharded(R"("stage": 3)")), R"(
stream             |..EEEFFFCCCCBBBB..UGGG|
sharded parameters |aaaa.aa.aa............|
sharded gradients  |............rr..rr....|
)");
}

TEST(Zero, TheFasterTheNetworkTheMoreOnlyTheSmallerUpdateIsLeft) {
  Graph graph = parse_graph(kTwoZeroSteps);
  read_transform_text(
      "zero:stage=3,workers=2,bandwidth=1000000GB/s,latency=0us,lateness=0us,lateness_share=0,"
      "kernel_contention=0,collective_contention=0")
      ->apply(graph, {});
  EXPECT_EQ(simulate(graph).length, 18us);
}

/// 8 workers, 1 GB of parameters and of gradients: the stages of section 10.1 of the definitions,
/// compared with DDP's 1.75.
TEST(Zero, BytesOnTheWireAreThoseOfTheStage) {
  const std::pair<const char*, double> stages[] = {{"stage=1", 1.75e9},
                                                   {"stage=2", 1.75e9},
                                                   {"stage=3", 2.625e9},
                                                   {"stage=3,reshard=false", 1.75e9}};
  for (const auto& [stage, bytes] : stages) {
    Graph graph = parse_graph(std::string("@memory 3GB device=0\n") + kTwoZeroSteps);
    const Effect effect = read_transform_text("zero:" + std::string(stage) +
                                              ",workers=8,bandwidth=1GB/s,latency=0us,"
                                              "parameter_bytes=1GB,gradient_bytes=1GB")
                              ->apply(graph, {});
    EXPECT_NEAR(figure(effect, "wire_bytes_per_step"), bytes, 1) << stage;
  }
}

TEST(Zero, CopiesOfAShardSumTheirParts) {
  // Two copies of the model on two workers each: each bucket of 4 kB is scattered, then half of it
  // is summed in 2 us.
  EXPECT_EQ(
      simulated(
          kTwoZeroSteps,
          R"({"use": "zero", "stage": 3, "workers": 4, "shard": 2, "bandwidth": "1GB/s", "latency": "0us",
             "lateness": "0us", "lateness_share": 0, "kernel_contention": 0, "collective_contention": 0})"),
      R"(
stream             |..EEEFFFCCCCBBBB....UGGG|
sharded parameters |aaaa.aa.aa..............|
sharded gradients  |............rr..rr......|
among copies       |..............aa..aa....|
)");
}

TEST(Zero, AShardDividesTheWorkers) {
  Graph graph = parse_graph(kTwoZeroSteps);
  EXPECT_THROW(read_transform_text("zero:stage=3,workers=8,shard=3,bandwidth=1GB/s,latency=0us")
                   ->apply(graph, {}),
               Error);
}

}  // namespace
}  // namespace foretrace

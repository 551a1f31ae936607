#include "question/predict/rates.h"

#include <gtest/gtest.h>

#include "foretrace/simulate.h"

namespace foretrace {
namespace {

// Two steps of 10 us with 624 MFLOP each: a fifth of the 312 TFLOP/s of the device. A kernel
// outside the steps and one that only moves memory do not count.
constexpr auto kTwoStepGraph = R"(
    @step ProfilerStep#0
    @step ProfilerStep#1
    @step ProfilerStep#2
    cpu: a=x:launch 1 {step=0}, b=x:launch 1 {step=1}, c=x:launch 1 {step=2}
    stream: A=gemm 4 {step=0 flops=624e6}, P=relu 6 {step=0}, B=gemm 4 {step=1 flops=624e6}, Q=relu 6 {step=1}, C=gemm 4 {step=2 flops=624e6}, R=relu 6 {step=2}
    a -> A
    b -> B
    c -> C
)";

StepRates rates(Scenario& scenario, const char* device = "NVIDIA A100-SXM4-40GB") {
  Graph graph = parse_graph(kTwoStepGraph);
  graph.device_names() = {device};
  return rates_of(graph, simulate(graph), scenario);
}

TEST(Rates, AreArithmeticOfAStepAgainstThePeakOfTheDevice) {
  Scenario scenario;
  const StepRates found = rates(scenario);
  EXPECT_DOUBLE_EQ(found.flops, 624e6);
  EXPECT_DOUBLE_EQ(found.peak_flops, 312e12);
  EXPECT_DOUBLE_EQ(found.known_share, 1);
  EXPECT_NEAR(*flops_utilization(found, 10us), 0.2, 1e-9);
}

TEST(Rates, ThereIsNoUtilizationOfAnUnknownDevice) {
  Scenario scenario;
  EXPECT_FALSE(flops_utilization(rates(scenario, "Abacus 3000"), 10us));
}

/// The rates of 8 samples and 1,024 tokens a step after applying these steps.
StepRates rates_after(std::string_view steps) {
  Scenario scenario;
  scenario.samples_per_step = 8;
  scenario.tokens_per_step = 1024;
  add_steps(steps, scenario);
  return changed_rates(rates(scenario), scenario);
}

TEST(Rates, GrowWithTheBatchAndFollowTheDevice) {
  const StepRates after = rates_after("batch_size:factor=2,gpu=h100-sxm5-80gb");
  EXPECT_DOUBLE_EQ(after.samples, 16);
  EXPECT_DOUBLE_EQ(after.tokens, 2048);
  EXPECT_DOUBLE_EQ(after.flops, 2 * 624e6);
  EXPECT_DOUBLE_EQ(after.peak_flops, 989.4e12);
}

TEST(Rates, TheArithmeticOfOtherSequencesIsNotKnown) {
  const StepRates after = rates_after("sequence_length:from=128,to=256");
  EXPECT_DOUBLE_EQ(after.samples, 8);
  EXPECT_DOUBLE_EQ(after.tokens, 2048);
  EXPECT_DOUBLE_EQ(after.flops, 0);
}

}  // namespace
}  // namespace foretrace

#include "job/apply.h"

#include <gtest/gtest.h>

#include "foretrace/scenario.h"

namespace foretrace {
namespace {

struct Moved {
  std::string summary;  ///< The summary of the last step.
  Nanoseconds duration{0};
};

/// A copy and a matrix product recorded on a V100, after applying these steps.
Moved moved(const std::string& machine, const std::vector<std::string>& steps) {
  Graph graph = parse_graph("stream: copy:copy_on_device 1000, sgemm 1000");
  graph.device_names() = {"Tesla V100-SXM2-32GB"};
  Scenario scenario;
  scenario.machine = machine;
  for (const std::string& step : steps) add_steps(step, scenario);
  const ApplyResult applied = apply(scenario, graph);
  return {applied.steps.back().summary, graph.task(TaskId{0}).duration};
}

TEST(Apply, AStepIsAboutTheDeviceThatTheJobRunsOnByThen) {
  const std::string there = moved("", {"amp:device_peaks=true,device=a100-sxm4-40gb"}).summary;
  EXPECT_NE(moved("", {"amp:device_peaks=true"}).summary, there);
  EXPECT_EQ(moved("a100-sxm4-40gb", {"amp:device_peaks=true"}).summary, there);
  EXPECT_EQ(moved("", {"faster_device:to=a100-sxm4-40gb", "amp:device_peaks=true"}).summary, there);
}

TEST(Apply, AmpGainsWhatTheDeviceThatItRunsOnDoes) {
  // A V100 gains the paper's third; an A100, whose products in half precision are 16 times as fast
  // as in single, more.
  EXPECT_NE(moved("", {"amp"}).summary.find("0.333"), std::string::npos);
  const std::string there = moved("", {"faster_device:to=a100-sxm4-40gb", "amp"}).summary;
  EXPECT_EQ(there.find("0.333"), std::string::npos) << there;
  EXPECT_EQ(moved("a100-sxm4-40gb", {"amp"}).summary, there);
}

TEST(Apply, TwoMovesAreAsOne) {
  const Nanoseconds once = moved("h100-sxm5-80gb", {}).duration;
  EXPECT_LT(once, 300us);
  const Nanoseconds twice = moved("a100-sxm4-40gb", {"faster_device:to=h100-sxm5-80gb"}).duration;
  EXPECT_LE(abs(twice - once), 1ns);
}

// One matrix product fills the device once it has twice the samples, the other has filled it all
// along; both are cut finer for fewer samples.
TEST(Apply, AFactorAndItsInverseGiveBackTheRecordedTimes) {
  const Graph recorded = parse_graph(
      "stream: a 10 {phase=forward}, sgemm_a 800 {phase=forward fill=0.75}, B 800 {phase=forward "
      "fill=0.75}, sgemm_b 800 {phase=forward fill=3}");
  using Steps = std::vector<std::string>;
  for (const Steps& steps : {Steps{"batch_size:factor=2", "batch_size:factor=0.5"},
                             Steps{"batch_size:factor=0.25", "batch_size:factor=4"},
                             Steps{"sequence_length:factor=2", "batch_size:factor=0.5"},
                             Steps{"batch_size:factor=8", "sequence_length:factor=0.125"}}) {
    Graph graph = recorded.clone();
    Scenario scenario;
    for (const std::string& step : steps) add_steps(step, scenario);
    apply(scenario, graph);
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const Nanoseconds before = recorded.task(TaskId{i}).duration;
      EXPECT_LE(abs(graph.task(TaskId{i}).duration - before), 2ns) << steps.front() << " " << i;
    }
  }
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

/// "each | step time", in ticks.
std::string steps_of(const Graph& graph) {
  const StepTimes times = step_times(graph, simulate(graph));
  std::string text;
  for (const Nanoseconds each : times.each) text += std::to_string(each / 1us) + ' ';
  return text + "| " + std::to_string(times.step_time / 1us);
}

std::string steps_of(std::string_view text) { return steps_of(parse_graph(text)); }

TEST(StepTimes, WithoutStepsAreTheWholeLength) { EXPECT_EQ(steps_of("x: A 3, B 4"), "| 7"); }

TEST(StepTimes, AreTheDistancesBetweenTheFirstDeviceTasks) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    x: A 3 {step=0}, B 4 {step=1}
  )"),
            "3 | 3");
}

TEST(StepTimes, AreNotThoseOfCopiesThatRunAheadOfTheWork) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    @step 3
    copies: i:copy_in 1 {step=0}, j:copy_in 1 {step=1}, k:copy_in 1 {step=2}, l:copy_in 1 {step=3}
    stream: A:kernel 10 {step=0}, B:kernel 11 {step=1}, C:kernel 12 {step=2}, D:kernel 10 {step=3}
    i -> A
    j -> B
    k -> C
    l -> D
  )"),
            "10 11 12 | 11");
}

TEST(StepTimes, LeaveOutTheFirstOfThreeOrMore) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    @step 3
    x: A 9 {step=0}, B 4 {step=1}, C 6 {step=2}, D 5 {step=3}
  )"),
            "9 4 6 | 5");
}

// The copy of the next step is launched early and on a stream of its own, but the first kernel was
// launched before it.
TEST(StepTimes, CountFromWhatWasLaunchedFirstNotFromWhatRanFirst) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    cpu:  K:launch 1, C:launch 1, L:launch 1, D:launch 1
    main: k 8 {step=0}, l 8 {step=1}
    copy: c:copy_in 1 {step=0}, d:copy_in 1 {step=1}
    K -> k [measured launch]
    C -> c [measured launch]
    L -> l [measured launch]
    D -> d [measured launch]
  )"),
            "8 | 8");
}

TEST(StepTimes, IgnoreWhatAScenarioLaunched) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    cpu: K:launch 1, L:launch 1
    x: k 8 {step=0}, l 8 {step=1}
    y: other 2, early 1 {step=1}
    K -> early [assumed launch]
    L -> l [measured launch]
  )"),
            "8 | 8");
}

TEST(StepTimes, UseHostTasksWhereThereIsNoDeviceWork) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    cpu: A:host 3 {step=0}, B:host 4 {step=1}
  )"),
            "3 | 3");
}

TEST(StepTimes, OfASingleStepReachFromItsFirstStartToItsLastFinish) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    cpu: A:host 3 {step=0}
    x: before 2, B 4 {step=0}, C 5 {step=0}, behind 7
  )"),
            "9 | 9");
}

TEST(StepTimes, SkipStepsWithoutTasksAndRemovedTasks) {
  Graph graph = parse_graph(R"(
    @step 0
    @step 1
    @step 2
    x: A 3 {step=0}, B 4 {step=2}, C 5 {step=2}
  )");
  EXPECT_EQ(steps_of(graph), "3 | 3");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(steps_of(graph), "3 | 3");
  graph.remove(named(graph, "A"));
  EXPECT_EQ(steps_of(graph), "5 | 5");
}

}  // namespace
}  // namespace foretrace

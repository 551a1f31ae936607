#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

std::string in_ticks(Nanoseconds time) {
  return std::to_string(time / 1us) + (time % 1us == 500ns ? ".5" : "");
}

/// "each | step time", in ticks.
std::string steps_of(const Graph& graph) {
  const StepTimes times = step_times(graph, simulate(graph));
  std::string text;
  for (const Nanoseconds each : times.each) text += in_ticks(each) + ' ';
  return text + "| " + in_ticks(times.step_time);
}

/// Settles the steps of a graph that was recorded as it replays: "each | counted | step time".
std::string settled(std::string_view text) {
  Graph graph = parse_graph(text);
  const Timeline recorded = simulate(graph);
  set_step_rule(graph, recorded);
  const StepTimes times = step_times(graph, recorded);
  std::string counted;
  for (const Nanoseconds time : times.counted) counted += in_ticks(time) + ' ';
  const std::string all = steps_of(graph);
  return all.substr(0, all.find('|')) + "| " + counted + all.substr(all.find('|'));
}

std::string steps_of(std::string_view text) { return steps_of(parse_graph(text)); }

TEST(StepTimes, WithoutStepsAreTheWholeLength) { EXPECT_EQ(steps_of("x: A 3, B 4"), "| 7"); }

TEST(StepTimes, AreTheDistancesBetweenTheFirstDeviceTasks) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    x: A 3 {step=0}, B 4 {step=1}
  )"),
            "3 4 | 3.5");
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
            "10 11 12 10 | 10.5");
}

TEST(StepTimes, LeaveOutAFirstThatIsAnOutlierWhereThreeRemain) {
  EXPECT_EQ(settled("@step 0\n@step 1\n@step 2\n@step 3\n"
                    "x: A 9 {step=0}, B 4 {step=1}, C 6 {step=2}, D 5 {step=3}"),
            "9 4 6 5 | 4 6 5 | 5");
  EXPECT_EQ(settled("@step 0\n@step 1\n@step 2\n@step 3\n"
                    "x: A 7 {step=0}, B 4 {step=1}, C 6 {step=2}, D 5 {step=3}"),
            "7 4 6 5 | 7 4 6 5 | 5.5");
  EXPECT_EQ(settled("@step 0\n@step 1\n@step 2\n"
                    "x: A 370 {step=0}, B 140 {step=1}, C 139 {step=2}"),
            "370 140 139 | 370 140 139 | 140");
}

// A what-if that makes the first step normal does not change which steps count.
TEST(StepTimes, AreOverTheSameStepsHoweverWorkChanges) {
  Graph graph = parse_graph(
      "@step 0\n@step 1\n@step 2\n@step 3\n"
      "x: A 9 {step=0}, B 4 {step=1}, C 6 {step=2}, D 5 {step=3}");
  set_step_rule(graph, simulate(graph));
  graph.task(named(graph, "A")).duration = 1us;
  EXPECT_EQ(steps_of(graph), "1 4 6 5 | 5");
}

// The last of many steps is left out, because it lacks the host work before the next one.
TEST(StepTimes, CountTheLastOfFew) {
  EXPECT_EQ(steps_of("@step 0\n@step 1\n@step 2\n@step 3\n@step 4\n"
                     "x: A 5 {step=0}, B 5 {step=1}, C 5 {step=2}, D 5 {step=3}, E 2 {step=4}"),
            "5 5 5 5 | 5");
}

// An update in every second step.
TEST(StepTimes, AreTakenByWholePeriodsWhereStepsAlternate) {
  EXPECT_EQ(settled(R"(
    @step 0
    @step 1
    @step 2
    @step 3
    @step 4
    x: a=A 4 {step=0}, b=A 4 {step=1}, U 5 {step=1}, c=A 4 {step=2}, d=A 4 {step=3}, V=U 5 {step=3}, e=A 4 {step=4}
  )"),
            "4 9 4 9 | 6.5 6.5 | 6.5");
}

TEST(StepTimes, TellHowFarStepsDiffer) {
  Graph graph = parse_graph(
      "@step 0\n@step 1\n@step 2\n"
      "x: A 370 {step=0}, B 140 {step=1}, C 138 {step=2}");
  const StepTimes times = step_times(graph, simulate(graph));
  EXPECT_EQ(in_ticks(times.mean), "216");
  EXPECT_EQ(in_ticks(times.fastest), "138");
  EXPECT_EQ(in_ticks(times.slowest), "370");
  EXPECT_NEAR(times.spread, 232.0 / 140, 1e-9);
  EXPECT_EQ(times.steps(), 3U);
}

// The copy of the next step runs early, on a stream of its own, but that step's first kernel was
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
            "8 8 | 8");
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
            "8 8 | 8");
}

TEST(StepTimes, UseHostTasksWhereThereIsNoDeviceWork) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    cpu: A:host 3 {step=0}, B:host 4 {step=1}
  )"),
            "3 4 | 3.5");
}

TEST(StepTimes, DoNotCountStepsWithoutDeviceWork) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    cpu: A:host 3 {step=0}, B:host 3 {step=1}, C:host 1 {step=2}
    x: a 8 {step=0}, b 8 {step=1}
  )"),
            "8 8 | 8");
}

TEST(StepTimes, UseHostTasksWhereHardlyAStepHasDeviceWork) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    cpu: A:host 3 {step=0}, B:host 4 {step=1}, C:host 5 {step=2}
    x: a 1 {step=1}
  )"),
            "3 4 5 | 4");
}

// The next step could not be launched sooner.
TEST(StepTimes, OfTheLastStepAreThoseOfItsHostWhereThatTakesLonger) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    cpu: a:host 20 {step=0}, K:launch 1 {step=0}, b:host 9 {step=0}, c:host 20 {step=1}, L:launch 1 {step=1}, d:host 9 {step=1}
    x: k 4 {step=0}, l 4 {step=1}
    K -> k [measured launch]
    L -> l [measured launch]
  )"),
            "30 30 | 30");
}

TEST(StepTimes, OfTheOnlyStepReachFromTheBeginOnTheHostToTheEndOnTheDevice) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    cpu: load:host 20 {step=0}, L:launch 1 {step=0}, log:host 9 {step=0}
    x: K 15 {step=0}
    L -> K [measured launch]
  )"),
            "36 | 36");
}

// Each load belongs to its own step: the last step takes no lead twice, and the first one has its
// own.
TEST(StepTimes, OfFewStepsBeginWithTheirWorkOnTheHost) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    cpu: a:host 4 {step=0}, K:launch 1 {step=0}, A:sync 5 {step=0}, b:host 16 {step=1}, L:launch 1 {step=1}, B:sync 3 {step=1}, c:host 44 {step=2}, M:launch 1 {step=2}, C:sync 5 {step=2}
    x: k 2 {step=0}, l 2 {step=1}, m 2 {step=2}
    K -> k [measured launch]
    L -> l [measured launch]
    M -> m [measured launch]
  )"),
            "10 20 50 | 20");
}

// The device is busy with work from before the only step.
TEST(StepTimes, OfAStepBeginBehindTheBacklogOfTheDevice) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    cpu: a:host 2 {step=0}, K:launch 1 {step=0}
    x: before 20, k 15 {step=0}
    K -> k [measured launch]
  )"),
            "15 | 15");
}

// The host waits for that work too, which is no work of its step.
TEST(StepTimes, OfAStepCountNoWaitForTheBacklog) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    cpu: a:host 2 {step=0}, K:launch 1 {step=0}, S:sync 0 {step=0}
    x: before 20, k 15 {step=0}
    K -> k [measured launch]
    k -> S [measured device_sync]
  )"),
            "15 | 15");
}

// The second step's copy runs at once on its own stream, while the first kernel still waits.
TEST(StepTimes, AreOfOneStreamWhereThoseOfAllFall) {
  EXPECT_EQ(steps_of(R"(
    @step 0
    @step 1
    @step 2
    cpu:  K:launch 1 {step=0}, C:launch 1 {step=1}, L:launch 1 {step=1}, M:launch 1 {step=2}
    main: before 40, k 8 {step=0}, l 8 {step=1}, m 8 {step=2}
    copy: c:copy_in 1 {step=1}
    K -> k [measured launch]
    C -> c [measured launch]
    L -> l [measured launch]
    M -> m [measured launch]
  )"),
            "8 8 8 | 8");
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
  EXPECT_EQ(steps_of(graph), "3 9 | 6");
  graph.remove(named(graph, "B"));
  EXPECT_EQ(steps_of(graph), "3 5 | 4");
  graph.remove(named(graph, "A"));
  EXPECT_EQ(steps_of(graph), "5 | 5");
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/random_graph.h"

namespace foretrace {
namespace {

/// Times are in ticks.
std::string parts_of(std::string_view text) {
  const Graph graph = parse_graph(text);
  const Breakdown parts = breakdown(graph, simulate(graph));
  std::string result;
  const auto add = [&](const char* name, Nanoseconds time) {
    if (time != 0ns)
      result += std::string(result.empty() ? "" : ", ") + name + ' ' + std::to_string(time / 1us);
  };
  add("compute", parts.compute);
  add("communication", parts.communication);
  add("copy", parts.copy);
  add("unknown", parts.unknown);
  add("input", parts.input);
  add("host", parts.host);
  add("idle", parts.idle);
  return result;
}

TEST(Breakdown, OfSeveralThingsAtOnceTheFirstCounts) {
  EXPECT_EQ(parts_of(R"(
    x: A 4
    y: c:collective 6
    z: d:copy_in 9
    loader [host_thread]: i:input 11
    cpu: h:host 14
    late: L:marker 0, M 0 {gap=20}
  )"),
            "compute 4, communication 2, copy 3, input 2, host 3, idle 6");
}

TEST(Breakdown, CommunicationTimeCountsHiddenAndOverlappingCollectivesOnce) {
  const Graph graph = parse_graph(R"(
    x: A 4, B 2
    y: c:collective 5
    z: S:marker 0, d:collective 6 {gap=1}
    late: L:marker 0, M 0 {gap=20}
  )");
  const Timeline timeline = simulate(graph);
  EXPECT_EQ(communication_time(graph, timeline), 7us);
  EXPECT_EQ(breakdown(graph, timeline).communication, 1us);
}

TEST(Breakdown, EveryKindOfTaskHasItsPart) {
  const std::pair<const char*, const char*> cases[] = {
      {"kernel", "compute 3"},
      {"collective", "communication 3"},
      {"transfer", "communication 3"},
      {"copy_in", "copy 3"},
      {"copy_out", "copy 3"},
      {"copy_on_device", "copy 3"},
      {"copy_peer", "copy 3"},
      {"fill", "copy 3"},
      {"input", "input 3"},
      {"host", "host 3"},
      {"launch", "host 3"},
      {"sync", "host 3"},
      {"unknown", "unknown 3"},
      {"marker", "idle 3"},
  };
  ASSERT_EQ(std::size(cases), task_kind_names().size());
  for (const auto& [kind, parts] : cases)
    EXPECT_EQ(parts_of("x: a:" + std::string(kind) + " 3"), parts) << kind;
}

TEST(Breakdown, DoesNotCountWhatGoesOnInTheBackground) {
  EXPECT_EQ(parts_of("w [worker]: i:input 5\nd [storage]: t:transfer 4\nx: A 2"),
            "compute 2, idle 3");
}

TEST(Breakdown, IsThatOfAnAverageSteadyStep) {
  EXPECT_EQ(parts_of(R"(
    @step 0
    @step 1
    @step 2
    @step 3
    @step 4
    x: A 7 {step=0}, B 7 {step=1 gap=1}, C 7 {step=2 gap=1}, D 7 {step=3 gap=1}, E 5 {step=4 gap=1}
  )"),
            "compute 7, idle 1");
}

TEST(Breakdown, IsThatOfTheStepThatTakesTheStepTimeIfOthersDiffer) {
  EXPECT_EQ(parts_of(R"(
    @step 0
    @step 1
    @step 2
    @step 3
    @step 4
    x: A 7 {step=0}, B 7 {step=1 gap=1}, C 7 {step=2 gap=1}, D 7 {step=3 gap=31}, E 5 {step=4 gap=1}
  )"),
            "compute 7, idle 1");
}

TEST(Breakdown, AddsUpToTheStepTime) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    Graph graph = random_graph(random);
    graph.steps().resize(random() % 4);
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      graph.task(TaskId{i}).kind = static_cast<TaskKind>(random() % 14);
      graph.task(TaskId{i}).step = static_cast<std::int32_t>(i) / 8;
    }
    const Timeline timeline = simulate(graph);
    const Breakdown parts = breakdown(graph, timeline);
    EXPECT_EQ(parts.compute + parts.communication + parts.copy + parts.unknown + parts.input +
                  parts.host + parts.idle,
              step_times(graph, timeline).step_time);
  }
}

}  // namespace
}  // namespace foretrace

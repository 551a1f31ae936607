#include "timeline/step_probes.h"

#include <gtest/gtest.h>

#include <random>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"
#include "support/random_steps.h"

namespace foretrace {
namespace {

/// The step times, computed from the probes alone.
StepTimes probed(const StepProbes& probes, const Graph& graph, const Timeline& timeline) {
  std::vector<Nanoseconds> starts, finishes;
  for (const TaskId task : probes.tasks()) {
    starts.push_back(timeline.start[index(task)]);
    finishes.push_back(timeline.finish[index(task)]);
  }
  const std::vector<Nanoseconds> work = probes.work(graph);
  return probes.step_times(
      {.starts = starts, .finishes = finishes, .work = work, .length = timeline.length});
}

TEST(StepProbes, TellTheStepTimesWhateverTheDurations) {
  std::mt19937 random(11);
  int compared = 0, short_steps = 0;
  for (int run = 0; run < 4000; ++run) {
    SCOPED_TRACE(run);
    Graph graph = random_steps(random);
    const StepProbes probes(graph);
    for (int set = 0; set < 4; ++set) {
      const Timeline timeline = simulate(graph);
      const StepTimes expected = step_times(graph, timeline);
      const StepTimes found = probed(probes, graph, timeline);
      ASSERT_EQ(found.step_time, expected.step_time);
      ASSERT_EQ(found.each, expected.each);
      ++compared;
      short_steps += expected.each.size() >= 2 ? 1 : 0;
      for (std::uint32_t i = 0; i < graph.task_count(); ++i)
        graph.task(TaskId{i}).duration = Nanoseconds(random() % 3 == 0 ? 0 : random() % 3000);
    }
  }
  EXPECT_EQ(compared, 16000);
  EXPECT_GT(short_steps, 4000);
}

TEST(StepProbes, AreFew) {
  Graph graph;
  const LaneId cpu = graph.add_lane({.name = "cpu", .kind = LaneKind::host_thread});
  const LaneId gpu = graph.add_lane({.name = "gpu", .device = 0});
  for (std::int32_t i = 0; i < 5000; ++i) {
    if (i % 1000 == 0) graph.steps().push_back({"s"});
    const TaskId call =
        graph.append(cpu, {.duration = 1us, .step = i / 1000, .kind = TaskKind::launch});
    const TaskId kernel = graph.append(gpu, {.duration = 2us, .step = i / 1000});
    graph.add(
        {.before = call, .after = kernel, .provenance = Provenance::measured, .why = Rule::launch});
  }
  const StepProbes probes(graph);
  EXPECT_EQ(probes.tasks().size(), 10U);
  EXPECT_EQ(probes.stream_count(), 1U);
}

TEST(StepProbes, AreOfLanesInLineOnly) {
  Graph graph;
  const LaneId link = graph.add_lane({.name = "link", .discipline = Discipline::shared});
  EXPECT_NO_THROW(StepProbes{graph});
  graph.append(link, {.duration = 1us});
  EXPECT_THROW(StepProbes{graph}, Error);
}

}  // namespace
}  // namespace foretrace

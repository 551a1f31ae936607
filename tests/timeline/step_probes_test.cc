#include "foretrace/step_probes.h"

#include <gtest/gtest.h>

#include <random>

#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// Threads that launch work of several steps onto streams, with launches that cross each other,
/// tasks of no time, gaps that overlap, and now and then no launch, no device work or no steps.
Graph random_steps(std::mt19937& random) {
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  Graph graph;
  const std::uint32_t threads = 1 + below(3), streams = below(4);
  for (std::uint32_t i = 0; i < threads; ++i)
    graph.add_lane({.name = "cpu", .kind = LaneKind::host_thread});
  for (std::uint32_t i = 0; i < streams; ++i) graph.add_lane({.name = "gpu", .device = 0});
  const std::uint32_t steps = below(6);
  for (std::uint32_t i = 0; i < steps; ++i) graph.steps().push_back({"s"});
  const NameId launch = graph.names().intern("launch");
  const unsigned spread = 1 + below(8);  // Often together, or hardly ever.
  for (std::uint32_t i = 0, tasks = 2 + below(40); i < tasks; ++i) {
    const auto time = [&] { return Nanoseconds(below(spread) * below(1000)); };
    Task task{.duration = time(), .step = static_cast<std::int32_t>(below(steps + 1)) - 1};
    if (below(3) != 0 && steps > 0) task.step = static_cast<std::int32_t>(i * steps / tasks);
    if (below(5) == 0) task.gap = Nanoseconds(below(600)) - 300ns;
    task.kind = TaskKind::launch;
    const TaskId call = graph.append(LaneId{below(threads)}, task);
    if (streams == 0 || below(4) == 0) continue;
    task.duration = time();
    task.kind = below(4) == 0 ? TaskKind::copy_in : TaskKind::kernel;
    const LaneId lane{threads + below(streams)};
    const TaskId front = graph.first(lane);
    const bool first = front != kNoTask && below(10) == 0;
    const TaskId work = first ? graph.insert_before(front, task) : graph.append(lane, task);
    graph.add({.before = call,
               .after = work,
               .provenance = below(8) == 0 ? Provenance::inferred : Provenance::measured,
               .why = below(8) == 0 ? NameId{} : launch});
    if (below(12) == 0) graph.remove(below(2) == 0 ? call : work);
  }
  return graph;
}

/// By the probes alone.
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
  const NameId launch = graph.names().intern("launch");
  for (std::int32_t i = 0; i < 5000; ++i) {
    if (i % 1000 == 0) graph.steps().push_back({"s"});
    const TaskId call =
        graph.append(cpu, {.duration = 1us, .step = i / 1000, .kind = TaskKind::launch});
    const TaskId kernel = graph.append(gpu, {.duration = 2us, .step = i / 1000});
    graph.add({.before = call, .after = kernel, .provenance = Provenance::measured, .why = launch});
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

// Properties that must hold for any graph.

#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/longest_chain.h"
#include "support/random_graph.h"

namespace foretrace {
namespace {

constexpr int kRuns = 500;

template <class Check>
void for_random_graphs(unsigned seed, const RandomGraph& shape, const Check& check) {
  std::mt19937 random(seed);
  for (int run = 0; run < kRuns && !testing::Test::HasFailure(); ++run) {
    Graph graph = random_graph(random, shape);
    SCOPED_TRACE("run " + std::to_string(run) + "\n" + to_text(graph));
    check(graph, random);
  }
}

TaskId any_task(const Graph& graph, std::mt19937& random) {
  return TaskId{static_cast<std::uint32_t>(random() % graph.task_count())};
}

TEST(Simulate, AgreesWithTheLongestChain) {
  for_random_graphs(1, {}, [](const Graph& graph, std::mt19937&) {
    const Timeline timeline = simulate(graph);
    const Chains chains = longest_chains(graph);
    EXPECT_EQ(timeline.start, chains.start);
    EXPECT_EQ(timeline.finish, chains.finish);
    EXPECT_EQ(timeline.length, chains.length);
  });
}

TEST(Simulate, TheClockFindsTheSameAsThePass) {
  for_random_graphs(2, {}, [](Graph& graph, std::mt19937&) {
    const Timeline swept = simulate(graph);
    const LaneId lane = graph.add_lane({.name = "priority", .discipline = Discipline::priority});
    graph.append(lane, {});
    const Timeline clocked = simulate(graph);
    EXPECT_TRUE(std::equal(swept.start.begin(), swept.start.end(), clocked.start.begin()));
    EXPECT_EQ(swept.length, clocked.length);
  });
}

// On lanes with a clock, too, nothing starts before the tasks that it waits for; a task that waits
// for the finish of a task on such a lane does not start before that finish.
TEST(Simulate, NothingStartsBeforeWhatItWaitsFor) {
  for_random_graphs(6, {}, [](Graph& graph, std::mt19937& random) {
    const LaneId lane = graph.add_lane({.name = "priority", .discipline = Discipline::priority});
    for (int i = 0; i < 8; ++i) {
      const TaskId before = any_task(graph, random);
      const TaskId urgent = graph.append(lane, {.duration = Nanoseconds(random() % 9000)});
      graph.add({.before = before, .after = urgent, .tail = TailShare::nearest(0.2)});
      const TaskId after = graph.append(LaneId{0}, {.duration = 1us});
      graph.add({.before = urgent, .after = after, .tail = TailShare::nearest(0.7)});
    }
    const Timeline timeline = simulate(graph, {.reasons = true});
    graph.each_dependency([&](const Dependency& wait) {
      const Nanoseconds start = timeline.start[index(wait.after)];
      EXPECT_GE(start, timeline.start[index(wait.before)]);
      if (graph.lane_of(wait.before) != lane) return;
      EXPECT_GE(start, timeline.finish[index(wait.before)]) << "task " << index(wait.after);
    });
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      if (timeline.start[i] == 0ns) continue;
      EXPECT_NE(timeline.reasons[i].before, kNoTask) << "task " << i;
    }
  });
}

TEST(Simulate, AFasterTaskNeverDelaysAnother) {
  for_random_graphs(3, {}, [](Graph& graph, std::mt19937& random) {
    const Timeline before = simulate(graph);
    graph.task(any_task(graph, random)).duration = Nanoseconds(0);
    const Timeline after = simulate(graph);
    for (std::size_t i = 0; i < graph.task_count(); ++i)
      EXPECT_LE(after.finish[i], before.finish[i]) << "task " << i;
  });
}

// With tails this holds to a nanosecond for each task, which adds up.
TEST(Simulate, TwiceTheTimesTakeTwiceTheTime) {
  for_random_graphs(4, {.tails = false}, [](Graph& graph, std::mt19937&) {
    const Timeline before = simulate(graph);
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      graph.task(TaskId{i}).duration *= 2;
      graph.task(TaskId{i}).gap *= 2;
    }
    graph.change_dependencies([](Dependency& wait) { wait.lag *= 2; });
    const Timeline after = simulate(graph);
    EXPECT_EQ(after.length, before.length * 2);
    for (std::size_t i = 0; i < graph.task_count(); ++i)
      EXPECT_EQ(after.start[i], before.start[i] * 2) << "task " << i;
  });
}

TEST(Simulate, ARemovedTaskIsOneThatTakesNoTime) {
  for_random_graphs(5, {}, [](Graph& graph, std::mt19937& random) {
    Graph shrunk = graph.clone();
    for (int i = 0; i < 8; ++i) {
      const TaskId task = any_task(graph, random);
      graph.remove(task);
      shrunk.task(task).duration = shrunk.task(task).gap = Nanoseconds(0);
      shrunk.task(task).tail = {};
    }
    EXPECT_EQ(simulate(graph).start, simulate(shrunk).start);
  });
}

/// The path from the first start to the last finish, where each link is as long as the longest wait
/// between its two tasks.
Nanoseconds length_of(const Graph& graph, const std::vector<TaskId>& path) {
  Nanoseconds length = graph.task(path.back()).duration;
  for (std::size_t i = 1; i < path.size(); ++i) {
    const TaskId before = path[i - 1], after = path[i];
    const Nanoseconds duration = graph.task(before).duration;
    Nanoseconds link = Nanoseconds::min();
    if (graph.previous(after) == before) link = released_at(graph.task(after), 0ns, duration);
    graph.each_wait(after, [&](const Dependency& wait) {
      if (wait.before == before) link = std::max(link, released_at(wait, 0ns, duration));
    });
    length += link;
  }
  return length;
}

TEST(Simulate, TheCriticalPathIsALongestChain) {
  for_random_graphs(9, {.lanes = 6, .tasks = 40, .dependencies = 60},
                    [](Graph& graph, std::mt19937& random) {
                      for (int i = 0; i < 4; ++i) graph.remove(any_task(graph, random));
                      const Timeline timeline = simulate(graph, {.reasons = true});
                      const Chains chains = longest_chains(graph);
                      const std::vector<TaskId> path = critical_path(graph, timeline);
                      EXPECT_EQ(length_of(graph, path), chains.length);
                      for (const TaskId task : path)
                        EXPECT_EQ(timeline.start[index(task)], chains.start[index(task)]);
                    });
}

bool explains(const Graph& graph, const Timeline& timeline, TaskId task,
              const StartReason& reason) {
  const Nanoseconds start = timeline.start[index(reason.before)];
  const Nanoseconds finish = timeline.finish[index(reason.before)];
  const Nanoseconds at = timeline.start[index(task)];
  bool found = graph.previous(task) == reason.before && reason.lag == graph.task(task).gap &&
               released_at(graph.task(task), start, finish) == at;
  graph.each_wait(task, [&](const Dependency& wait) {
    found |= wait.before == reason.before && wait.lag == reason.lag &&
             released_at(wait, start, finish) == at;
  });
  return found;
}

TEST(Simulate, EveryReasonExplainsTheStart) {
  for_random_graphs(6, {}, [](Graph& graph, std::mt19937&) {
    const Timeline timeline = simulate(graph, {.reasons = true});
    for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
      const StartReason& reason = timeline.reasons[i];
      EXPECT_EQ(reason.before == kNoTask, timeline.start[i] == 0ns);
      if (reason.before == kNoTask) continue;
      EXPECT_TRUE(explains(graph, timeline, TaskId{i}, reason)) << "task " << i;
    }
    const std::vector<TaskId> path = critical_path(graph, timeline);
    EXPECT_EQ(timeline.finish[index(path.back())], timeline.length);
    EXPECT_EQ(timeline.start[index(path.front())], 0ns);
  });
}

TEST(Compiled, ReplaysAsSimulateDoes) {
  for_random_graphs(7, {}, [](const Graph& graph, std::mt19937&) {
    const Timeline timeline = simulate(graph);
    Compiled compiled(graph);
    EXPECT_EQ(compiled.replay(), timeline.length);
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      EXPECT_EQ(compiled.finish()[compiled.order()[i]], timeline.finish[i]) << "task " << i;
    }
  });
}

TEST(Compiled, ReplaysManySetsAsOneByOne) {
  for (const bool lags : {false, true}) {
    for_random_graphs(8, {.lags = lags}, [](const Graph& graph, std::mt19937& random) {
      Compiled compiled(graph);
      std::vector<std::vector<Nanoseconds>> sets(1 + random() % 20);
      std::vector<TaskId> probes;  // In any order, and some twice.
      for (std::size_t i = random() % 5; i > 0; --i)
        probes.push_back(TaskId{static_cast<std::uint32_t>(random() % graph.task_count())});
      Compiled::Replays expected;
      for (std::vector<Nanoseconds>& set : sets) {
        for (std::size_t i = 0; i < compiled.task_count(); ++i) set.emplace_back(random() % 10000);
        std::copy(set.begin(), set.end(), compiled.durations().begin());
        expected.lengths.push_back(compiled.replay());
        for (const TaskId probe : probes) {
          const std::uint32_t place = compiled.order()[index(probe)];
          expected.finishes.push_back(compiled.finish()[place]);
          expected.starts.push_back(compiled.finish()[place] - set[place]);
        }
      }
      const Compiled::Replays found = compiled.replay_all(
          std::vector<std::span<const Nanoseconds>>(sets.begin(), sets.end()), probes);
      EXPECT_EQ(found.lengths, expected.lengths);
      EXPECT_EQ(found.starts, expected.starts);
      EXPECT_EQ(found.finishes, expected.finishes);
    });
  }
}

}  // namespace
}  // namespace foretrace

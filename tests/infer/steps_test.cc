// Which step the work of a recording belongs to.

#include <gtest/gtest.h>

#include "infer/recording.h"

namespace foretrace {
namespace {

/// Each kernel with its step.
std::string steps_of_kernels(Recording& run) {
  const Graph graph = infer(run.trace()).graph;
  std::string seen;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const Task& task = graph.task(TaskId{i});
    if (task.kind != TaskKind::kernel) continue;
    seen += (seen.empty() ? "" : ", ") + std::string(graph.name(TaskId{i})) + ' ' +
            std::to_string(task.step);
  }
  return seen;
}

// Nothing marks the steps, so one ends where the update does, and the next begins there.
TEST(Steps, EndWithTheUpdateWhereNothingMarksThem) {
  Recording run;
  std::uint32_t id = 0;
  for (int i = 0; i < 4; ++i) {
    const int start = 100 * i;
    ++id;
    run.call(0, "launch", start + 5, 2, id).kernel(0, "forward", start + 10, 20, id);
    run.host(0, HostKind::annotation, "Optimizer.step#SGD.step", start + 60, 30);
    ++id;
    run.call(0, "launch", start + 65, 2, id).kernel(0, "update", start + 70, 10, id);
  }
  run.call(0, "launch", 395, 2, 99).kernel(0, "save", 400, 10, 99);
  EXPECT_EQ(steps_of_kernels(run),
            "forward -1, update -1, forward 0, update 0, forward 1, update 1, forward 2, update 2, "
            "save -1");
}

TEST(Steps, BeginBehindTheLongestPauseWhereWorkRepeatsItself) {
  Recording run;
  std::string expected;
  std::uint32_t id = 0;
  int time = 0;
  for (int i = 0; i < 4; ++i) {
    time += 50;
    for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
      ++id;
      run.call(0, "launch", time, 2, id).kernel(0, name, time + 4, 3, id);
      expected += (expected.empty() ? "" : ", ") + std::string(name) + ' ' + std::to_string(i);
      time += 10;
    }
  }
  EXPECT_EQ(steps_of_kernels(run), expected);
}

}  // namespace
}  // namespace foretrace

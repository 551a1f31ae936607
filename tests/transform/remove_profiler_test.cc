#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

Graph recorded(std::string_view text) {
  Graph graph = parse_graph(text);
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) graph.task(TaskId{i}).record = i;
  return graph;
}

std::vector<Nanoseconds> durations_without(Graph graph, std::string_view transform) {
  read_transform_text(transform)->apply(graph, {});
  std::vector<Nanoseconds> durations;
  for (std::uint32_t i = 0; i < graph.task_count(); ++i)
    durations.push_back(graph.task(TaskId{i}).duration);
  return durations;
}

// Each stretch of the host pays half of a record and keeps a fifth of its time; the next one pays
// the rest. Waits and the device stay.
TEST(RemoveProfiler, ShortensTheHostByWhatRecordsCost) {
  EXPECT_EQ(durations_without(recorded(R"(
    cpu:    op:host 10, tiny:host 1, L:launch 10, s:sync 20
    stream: k 20
    L -> k
    k -> s
)"),
                              "remove_profiler:per_record=4us"),
            (std::vector<Nanoseconds>{8us, 200ns, 6800ns, 20us, 20us}));
}

TEST(RemoveProfiler, BlocksCostAWholeRecordAndFramesOfPythonNone) {
  EXPECT_EQ(durations_without(recorded(R"(
    cpu: a:host 10, b = "train.py(12): step":host 10
    @alloc 2MiB: a ..
)"),
                              "remove_profiler:per_record=4us"),
            (std::vector<Nanoseconds>{4us, 10us}));
}

TEST(RemoveProfiler, WithoutNestedOpsTheCostMustBeGiven) {
  Graph graph = recorded("cpu: a:host 10");
  const auto transform = read_transform_text("remove_profiler");
  EXPECT_THROW(transform->apply(graph, {}), Error);
  graph.unexplained().per_record = 2us;
  EXPECT_EQ(durations_without(std::move(graph), "remove_profiler"),
            (std::vector<Nanoseconds>{9us}));
}

}  // namespace
}  // namespace foretrace

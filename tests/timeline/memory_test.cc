#include <gtest/gtest.h>

#include "foretrace/simulate.h"
#include "support/random_graph.h"
#include "support/tasks.h"

namespace foretrace {
namespace {

/// "device: level at tick, ...; peak", in bytes.
std::string memory_of(std::string_view text) {
  const Graph graph = parse_graph(text);
  std::string result;
  for (const MemoryCurve& curve : simulate(graph).memory) {
    result += std::to_string(curve.device) + ':';
    for (const auto& [time, allocated] : curve.points) {
      result += ' ' + std::to_string(time / 1us) + '=' + std::to_string(allocated.count);
    }
    result += " peak " + std::to_string(curve.peak.count) + " at " +
              std::to_string(curve.peak_time / 1us);
    if (curve.peak_task != kNoTask) result += " by " + std::string(graph.name(curve.peak_task));
    result += '\n';
  }
  return result;
}

TEST(MemoryCurves, FollowTheTasksThatMakeAndFree) {
  EXPECT_EQ(memory_of(R"(
    x: A 1, B 2, C 3, D 1
    @alloc 5B device=0: A .. C
    @alloc 7B device=0: B .. D
    @alloc 1B device=1: B ..
  )"),
            "0: 0=5 1=12 3=7 6=0 peak 12 at 1 by B\n1: 0=0 1=1 peak 1 at 1 by B\n");
}

TEST(MemoryCurves, AtOneInstantOldBlocksGoBeforeNewOnesCome) {
  EXPECT_EQ(memory_of(R"(
    x: A 1, B 1
    y: a 1, b 1
    @alloc 5B device=0: A .. b
    @alloc 7B device=0: B .. b
  )"),
            "0: 0=5 1=0 peak 7 at 1 by B\n");
}

TEST(MemoryCurves, BeginWithWhatWasThere) {
  EXPECT_EQ(memory_of("@memory 100B device=0\nx: A 1, B 1\n@alloc 30B device=0: .. B"),
            "0: 0=100 1=70 peak 100 at 0\n");
  EXPECT_EQ(memory_of("x: A 1, B 1\n@alloc 30B device=0: .. B"), "0: 0=30 1=0 peak 30 at 0\n");
}

TEST(MemoryCurves, AreNeverBelowNothingAndEndWhereTheyBegan) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    Graph graph = random_graph(random);
    const auto any = [&] {
      return TaskId{static_cast<std::uint32_t>(random() % graph.task_count())};
    };
    for (int i = 0; i < 20; ++i) {
      graph.allocations().push_back({.bytes = Bytes{static_cast<std::int64_t>(random() % 100)},
                                     .made_by = any(),
                                     .freed_by = any()});
    }
    const MemoryCurve curve = simulate(graph).memory.at(0);
    for (const auto& point : curve.points) {
      EXPECT_GE(point.allocated, Bytes{0});
      EXPECT_LE(point.allocated, curve.peak);
    }
    EXPECT_EQ(curve.points.back().allocated, Bytes{0});
  }
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include "allocator/mebibyte.h"
#include "foretrace/allocator.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

std::vector<AllocatorRun> runs_of(std::string_view text, const AllocatorSettings& settings = {}) {
  const Graph graph = parse_graph(text);
  return replay_allocator(graph, simulate(graph), settings);
}

/// "ticks=allocated/reserved", in MiB.
std::string curve_of(const AllocatorRun& run) {
  std::string text;
  for (const AllocatorRun::Point& point : run.curve) {
    text += (text.empty() ? "" : " ") + std::to_string(point.time / 1us) + '=' +
            to_text(static_cast<double>(point.levels.allocated) / kMiB) + '/' +
            to_text(static_cast<double>(point.levels.reserved) / kMiB);
  }
  return text;
}

TEST(AllocatorReplay, FollowsTheTimeline) {
  const auto runs = runs_of(R"(
    x: A 1, B 2, C 3, D 1
    @alloc 16MiB device=0: A .. C
    @alloc 16MiB device=0: B ..
    @alloc 6MiB device=0: D ..
    @alloc 1MiB device=1: B ..
  )");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(curve_of(runs[0]), "0=16/16 1=32/32 3=16/32 6=22/32");
  EXPECT_EQ(runs[0].peaks.allocated, 32 * kMiB);
  EXPECT_EQ(runs[0].peak_reserved_time, 1us);
  EXPECT_EQ(runs[0].driver_mallocs, 2);
  EXPECT_EQ(curve_of(runs[1]), "1=1/2");
  EXPECT_EQ(runs[1].device, 1);
}

TEST(AllocatorReplay, BeginsWithWhatWasThere) {
  const auto runs = runs_of("@memory 100MiB device=0\nx: A 1, B 1\n@alloc 30MiB device=0: .. B");
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(curve_of(runs[0]), "0=70/70 0=100/100 1=70/100");
}

TEST(AllocatorReplay, NamesTheFirstRequestThatIsRefusedAndGoesOn) {
  AllocatorSettings settings;
  settings.limit = Bytes{40 * kMiB};
  const auto runs = runs_of(R"(
    x: A 1, B 2, C 3, D 1
    @alloc 30MiB device=0: A ..
    @alloc 20MiB device=0: B .. D
    @alloc 14MiB device=0: C ..
  )",
                            settings);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_TRUE(runs[0].out_of_memory);
  EXPECT_EQ(runs[0].refused, 1u);
  EXPECT_EQ(runs[0].refused_time, 1us);
  EXPECT_EQ(runs[0].out_of_memory->requested, 20 * kMiB);
  EXPECT_EQ(runs[0].out_of_memory->levels.reserved, 30 * kMiB);
  EXPECT_EQ(curve_of(runs[0]), "0=30/30 1=50/50 3=64/64 6=44/64");
  EXPECT_EQ(runs[0].peaks.reserved, 64 * kMiB);
}

TEST(AllocatorReplay, WhatIsGivenBackToBeServedIsNotNeeded) {
  AllocatorSettings settings;
  settings.limit = Bytes{40 * kMiB};
  const auto runs = runs_of(R"(
    x: A 1, B 2, C 3
    @alloc 30MiB device=0: A .. B
    @alloc 36MiB device=0: C ..
  )",
                            settings);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_FALSE(runs[0].out_of_memory);
  EXPECT_EQ(runs[0].peaks.reserved, 36 * kMiB);
  EXPECT_EQ(runs[0].retries, 1);
}

TEST(AllocatorReplay, MoreThanTheLimitFromTheStartIsSaid) {
  AllocatorSettings settings;
  settings.limit = Bytes{40 * kMiB};
  const auto runs =
      runs_of("@memory 100MiB device=0\nx: A 1\n@alloc 1MiB device=0: A ..", settings);
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_TRUE(runs[0].out_of_memory);
  EXPECT_EQ(runs[0].refused, AllocatorRun::kWasThereBefore);
}

TEST(AllocatorReplay, AsksForWhatWasAskedForWhereThatIsKnown) {
  Graph graph = parse_graph("x: A 1\n@alloc 26MiB device=0: A ..");
  graph.allocations()[0].requested = Bytes{26528972};
  const auto runs = replay_allocator(graph, simulate(graph));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].peaks.requested, 26528972);
  EXPECT_EQ(runs[0].peaks.allocated, 26 * kMiB);
}

TEST(AllocatorReplay, ABlockThatAnotherStreamReadsIsHeldBack) {
  constexpr std::string_view kText = R"(
    cpu: L:host 1, M:host 1, N:host 1, O:host 1
    main [stream device=0]: A 1
    side [stream device=0]: R 8
    @alloc 16MiB device=0 stream=main: L .. M reads R
    @alloc 16MiB device=0 stream=main: O ..
  )";
  const Graph graph = parse_graph(kText);
  ASSERT_EQ(graph.accesses().size(), 1u);
  EXPECT_EQ(replay_allocator(graph, simulate(graph))[0].peaks.reserved, 32 * kMiB);
  Graph same_stream = parse_graph(kText);
  same_stream.accesses().clear();
  EXPECT_EQ(replay_allocator(same_stream, simulate(same_stream))[0].peaks.reserved, 16 * kMiB);
}

TEST(AllocatorReplay, HostMemoryAndEmptyBlocksAreNone) {
  EXPECT_TRUE(runs_of("x: A 1\n@alloc 0B device=0: A ..").empty());
}

}  // namespace
}  // namespace foretrace

#include "allocator/block_pool.h"

#include <gtest/gtest.h>

#include <random>

namespace foretrace {
namespace {

/// Expects that no two blocks alive at the same time overlap, that nothing lies above the
/// footprint, and that the footprint is no less than the load.
void expect_sound(const std::vector<PoolBlock>& blocks, const PoolPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), blocks.size());
  EXPECT_GE(plan.footprint, plan.peak_load);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_GE(plan.offsets[i], 0);
    if (blocks[i].made >= blocks[i].freed) continue;
    const std::int64_t end = plan.offsets[i] + blocks[i].bytes.count;
    EXPECT_LE(end, plan.footprint.count);
    for (std::size_t j = 0; j < i; ++j) {
      const bool together = blocks[i].made < blocks[j].freed && blocks[j].made < blocks[i].freed;
      if (!together || blocks[j].made >= blocks[j].freed) continue;
      const std::int64_t other = plan.offsets[j] + blocks[j].bytes.count;
      EXPECT_TRUE(end <= plan.offsets[j] || other <= plan.offsets[i]) << i << " over " << j;
    }
  }
}

TEST(BlockPool, NothingTakesNoRoom) {
  EXPECT_EQ(plan_pool({}).footprint, Bytes{});
  EXPECT_EQ(plan_pool({{Bytes{8}, 3, 3}}).footprint, Bytes{});
}

TEST(BlockPool, AChainTakesTurns) {
  // aaa
  //    bbb        each starts at the offset of the block before the last one
  //  cccc
  //     dddd
  const std::vector<PoolBlock> chain = {
      {Bytes{4}, 0, 2}, {Bytes{4}, 2, 4}, {Bytes{4}, 1, 3}, {Bytes{4}, 3, 5}};
  const PoolPlan plan = plan_pool(chain);
  expect_sound(chain, plan);
  EXPECT_EQ(plan.footprint.count, 8);
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[2], plan.offsets[3]);
}

TEST(BlockPool, NestedLifetimesStackUp) {
  std::vector<PoolBlock> nested;
  for (int i = 0; i < 20; ++i) nested.push_back({Bytes{100 - 3 * i}, i, 40 - i});
  const PoolPlan plan = plan_pool(nested);
  expect_sound(nested, plan);
  EXPECT_EQ(plan.footprint, plan.peak_load);
}

TEST(BlockPool, TakesTheSmallestGapThatHoldsIt) {
  // Long blocks with short ones between them, which leave gaps of 10 at 20 and of 8 at 39.
  const std::vector<PoolBlock> blocks = {{Bytes{20}, 0, 2}, {Bytes{10}, 0, 1}, {Bytes{9}, 0, 2},
                                         {Bytes{8}, 0, 1},  {Bytes{7}, 0, 2},  {Bytes{5}, 1, 2},
                                         {Bytes{4}, 1, 2},  {Bytes{1}, -1, 0}};
  const PoolPlan plan = plan_pool(blocks);
  expect_sound(blocks, plan);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{0, 20, 30, 39, 47, 39, 20, 0}));
}

TEST(BlockPool, WhatIsAlwaysThereStandsAtTheBottom) {
  const std::vector<PoolBlock> blocks = {{Bytes{9}, 1, 2}, {Bytes{2}, 0, 3}, {Bytes{4}, 0, 3}};
  const PoolPlan plan = plan_pool(blocks);
  expect_sound(blocks, plan);
  EXPECT_EQ(plan.offsets, (std::vector<std::int64_t>{6, 0, 2}));
}

TEST(BlockPool, KnowingTheFutureSavesWhatBestFitInOrderWastes) {
  // In order of time: 2 goes to 0, 3 on top of it, then 4 does not fit into the gap of 2 and goes
  // to 5: 9 in all.
  const std::vector<PoolBlock> blocks = {{Bytes{2}, 0, 1}, {Bytes{3}, 0, 2}, {Bytes{4}, 1, 2}};
  const PoolPlan plan = plan_pool(blocks);
  expect_sound(blocks, plan);
  EXPECT_EQ(plan.footprint.count, 7);
  EXPECT_EQ(plan.peak_load.count, 7);
}

TEST(BlockPool, IsOptimalForBlocksOfOneSize) {
  std::mt19937 random(17);
  for (int round = 0; round < 50; ++round) {
    std::vector<PoolBlock> blocks;
    for (int i = 0; i < 60; ++i) {
      const auto made = static_cast<std::int64_t>(random() % 100);
      blocks.push_back({Bytes{512}, made, made + 1 + static_cast<std::int64_t>(random() % 30)});
    }
    const PoolPlan plan = plan_pool(blocks);
    expect_sound(blocks, plan);
    EXPECT_EQ(plan.footprint, plan.peak_load);
  }
}

TEST(BlockPool, PlacesAnyBlocksWithoutOverlap) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<PoolBlock> blocks;
    Bytes all{};
    for (std::size_t i = 0, count = random() % 80; i < count; ++i) {
      const auto made = static_cast<std::int64_t>(random() % 50);
      const Bytes bytes{static_cast<std::int64_t>(random() % 1000)};
      blocks.push_back({bytes, made, made + static_cast<std::int64_t>(random() % 40)});
      all += bytes;
    }
    const PoolPlan plan = plan_pool(blocks);
    expect_sound(blocks, plan);
    EXPECT_LE(plan.footprint, all);
  }
}

TEST(BlockPool, ATrainingStepTakesLittleMoreThanItsLoad) {
  // Activations are freed in reverse order; workspaces and gradients live in between.
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::vector<PoolBlock> blocks;
    std::mt19937 random(seed);
    constexpr int kLayers = 50;
    for (int i = 0; i < kLayers; ++i) {
      const auto bytes = static_cast<std::int64_t>(1 + random() % 64) << 18;
      blocks.push_back({Bytes{bytes}, 4 * i, 8 * kLayers - 4 * i});
      blocks.push_back({Bytes{bytes / 2}, 4 * i + 1, 4 * i + 2});
      blocks.push_back({Bytes{bytes}, 8 * kLayers - 4 * i - 2, 8 * kLayers - 4 * i + 3});
    }
    const PoolPlan plan = plan_pool(blocks);
    expect_sound(blocks, plan);
    EXPECT_LE(static_cast<double>(plan.footprint.count),
              1.05 * static_cast<double>(plan.peak_load.count));
  }
}

}  // namespace
}  // namespace foretrace

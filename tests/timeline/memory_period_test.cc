#include <gtest/gtest.h>

#include <random>

#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// "+8" allocates a block, "-8" frees the youngest one of that size; one event each microsecond.
class History {
 public:
  History() { lane_ = graph_.add_lane({.name = "host", .kind = LaneKind::host_thread}); }

  History& add(std::initializer_list<int> changes) {
    for (const int change : changes) add(change);
    return *this;
  }
  void add(int change) {
    const TaskId task = graph_.append(lane_, {.duration = 1us, .kind = TaskKind::host});
    timeline_.start.push_back(timeline_.length);
    timeline_.finish.push_back(timeline_.length += 1us);
    if (change > 0) {
      graph_.allocations().push_back({.bytes = Bytes{change}, .made_by = task});
      return;
    }
    for (std::size_t i = graph_.allocations().size(); i-- > 0;) {
      Allocation& block = graph_.allocations()[i];
      if (block.bytes.count != -change || block.freed_by != kNoTask) continue;
      block.freed_by = task;
      return;
    }
  }
  std::string period() const {
    const MemoryPeriod found = memory_period(graph_, memory_events(graph_, timeline_), 0);
    return "from " + std::to_string(found.first) + ", " + std::to_string(found.length) + " x " +
           std::to_string(found.repetitions);
  }

 private:
  Graph graph_;
  Timeline timeline_;
  LaneId lane_{};
};

/// A model of `layers` equal layers, whose outputs are kept for the backward pass.
void step(History& history, int layers, int batch = 1) {
  for (int i = 0; i < layers; ++i) history.add({batch * 64, batch * 32, -batch * 32, batch * 16});
  for (int i = 0; i < layers; ++i)
    history.add({batch * 128, -batch * 16, -batch * 64, -batch * 128});
}

TEST(MemoryPeriod, IsTheStepAndNotTheLayer) {
  History history;
  history.add({1000, 2000});
  for (int i = 0; i < 4; ++i) step(history, 6);
  EXPECT_EQ(history.period(), "from 2, 24 x 4");
}

TEST(MemoryPeriod, OneStepHasNone) {
  History history;
  step(history, 40);
  EXPECT_EQ(history.period(), "from 0, 0 x 0");
}

TEST(MemoryPeriod, BeginsWhereStepsAreSteady) {
  History history;
  step(history, 6);
  history.add({512, 512, 512});  // The optimizer's states.
  for (int i = 0; i < 3; ++i) step(history, 6);
  EXPECT_EQ(history.period(), "from 27, 24 x 3");
}

TEST(MemoryPeriod, StepsOfOtherSizesHaveNone) {
  History history;
  for (int batch : {1, 2, 3, 4, 5}) step(history, 6, batch);
  EXPECT_EQ(history.period(), "from 0, 0 x 0");
}

TEST(MemoryPeriod, WhatGrowsHasNone) {
  History history;
  for (int i = 0; i < 50; ++i) history.add({8, 16, 24, 32, 40, 48, 56, 64, 72, -8});
  EXPECT_EQ(history.period(), "from 0, 0 x 0");
}

TEST(MemoryPeriod, NoiseHasNone) {
  std::mt19937 random(1);
  History history;
  for (int i = 0; i < 500; ++i) history.add({static_cast<int>(1 + random() % 1000)});
  EXPECT_EQ(history.period(), "from 0, 0 x 0");
}

}  // namespace
}  // namespace foretrace

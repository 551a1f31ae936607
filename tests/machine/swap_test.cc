#include <gtest/gtest.h>

#include <limits>

#include "foretrace/machine.h"

namespace foretrace {
namespace {

constexpr Bandwidth kOut{6.3e9}, kIn{6.4e9};

// The bound and its numbers are those of the paper: most intervals of its MLP are within 25 us.
TEST(Swap, ShortIntervalsHideNextToNothing) { EXPECT_EQ(swappable(25us, kOut, kIn).count, 79'370); }

TEST(Swap, LongIntervalsHideGigabytes) {
  EXPECT_EQ(swappable(800ms, kOut, kIn).count, 2'539'842'519);
}

TEST(Swap, TheSlowerWayDecides) {
  EXPECT_EQ(swappable(1ms, Bandwidth{16e9}, Bandwidth{16e9}).count, 8'000'000);
  EXPECT_EQ(swappable(1ms, Bandwidth{1e9}, Bandwidth{1e15}).count, 999'999);
}

TEST(Swap, WhatIsMovedInTheIntervalIsBackInTime) {
  for (const auto interval : std::initializer_list<Nanoseconds>{1ns, 17ns, 999ns, 25us, 3ms, 40s}) {
    SCOPED_TRACE(interval.count());
    const Bytes most = swappable(interval, kOut, kIn);
    EXPECT_LE(time_for(most, kOut) + time_for(most, kIn), interval + 1ns);  // Both are rounded.
    const Bytes more{most.count + 10};
    EXPECT_GE(time_for(more, kOut) + time_for(more, kIn), interval);
  }
}

TEST(Swap, NothingMovesInNoTimeOrOverNoLink) {
  EXPECT_EQ(swappable(0ns, kOut, kIn).count, 0);
  EXPECT_EQ(swappable(-5us, kOut, kIn).count, 0);
  EXPECT_EQ(swappable(1s, Bandwidth{}, kIn).count, 0);
  EXPECT_EQ(swappable(1s, kOut, Bandwidth{}).count, 0);
}

TEST(Swap, NoIntervalIsTooLong) {
  EXPECT_EQ(swappable(Nanoseconds::max(), Bandwidth{1e15}, Bandwidth{1e15}).count,
            std::numeric_limits<std::int64_t>::max());
}

}  // namespace
}  // namespace foretrace

// Kernels of one name and shape, compared with their times in the baseline.

#include <gtest/gtest.h>

#include "question/check/job/kernels.h"

namespace foretrace {
namespace {

/// A kernel that takes `each` in every step, within a relative `noise`.
KernelTimes kernel(const std::string& key, Nanoseconds each, double noise = 0.003) {
  KernelTimes one{.name = key, .key = key, .count = 10, .each = each};
  one.least = scaled(each, 1 - noise), one.most = scaled(each, 1 + noise);
  one.of_steps = {one.least.count(), each.count(), one.most.count()};
  return one;
}

/// Twenty kernels of 100.007 us and less, in steps of 2 us, all times `factor`.
std::vector<KernelTimes> many(double factor = 1) {
  std::vector<KernelTimes> all;
  for (int i = 0; i < 20; ++i)
    all.push_back(kernel("kernel" + std::to_string(i), scaled(100'007ns - i * 2us, factor)));
  return all;
}

std::vector<KernelTimes> with(std::vector<KernelTimes> all, std::size_t i, KernelTimes other) {
  all[i] = std::move(other);
  return all;
}

TEST(CheckKernels, OneThatTakesLongerIsFoundAmongMany) {
  const auto found = slower_kernels(many(), with(many(), 3, kernel("kernel3", 108'108ns)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].before, 3u);
  EXPECT_NEAR(found[0].ratio, 1.15, 0.001);
  EXPECT_NEAR(static_cast<double>(found[0].added.count()), 141'010, 100);
}

TEST(CheckKernels, WhatAllBecameSlowerByIsThePaceAndNoKernels) {
  EXPECT_TRUE(slower_kernels(many(), many(1.03)).empty());
  const std::vector<std::int64_t> pace = kernel_pace(many(), many(1.03));
  ASSERT_EQ(pace.size(), 3u);
  EXPECT_NEAR(static_cast<double>(pace[1]), 1'030'000, 50);
  const auto found = slower_kernels(many(), with(many(1.03), 3, kernel("kernel3", 111'400ns)));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].ratio, 1.15, 0.002);
}

TEST(CheckKernels, AKernelThatVariesByAsMuchIsNotFound) {
  const auto noisy = with(many(), 3, kernel("kernel3", 94'007ns, 0.1));
  EXPECT_TRUE(slower_kernels(noisy, with(many(), 3, kernel("kernel3", 108'108ns))).empty());
}

TEST(CheckKernels, WhatRecordingsDifferByIsNotFound) {
  auto before = many();
  before[3].runs = {90'007, 95'000, 101'000};
  EXPECT_TRUE(slower_kernels(before, with(many(), 3, kernel("kernel3", 108'108ns))).empty());
  before[3].runs = {94'007, 94'107, 94'050};
  EXPECT_EQ(slower_kernels(before, with(many(), 3, kernel("kernel3", 108'108ns))).size(), 1u);
}

TEST(CheckKernels, WhatIsNoPartOfAStepIsNotFound) {
  const auto before = with(many(), 3, kernel("kernel3", 300ns));
  EXPECT_TRUE(slower_kernels(before, with(many(), 3, kernel("kernel3", 400ns))).empty());
}

// Shapes of one kernel name, each of which adds less than a thousandth of the work.
TEST(CheckKernels, SmallShapesOfOneNameCountTogether) {
  const auto of_one_name = [](std::size_t shapes, Nanoseconds each) {
    auto all = many();
    for (std::size_t i = 0; i < shapes; ++i) {
      all.push_back(kernel("small" + std::to_string(i), each));
      all.back().name = "small";
    }
    return all;
  };
  EXPECT_TRUE(slower_kernels(of_one_name(1, 4us), of_one_name(1, 4'800ns)).empty());
  EXPECT_EQ(slower_kernels(of_one_name(4, 4us), of_one_name(4, 4'800ns)).size(), 4u);
}

// A clock that reads in whole microseconds is off by up to one.
TEST(CheckKernels, ACoarseClockExplainsAStepOfOneTick) {
  std::vector<KernelTimes> before, now;
  for (int i = 0; i < 20; ++i) {
    before.push_back(kernel("kernel" + std::to_string(i), 12us, 0));
    before.back().count = 1;
  }
  // Steps differ, so that no other noise is assumed.
  before[7].least = 11us;
  now = before;
  now[4].each = now[4].least = now[4].most = 13us;
  EXPECT_TRUE(slower_kernels(before, now).empty());
  now[4].each = now[4].least = now[4].most = 18us;
  EXPECT_EQ(slower_kernels(before, now).size(), 1u);
}

TEST(CheckKernels, OthersOfTheSameNameAreApart) {
  auto before = many();
  before[3].key = "kernel3 of another shape";
  EXPECT_TRUE(slower_kernels(before, with(many(), 3, kernel("kernel3", 200'000ns))).empty());
  EXPECT_NEAR(compared_share(before, many()), 0.942, 0.001);
  EXPECT_EQ(compared_share(many(), {}), 0);
}

}  // namespace
}  // namespace foretrace

#include "studies/size/algorithms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace foretrace {
namespace {

TEST(SizeLemmas, GpusAreAsFastAsPrinted) {
  EXPECT_NEAR(speedup_of(.1, 4), 3.143, 5e-4);  // Z-1.
  EXPECT_NEAR(speedup_of(.1, 4) / 4, .7857, 5e-5);
  EXPECT_DOUBLE_EQ(speedup_of(.125, 4), 3);  // Z-2: S = 3 with G = 4 needs R <= 0.125.
  EXPECT_DOUBLE_EQ(overhead_allowed(.75, 4), .125);
  EXPECT_DOUBLE_EQ(*gpus_for_speedup(.125, 3), 4);
  EXPECT_DOUBLE_EQ(gpus_for_efficiency(.125, .75), 4);
}

TEST(SizeLemmas, LimitsAreSaid) {
  EXPECT_TRUE(gpus_for_speedup(.1, 10.99));
  EXPECT_FALSE(gpus_for_speedup(.1, 11.01));
  EXPECT_DOUBLE_EQ(*gpus_for_speedup(0, 64), 64);
  EXPECT_TRUE(std::isinf(gpus_for_efficiency(0, .9)));
  EXPECT_TRUE(std::isinf(overhead_allowed(.5, 2)));
}

TEST(SizeLemmas, ServersHideTheTrafficOfAlexNet) {  // Z-3.
  const double servers = servers_for(Bytes{244'000'000}, 8, {1.25e9}, 1s);
  EXPECT_NEAR(servers, 3.12, .005);
  EXPECT_EQ(std::ceil(servers), 4);
}

std::vector<LayerChoices> two_layers() {
  return {{"one", {{"slow", 5ms, Bytes{1'000'000}}, {"fast", 3ms, Bytes{4'000'000}}}},
          {"two", {{"slow", 6ms, Bytes{1'000'000}}, {"fast", 2ms, Bytes{6'000'000}}}}};
}

TEST(ChooseAlgorithms, AnswersAsPrinted) {  // Z-4.
  const std::pair<std::int64_t, Nanoseconds> cases[] = {{2, 11ms}, {5, 9ms}, {7, 7ms}, {10, 5ms}};
  for (const auto& [bound, time] : cases) {
    const auto chosen = choose_algorithms(two_layers(), Bytes{bound * 1'000'000});
    EXPECT_EQ(chosen->time, time) << bound;
    EXPECT_EQ(choose_algorithms_by_milp(two_layers(), Bytes{bound * 1'000'000})->time, time);
  }
  EXPECT_EQ(choose_algorithms(two_layers(), Bytes{5'000'000})->chosen,
            (std::vector<std::size_t>{1, 0}));
  EXPECT_FALSE(choose_algorithms(two_layers(), Bytes{1'999'999}));
  EXPECT_FALSE(choose_algorithms_by_milp(two_layers(), Bytes{1'999'999}));
}

TEST(ChooseAlgorithms, BothSolversAgree) {
  std::mt19937 random(4);
  for (int run = 0; run < 60; ++run) {
    SCOPED_TRACE(run);
    std::vector<LayerChoices> layers(1 + random() % 8);
    std::int64_t most = 0;
    for (LayerChoices& layer : layers) {
      layer.algorithms.resize(1 + random() % 4);
      for (LayerAlgorithm& one : layer.algorithms) {
        one.time = Nanoseconds(1'000'000 + random() % 50'000'000);
        one.memory = Bytes{static_cast<std::int64_t>(random() % 2'000'000'000)};
        most += one.memory.count / 3;
      }
    }
    const Bytes bound{most};
    const auto exact = choose_algorithms(layers, bound);
    const auto milp = choose_algorithms_by_milp(layers, bound);
    ASSERT_EQ(exact.has_value(), milp.has_value());
    if (!exact) continue;
    EXPECT_EQ(exact->time, milp->time);
    EXPECT_LE(exact->memory, bound);
    EXPECT_LE(milp->memory, bound);
  }
}

}  // namespace
}  // namespace foretrace

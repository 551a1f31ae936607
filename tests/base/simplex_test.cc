#include "base/numbers/simplex.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foretrace {
namespace {

double bowl(const std::vector<double>& at) {
  return 1 + std::pow(at[0] - 1, 2) + 4 * std::pow(at[1] + 2, 2);
}

TEST(Simplex, FindsTheLowestPointOfABowl) {
  const std::vector<double> found = minimize(bowl, {5, 5}, {.steps = 400});
  EXPECT_NEAR(found[0], 1, 1e-6);
  EXPECT_NEAR(found[1], -2, 1e-6);
}

TEST(Simplex, EndsWhereItsCornersAreAsLow) {
  int asked = 0;
  const auto counted = [&](const std::vector<double>& at) {
    ++asked;
    return bowl(at);
  };
  minimize(counted, {5, 5}, {.tolerance = 1e-3});
  EXPECT_LT(asked, 100);
}

}  // namespace
}  // namespace foretrace

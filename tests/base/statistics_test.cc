#include "base/statistics.h"

#include <gtest/gtest.h>

#include <limits>

#include "foretrace/units.h"

namespace foretrace {
namespace {

using Values = std::vector<std::int64_t>;

TEST(Statistics, MedianOfAnEvenNumberIsBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(median(Values{9, 1, 2}), 2);
  EXPECT_EQ(median(Values{9, 4, 1, 2}), 3);
  EXPECT_EQ(median(Values{-5, -2}), -4);
  EXPECT_EQ(median(std::vector<double>{4, 1}), 2.5);
  EXPECT_EQ(median(std::vector<Nanoseconds>{10us, 4us, 1us, 5us}), 4500ns);
  EXPECT_EQ(median(Values{}), 0);
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(median(Values{kMax, kMax - 2}), kMax - 1);
}

TEST(Statistics, LowerMedianIsOneOfTheValues) {
  EXPECT_EQ(lower_median(Values{9, 1, 2}), 2);
  EXPECT_EQ(lower_median(Values{9, 4, 1, 2}), 2);
  EXPECT_EQ(lower_median(Values{7}), 7);
  EXPECT_EQ(lower_median(Values{}), 0);
}

TEST(Statistics, QuantilesAreValues) {
  Values values = {5, 3, 1, 2, 4, 6, 8, 7};
  EXPECT_EQ(lower_quantile(values, 0), 1);
  EXPECT_EQ(lower_quantile(values, 50), 4);
  EXPECT_EQ(lower_quantile(values, 95), 7);
  EXPECT_EQ(lower_quantile(values, 100), 8);
  EXPECT_EQ(upper_quantile(values, 0), 1);
  EXPECT_EQ(upper_quantile(values, 50), 5);
  EXPECT_EQ(upper_quantile(values, 95), 8);
  EXPECT_EQ(upper_quantile(values, 100), 8);
  EXPECT_EQ(lower_quartile(values), 3);
}

TEST(Statistics, InterpolatedQuantileIsBetweenValues) {
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2, 4}, 0.5), 2);
  EXPECT_DOUBLE_EQ(interpolated_quantile({1, 2, 4}, 0.75), 3);
  EXPECT_DOUBLE_EQ(interpolated_quantile({3}, 0.1), 3);
}

TEST(Statistics, WeightedMedianHasHalfOfTheWeightAtOrBelowIt) {
  using Weighted = std::vector<std::pair<double, double>>;
  EXPECT_EQ(weighted_median(Weighted{{3, 1}, {1, 1}, {2, 1}}), 2);
  EXPECT_EQ(weighted_median(Weighted{{3, 10}, {1, 1}, {2, 1}}), 3);
  EXPECT_EQ(weighted_median(std::vector<std::pair<double, Nanoseconds>>{{2, 5us}, {1, 5us}}), 1);
}

TEST(Statistics, OutliersDoNotMoveTheInterquartileMean) {
  EXPECT_EQ(interquartile_mean(Values{1, 10, 14, 900}), 12);
  EXPECT_EQ(interquartile_mean(std::vector<Nanoseconds>{4us, 2us}), 3us);
}

TEST(Statistics, TheExpectedGreatestOfNormalNumbersIsThatOfTables) {
  // H. L. Harter, Expected Values of Normal Order Statistics, Biometrika 48 (1961).
  EXPECT_EQ(expected_greatest(1), 0);
  EXPECT_NEAR(expected_greatest(2), 0.5642, 0.03);
  EXPECT_NEAR(expected_greatest(8), 1.4236, 0.015);
  EXPECT_NEAR(expected_greatest(100), 2.5076, 0.01);
}

}  // namespace
}  // namespace foretrace

#include "document/page/line_plot.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "foretrace/units.h"

namespace foretrace {
namespace {

std::string drawn(std::vector<std::pair<double, double>> points) {
  const auto label = [](double value) { return to_text(value); };
  return line_plot({{.name = "ring", .points = std::move(points)}},
                   {.x_step = 2, .x_label = label, .y_label = label, .described = "a plot"});
}

TEST(LinePlot, LeavesOutPointsThatHaveNoPlaceOnLogarithmicAxes) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  const std::string two = drawn({{1, 10}, {2, 20}});
  EXPECT_NE(two.find("polyline"), std::string::npos);
  EXPECT_EQ(drawn({{1, 10}, {2, 20}, {4, 0}, {8, kInfinite}, {16, kNothing}, {32, -1}}), two);
  EXPECT_EQ(drawn({{0, 10}, {1, 10}, {2, 20}, {kInfinite, 1}}), two);
  EXPECT_EQ(drawn({{1, 0}}), "");
}

}  // namespace
}  // namespace foretrace

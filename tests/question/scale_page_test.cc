// The picture of `scale`: efficiency over GPUs with its interval, and the recorded point.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/answer/scale.h"
#include "support/page.h"

namespace foretrace {
namespace {

ScalePoint point(std::int64_t gpus, double efficiency, Nanoseconds step, Nanoseconds lower,
                 Nanoseconds upper) {
  ScalePoint made;
  made.scheme = "data_parallel", made.gpus = gpus;
  made.step_time = step, made.lower = lower, made.upper = upper;
  made.throughput = efficiency * static_cast<double>(gpus), made.efficiency = efficiency;
  return made;
}

TEST(ScalePage, DrawsEfficiencyFromZeroToOneWithItsInterval) {
  ScaleReport report;
  report.recorded = 100ms;
  report.points = {point(1, 1, 100ms, 100ms, 100ms), point(4, .8, 125ms, 100ms, 250ms)};
  const std::string page = html_of(report);
  // 80 % is a fifth from the top; half as much where a step takes twice as long.
  EXPECT_NE(page.find("<polyline style=\"--series: var(--series-0)\" points=\"0.0,0.0 "
                      "1000.0,200.0 \"><title>data_parallel"),
            page.npos);
  EXPECT_NE(page.find("points=\"0.0,0.0 1000.0,0.0 1000.0,600.0 0.0,0.0 \""), page.npos);
  EXPECT_NE(page.find("<title>recorded: 100 ms a step</title>"), page.npos);
  EXPECT_NE(page.find(">100 %</text>"), page.npos);
  EXPECT_NE(page.find(">0 %</text>"), page.npos);
}

TEST(ScalePage, ARefusedCountIsNotDrawn) {
  ScaleReport report;
  report.recorded = 100ms;
  report.points = {point(1, 1, 100ms, 100ms, 100ms), point(2, .5, 200ms, 200ms, 200ms)};
  const std::string before = html_of(report);
  report.points.push_back(point(4, 1, 0ms, 0ms, 0ms));
  report.points.back().refused = "too many";
  const std::string after = html_of(report);
  const std::string line = "points=\"0.0,0.0 1000.0,500.0 \"";
  EXPECT_NE(before.find(line), before.npos);
  EXPECT_NE(after.find(line), after.npos);
}

}  // namespace
}  // namespace foretrace

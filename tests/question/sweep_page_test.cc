// The page of a sweep: two settings make a map of step times.

#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "foretrace/answer/sweep.h"
#include "support/page.h"

namespace foretrace {
namespace {

SweepPoint point_of(std::uint64_t number, std::vector<std::string> values, Nanoseconds time,
                    const char* verdict) {
  SweepPoint point;
  point.number = number, point.values = std::move(values), point.step_time = time;
  point.verdicts = {verdict};
  return point;
}

/// Settings in an order that is not that of their values.
SweepReport sweep_of() {
  SweepReport report;
  report.header.settings = {"loader.workers", "scale.factor"};
  report.header.asserts = {"step_time <= 25ms"};
  report.points = {
      point_of(0, {"16", "1"}, 40ms, "fails"), point_of(1, {"16", "0.5"}, 20ms, "holds"),
      point_of(2, {"2", "1"}, 60ms, "fails"), point_of(3, {"2", "0.5"}, 30ms, "fails")};
  report.header.points = report.points.size();
  return report;
}

std::string page_of(const SweepReport& report) {
  std::ostringstream out;
  write_sweep_page(report, out);
  return out.str();
}

TEST(SweepPage, TwoSettingsMakeAMapInOrderOfTheirValues) {
  const std::string page = page_of(sweep_of());
  // 20 to 60 ms: 30 ms are a quarter of the way, 40 ms half.
  EXPECT_NE(page.find("<th scope=\"row\" class=\"left\">2</th><td class=\"heat fails edge-below\" "
                      "style=\"--heat: 25.0%\""),
            page.npos);
  EXPECT_NE(page.find("<th scope=\"row\" class=\"left\">16</th><td class=\"heat best edge-right\" "
                      "style=\"--heat: 0.0%\""),
            page.npos);
  EXPECT_NE(page.find("20 ms to 60 ms"), page.npos);
  EXPECT_NE(page.find("fail step_time &lt;= 25ms"), page.npos);
}

TEST(SweepPage, OneOrThreeSettingsMakeNone) {
  SweepReport report = sweep_of();
  report.header.settings.emplace_back("amp.share");
  for (SweepPoint& point : report.points) point.values.emplace_back("1");
  EXPECT_EQ(page_of(report).find("class=\"heat"), std::string::npos);
  report.header.settings.resize(1);
  for (SweepPoint& point : report.points) point.values.resize(1);
  EXPECT_EQ(page_of(report).find("class=\"heat"), std::string::npos);
}

TEST(SweepPage, ARefusedAnswerIsACellOfItsOwn) {
  SweepReport report = sweep_of();
  report.points[2].refused = "no such <kernel>", report.points[2].verdicts.clear();
  const std::string page = page_of(report);
  EXPECT_NE(page.find("title=\"no such &lt;kernel&gt;\">refused"), page.npos);
  // 20 to 40 ms remain.
  EXPECT_NE(page.find("--heat: 50.0%"), page.npos);
}

Curve curve_of(std::vector<std::string> values) {
  Curve curve;
  curve.header.settings = {"loader.workers"}, curve.header.asserts = {"step_time <= 60ms"};
  curve.header.baseline_step_time = 100ms;
  const Nanoseconds times[] = {100ms, 50ms};
  for (std::size_t i = 0; i < values.size(); ++i) {
    curve.points.push_back(point_of(i, {values[i]}, times[i], i == 0 ? "fails" : "holds"));
    curve.points.back().lower = times[i] / 2, curve.points.back().upper = times[i];
  }
  return curve;
}

TEST(CurvePage, OneSettingIsALineWithItsInterval) {
  Curve curve = curve_of({"0", "4"});
  curve.answer = 1;
  const std::string page = html_of(curve);
  // From 100 ms to half of it, and the interval from half to the whole.
  EXPECT_NE(page.find("points=\"0.0,0.0 1000.0,500.0 \""), page.npos);
  EXPECT_NE(page.find("points=\"0.0,0.0 1000.0,500.0 1000.0,750.0 0.0,500.0 \""), page.npos);
  // The answer has its value as a name; what fails has another colour.
  EXPECT_NE(page.find(">4</text>"), page.npos);
  EXPECT_NE(page.find("<circle style=\"--series: var(--series-3)\" cx=\"0.00%\""), page.npos);
  EXPECT_NE(page.find("<circle style=\"--series: var(--series-0)\" cx=\"100.00%\""), page.npos);
}

TEST(CurvePage, ValuesThatAreNoNumbersStayATable) {
  EXPECT_EQ(html_of(curve_of({"\"ring\"", "\"tree\""})).find("class=\"plot"), std::string::npos);
  EXPECT_EQ(html_of(curve_of({"2"})).find("class=\"plot"), std::string::npos);
}

}  // namespace
}  // namespace foretrace

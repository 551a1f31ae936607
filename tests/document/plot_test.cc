#include "document/page/plot.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <string>

#include "document/page/page_charts.h"
#include "foretrace/units.h"

namespace foretrace {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::string number(double value) { return "<" + to_fixed(value, 2) + ">"; }

Plot plot_of(std::vector<std::pair<double, double>> points) {
  return {.x = {.label = number, .step = 2},
          .y = {.label = number},
          .described = "a plot",
          .lines = {{.name = "ring", .points = std::move(points)}}};
}

/// Whether there is a label of this value at this place.
bool has_label(const std::string& html, const std::string& place, double value) {
  const std::string text = ">&lt;" + to_fixed(value, 2) + "&gt;</text>";
  for (std::size_t at = html.find(text); at != html.npos; at = html.find(text, at + 1)) {
    const std::size_t begin = html.rfind("<text", at);
    if (html.substr(begin, at - begin).find(place) != html.npos) return true;
  }
  return false;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Plot, LeavesOutPointsThatHaveNoPlaceOnLogarithmicAxes) {
  const std::string two = html_plot(plot_of({{1, 10}, {2, 20}}));
  EXPECT_NE(two.find("polyline"), std::string::npos);
  EXPECT_EQ(
      html_plot(plot_of({{1, 10}, {2, 20}, {4, 0}, {8, kInfinite}, {16, kNothing}, {32, -1}})),
      two);
  EXPECT_EQ(html_plot(plot_of({{0, 10}, {1, 10}, {2, 20}, {kInfinite, 1}})), two);
  EXPECT_EQ(html_plot(plot_of({{1, 0}})), "");
}

TEST(Plot, ALinearAxisShowsZeroAndWhatItHasToShow) {
  Plot plot = plot_of({{1, 0}, {4, 0.5}});
  plot.y.is_linear = true, plot.y.to = 1;
  const std::string html = html_plot(plot);
  // 1 and 4 are the ends across; 0 is at the bottom, and 0.5 in the middle.
  EXPECT_NE(html.find("points=\"0.0,1000.0 1000.0,500.0 \""), std::string::npos) << html;
  EXPECT_TRUE(has_label(html, "y=\"0.00%\"", 1));
  EXPECT_TRUE(has_label(html, "y=\"100.00%\"", 0));
  EXPECT_TRUE(has_label(html, "x=\"50.00%\"", 2));  // Half-way from 1 to 4 in factors.
}

TEST(Plot, LabelsOfALinearAxisAreShort) {
  Plot plot = plot_of({{0, 1}, {1, 2}});
  plot.x.is_linear = true, plot.x.label = [](double value) { return to_text(value); };
  const std::string html = html_plot(plot);
  for (const char* label : {">0</text>", ">0.2</text>", ">0.6</text>", ">1</text>"})
    EXPECT_NE(html.find(label), html.npos) << label;
}

TEST(Plot, LabelsOfALogarithmicAxisAreRoundAndInsideIt) {
  const std::string html = html_plot(plot_of({{1, 30}, {2, 700}}));
  for (const double shown : {50, 100, 200, 500}) EXPECT_TRUE(has_label(html, "dx=\"-8\"", shown));
  for (const double outside : {10, 20, 1000}) EXPECT_FALSE(has_label(html, "", outside));
}

TEST(Plot, ManyFactorsAreLabelledByTheirPowers) {
  // 40 doublings have room for each fourth label.
  const std::string html = html_plot(plot_of({{1, 1}, {0x1p40, 2}}));
  EXPECT_TRUE(has_label(html, "y=\"100%\"", 16));
  EXPECT_FALSE(has_label(html, "y=\"100%\"", 2));
}

TEST(Plot, ABandGoesAlongItsUpperEndAndBackAlongTheLower) {
  Plot plot = plot_of({{1, 5}, {2, 5}});
  plot.lines[0].band = {{1, 0, 10}, {2, 2.5, 7.5}};
  plot.y.is_linear = true;
  EXPECT_NE(html_plot(plot).find("points=\"0.0,0.0 1000.0,250.0 1000.0,750.0 0.0,1000.0 \""),
            std::string::npos);
  plot.lines[0].band.push_back({4, kNothing, 1});
  EXPECT_EQ(html_plot(plot).find("nan"), std::string::npos);
}

TEST(Plot, NamesOfDotsDoNotCoverEachOther) {
  Plot plot = plot_of({{1, 10}, {100, 20}});
  plot.dots = {{.x = 10, .y = 15, .name = "first"},
               {.x = 10, .y = 15, .name = "covered", .tooltip = "all of it"},
               {.x = 1, .y = 10, .name = "elsewhere"}};
  const std::string html = html_plot(plot);
  EXPECT_EQ(count_of(html, ">first</text>"), 1u);
  EXPECT_EQ(count_of(html, ">covered</text>"), 0u);
  EXPECT_EQ(count_of(html, ">elsewhere</text>"), 1u);
  EXPECT_EQ(count_of(html, "<circle"), 3u);
  EXPECT_EQ(count_of(html, "<title>all of it</title>"), 1u);
}

TEST(Plot, NamesStandWhereTheLineLeavesRoom) {
  // Above a rising line, there is room to the left, except at its beginning.
  Plot plot = plot_of({{1, 10}, {100, 20}});
  plot.dots = {{.x = 1, .y = 10, .name = "begin"}, {.x = 100, .y = 20, .name = "the end"}};
  std::string html = html_plot(plot);
  EXPECT_NE(html.find("dy=\"16\" text-anchor=\"start\">begin"), html.npos) << html;
  EXPECT_NE(html.find("dy=\"-7\" text-anchor=\"end\">the end"), html.npos);
  // Above a falling one, to the right, except at its end.
  plot.lines[0].points = {{1, 20}, {100, 10}};
  plot.dots[0].y = 20, plot.dots[1].y = 10;
  html = html_plot(plot);
  EXPECT_NE(html.find("dy=\"-7\" text-anchor=\"start\">begin"), html.npos) << html;
  EXPECT_NE(html.find("dy=\"16\" text-anchor=\"end\">the end"), html.npos);
}

TEST(Plot, NamesAreHarmless) {
  Plot plot = plot_of({{1, 10}, {2, 20}});
  plot.lines[0].name = "<script>", plot.described = "\"><b>";
  plot.dots = {{.x = 1, .y = 10, .name = "<i>"}};
  const std::string html = html_plot(plot);
  for (const char* tag : {"<script", "<b>", "<i>"}) EXPECT_EQ(html.find(tag), html.npos) << tag;
}

TEST(Plot, ALegendNamesEachLine) {
  Plot plot = plot_of({{1, 10}, {2, 20}});
  plot.lines.push_back({.name = "tree", .colour = 1, .is_dashed = true, .points = {{1, 5}}});
  plot.lines.push_back({.name = "nothing", .colour = 2});
  const std::string html = html_plot(plot);
  EXPECT_NE(html.find("<span style=\"--c: var(--series-0)\">ring</span>"), html.npos);
  EXPECT_NE(html.find("<span class=\"dashed\" style=\"--c: var(--series-1)\">tree</span>"),
            html.npos);
  EXPECT_EQ(html.find("nothing"), html.npos);
}

TEST(Bars, AnAxisHasRoundTimesWithinThePicture) {
  const auto axis_of = [](Nanoseconds length, double room) {
    const std::string html = html_bars("", {}, {.length = length, .room = room});
    std::string labels;
    for (std::size_t at = 0; (at = html.find("<text x=\"", at)) != html.npos;) {
      at += 9;
      const std::size_t end = html.find('"', at), text = html.find('>', at) + 1;
      labels +=
          html.substr(at, end - at) + ' ' + html.substr(text, html.find('<', text) - text) + '|';
    }
    return labels;
  };
  EXPECT_EQ(axis_of(27ms, 1), "0.000% 0 ns|37.037% 10 ms|74.074% 20 ms|");
  EXPECT_EQ(axis_of(10us, 0.5), "0.000% 0 ns|10.000% 2 us|20.000% 4 us|30.000% 6 us|40.000% 8 us|");
  EXPECT_EQ(axis_of(1ns, 1), "0.000% 0 ns|");
  EXPECT_EQ(axis_of(0ns, 1), "");
}

}  // namespace
}  // namespace foretrace

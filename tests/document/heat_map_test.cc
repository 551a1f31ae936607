#include "document/page/heat_map.h"

#include <gtest/gtest.h>

#include <string>

namespace foretrace {
namespace {

HeatMap map_of(std::vector<std::vector<HeatCell>> cells) {
  HeatMap map;
  map.described = "times", map.down = "batch", map.across = "<gpus>";
  map.rows = {"8", "16"}, map.columns = {"1", "2"};
  map.cells = std::move(cells);
  return map;
}

TEST(HeatMap, ALinePartsTheCellsThatHold) {
  // The first row holds on the left alone, the second not at all.
  const std::string html =
      html_heat_map(map_of({{{.text = "a"}, {.text = "b", .holds = false}},
                            {{.text = "c", .holds = false}, {.text = "d", .holds = false}}}));
  EXPECT_NE(html.find("<td class=\"heat edge-right edge-below\" style=\"--heat: 0.0%\" "
                      "title=\"\">a</td>"),
            html.npos)
      << html;
  EXPECT_NE(html.find("<td class=\"heat fails\" style=\"--heat: 0.0%\" title=\"\">b</td>"),
            html.npos);
  EXPECT_NE(html.find("<td class=\"heat fails\" style=\"--heat: 0.0%\" title=\"\">d</td>"),
            html.npos);
}

TEST(HeatMap, CellsSayWhatTheirColourShows) {
  const std::string html =
      html_heat_map(map_of({{{.text = "1 s", .tooltip = "<b>", .share = .5, .is_best = true}, {}},
                            {{}, {.text = "2 s", .share = 7}}}));
  EXPECT_NE(
      html.find("<td class=\"heat best\" style=\"--heat: 50.0%\" title=\"&lt;b&gt;\">1 s<span "
                "class=\"said\">, &lt;b&gt;</span></td><td></td>"),
      html.npos)
      << html;
  EXPECT_NE(html.find("--heat: 100.0%"), html.npos);
  EXPECT_NE(html.find("colspan=\"2\">&lt;gpus&gt;</th>"), html.npos);
  EXPECT_NE(html.find("<th scope=\"row\" class=\"left\">16</th>"), html.npos);
}

TEST(HeatMap, AnUnknownCellHasNoLine) {
  const std::string html = html_heat_map(map_of({{{.text = "a"}, {.holds = false}}, {{}, {}}}));
  EXPECT_EQ(html.find("edge"), html.npos);
}

}  // namespace
}  // namespace foretrace

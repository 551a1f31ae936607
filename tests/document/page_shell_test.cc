#include "document/page/page_shell.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/sha256.h"
#include "document/page/packed_numbers.h"
#include "document/page/page_charts.h"

namespace foretrace {
namespace {

TEST(PageShell, TextIsNeverATag) {
  EXPECT_EQ(html_text("</script><b title='x'>&\""),
            "&lt;/script&gt;&lt;b title='x'&gt;&amp;&quot;");
}

TEST(PageShell, BytesThatAreNoTextAreShownAsSuch) {
  EXPECT_EQ(html_text("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(html_text(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(html_text("\u202etxt"), "\\u202etxt");
  EXPECT_EQ(html_text("caf\xc3\xa9\n"), "caf\xc3\xa9\n");
}

TEST(PageShell, DataCannotEndItsScript) {
  const nlohmann::json value = {{"</script>", "<!--<script>"}};
  const std::string text = script_json(value);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(text), value);
}

TEST(PageShell, ATableSaysWhichCellsAreHeadings) {
  EXPECT_EQ(html_table("A & B", {.heading = {"x", "y"}, .rows = {{"1", "###"}}}),
            "<div class=\"table\" role=\"group\" tabindex=\"0\" aria-label=\"A &amp; B\"><table "
            "aria-label=\"A &amp; B\"><thead><tr>"
            "<th scope=\"col\" class=\"left\">x</th><th scope=\"col\">y</th></tr></thead><tbody>\n"
            "<tr><td class=\"left\">1</td><td><span class=\"bar\" style=\"width: 3ch\" "
            "aria-hidden=\"true\"></span></td></tr>\n"
            "</tbody></table></div>\n");
}

TEST(PageShell, OnlyScriptsOfThePageMayRun) {
  const Page page{.title = "t",
                  .heading = "h",
                  .lead = {},
                  .sections = {},
                  .styles = {},
                  .data = {{"data", "{}"}},
                  .scripts = {"page/memory.js"},
                  .has_charts = true};
  std::ostringstream out;
  write_page(page, out);
  const std::string text = out.str();
  const std::string policy = text.substr(0, text.find("</title>"));
  constexpr std::string_view kBegin = "<script>";
  std::size_t scripts = 0;
  for (std::size_t at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at + 1)) {
    const std::size_t begin = at + kBegin.size();
    const std::string script = text.substr(begin, text.find("</script>", begin) - begin);
    const std::string hash = "'sha256-" + base64_of(sha256_of(script)) + "'";
    EXPECT_NE(policy.find(hash), policy.npos) << script.substr(0, 60);
    ++scripts;
  }
  EXPECT_EQ(scripts, 4u);
  EXPECT_NE(policy.find("script-src 'sha256-"), policy.npos);
}

TEST(PageShell, OnlyLongTextsStandBelowTheirRowOnNarrowScreens) {
  const Table table{.heading = {"task", "time", "sure", "because"},
                    .rows = {{"a name of many letters", "1 ms", "high", "a reason of many words"}},
                    .left = {0, 2, 3}};
  const std::string html = html_table("t", table);
  EXPECT_NE(html.find("<div class=\"table texts\""), html.npos);
  EXPECT_NE(html.find("<td class=\"left\">high</td>"), html.npos);
  EXPECT_NE(html.find("<td class=\"left long\">a reason"), html.npos);
  EXPECT_NE(html.find("<td class=\"left\">a name"), html.npos);
  EXPECT_EQ(html_table("t", {.heading = {"task", "sure"}, .rows = {{"a", "low"}}, .left = {0, 1}})
                .find("texts"),
            std::string::npos);
}

TEST(PageShell, ChartsBringTheirLicenceAlong) {
  Page page{.title = "t",
            .heading = "h",
            .lead = {},
            .sections = {},
            .styles = {},
            .data = {},
            .scripts = {},
            .has_charts = true};
  std::ostringstream with, without;
  write_page(page, with);
  page.has_charts = false;
  write_page(page, without);
  for (const char* text : {"Leon Sorokin", "Permission is hereby granted", "var uPlot="}) {
    EXPECT_NE(with.str().find(text), std::string::npos) << text;
    EXPECT_EQ(without.str().find(text), std::string::npos) << text;
  }
}

TEST(PageCharts, WhatHasNoRoomIsLeftToTheTooltip) {
  const std::string html = html_bars("all", {{.name = "now",
                                              .parts = {{.from = 0,
                                                         .width = .5,
                                                         .label = "compute",
                                                         .letter = "c",
                                                         .colour = "x",
                                                         .tooltip = "t"},
                                                        {.from = .5,
                                                         .width = .03,
                                                         .label = "copy 3 ms",
                                                         .letter = "c",
                                                         .colour = "x",
                                                         .tooltip = "u"},
                                                        {.from = .53,
                                                         .width = .001,
                                                         .label = "idle",
                                                         .letter = "i",
                                                         .colour = "x",
                                                         .tooltip = "v"}},
                                              .value = "5 ms"}});
  EXPECT_NE(html.find(">compute</text>"), std::string::npos);
  EXPECT_NE(html.find(">c</text>"), std::string::npos);
  // On a phone, neither is cut: "compute" fits, and there is none of "c".
  EXPECT_EQ(html.find("class=\"wide\" x=\"25.000%\""), std::string::npos);
  EXPECT_NE(html.find("class=\"wide\" x=\"51.500%\""), std::string::npos);
  EXPECT_EQ(html.find(">i</text>"), std::string::npos);
  EXPECT_NE(html.find("<title>v</title>"), std::string::npos);
  EXPECT_EQ(html.find("mark"), std::string::npos);
}

}  // namespace
}  // namespace foretrace

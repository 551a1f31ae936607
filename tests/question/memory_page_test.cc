// The page of `foretrace memory --html`, tested without a browser.

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "foretrace/answer/memory.h"
#include "foretrace/graph.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

std::string page_of(std::string_view text) {
  const Graph graph = parse_graph(text);
  std::ostringstream out;
  write_memory_html(describe_memory(graph, simulate(graph)), graph, out);
  return std::move(out).str();
}

constexpr std::string_view kEven = R"(
cpu: A 1, B 1, C 1, D 1
@alloc 4B: A .. C
@alloc 2B: B .. D
)";

TEST(MemoryPage, WhatTheScriptLooksForIsThere) {
  const std::string page = page_of(kEven);
  const std::regex wanted(R"(getElementById\('([a-z]+)'\))");
  std::size_t found = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), wanted), end; at != end; ++at, ++found) {
    const std::string id = (*at)[1];
    EXPECT_NE(page.find(" id=\"" + id + '"'), std::string::npos) << id;
  }
  EXPECT_GE(found, 6U);
}

TEST(MemoryPage, BarsAreDrawnAndNotRead) {
  const std::string page = page_of(kEven);
  EXPECT_NE(page.find(R"(<span class="bar")"), std::string::npos);
  EXPECT_EQ(page.find(">###"), std::string::npos);
}

TEST(MemoryPage, ChangesTakeThePlaceOfTimeWhereTheHostRunsAhead) {
  // Four blocks in four microseconds, and then a millisecond in which only the device works.
  constexpr std::string_view kAhead = R"(
cpu:    A 1, B 1, C 1, D 1, E 1, F 1, G 1, H 1
stream: K 1000
H -> K
@alloc 4B: A .. H
@alloc 2B: B .. G
@alloc 2B: C .. F
@alloc 2B: D .. E
)";
  EXPECT_NE(page_of(kAhead).find(R"("crowded":true)"), std::string::npos);
  EXPECT_NE(page_of(kEven).find(R"("crowded":false)"), std::string::npos);
}

TEST(MemoryPage, PicturesCanBeReachedAndAreExplained) {
  const std::string page = page_of(kEven);
  const std::regex canvas(
      "<canvas id=\"[a-z]+\" tabindex=\"0\" role=\"img\" aria-describedby=\"hint\" "
      "aria-label=\"[^\"]+\">");
  EXPECT_EQ(std::distance(std::sregex_iterator(page.begin(), page.end(), canvas), {}), 2);
}

TEST(MemoryPage, BlocksOfOneSizeUseAndMakerAreOneRow) {
  const std::string page = page_of(R"(
cpu: A 1, B 1, C 1, D 1
@alloc 4B op=mm: A .. C
@alloc 4B op=mm: B ..
@alloc 4B op=add: B .. C
)");
  std::string rows = page.substr(page.find("Largest blocks</h2>"));
  rows = std::regex_replace(rows.substr(0, rows.find("</table>")), std::regex("<[^>]*>|\n"), "|");
  rows = std::regex_replace(rows, std::regex("\\|+"), "|");
  EXPECT_NE(rows.find("|4 B|2|1|unknown|0 ns|3 us|mm|4 B|1|0|unknown|1 us|1 us|add|"), rows.npos)
      << rows;
}

TEST(MemoryPage, BlocksHaveTheFramesOfPython) {
  const std::string page = page_of(R"x(
cpu: A 1, B 1, C 1
@alloc 4B stack="malloc();layer.py:7: forward;train.py:9: main": A .. C
@alloc 2B stack="malloc();operator()": B .. C
)x");
  EXPECT_NE(
      page.find(R"x("stacks":["","layer.py:7: forward;train.py:9: main","malloc();operator()"])x"),
      page.npos);
}

}  // namespace
}  // namespace foretrace

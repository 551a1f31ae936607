#include "document/words/wrapped.h"

#include <gtest/gtest.h>

#include <sstream>

#include "document/words/table.h"

namespace foretrace {
namespace {

/// This many times "words ".
std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i == 0 ? "words" : " words";
  return text;
}

TEST(Wrapped, AShortSentenceStaysAsItIs) {
  EXPECT_EQ(wrapped("", 14), "");
  EXPECT_EQ(wrapped("85.03 ms a step", 14), "85.03 ms a step");
}

TEST(Wrapped, LinesGoOnBelowThePlaceWhereTheSentenceBegan) {
  EXPECT_EQ(wrapped(words(20), 4), words(19) + "\n    words");
}

TEST(Wrapped, NoLineIsWiderThanATerminalButAWordThatDoesNotFit) {
  std::istringstream lines(wrapped(words(100) + " " + std::string(200, 'x') + " " + words(3), 10));
  for (std::string line; std::getline(lines, line);) {
    const bool fits = line.find('x') == line.npos;
    EXPECT_TRUE(fits ? line.size() <= kLineWidth : line.find_first_not_of(" x") == line.npos)
        << line;
  }
}

TEST(Wrapped, ANumberStaysWithItsUnit) {
  const std::string front = std::string(kLineWidth - 7, 'x') + " 42.5 ";
  EXPECT_EQ(wrapped(front + "ms a step", 0), std::string(kLineWidth - 7, 'x') + "\n42.5 ms a step");
}

TEST(Wrapped, LineBreaksOfNamesMakeNoLines) {
  EXPECT_EQ(wrapped("a\nb\r\x1b[2J", 4), "a\\nb\\r\\u001b[2J");
  const Table table{.heading = {"name", "why"}, .rows = {{"a\nb", "c\t"}}, .left = {0, 1}};
  std::ostringstream aligned, markdown;
  write_aligned(table, aligned);
  write_markdown_table(table, markdown);
  EXPECT_EQ(aligned.str(), "name  why\na\\nb  c\\t\n");
  EXPECT_EQ(markdown.str(), "| name | why |\n| :-- | :-- |\n| a\\\\nb | c\\\\t |\n");
}

TEST(Table, MarkdownShowsCodeAsCodeWhereThatCanBe) {
  const Table table{.heading = {"use"}, .rows = {{"a_b:c=1"}, {"a`b"}, {"a|b"}, {""}}, .code = {0}};
  std::ostringstream out;
  write_markdown_table(table, out);
  EXPECT_EQ(out.str(), "| use |\n| :-- |\n| `a_b:c=1` |\n| a\\`b |\n| a\\|b |\n|  |\n");
}

TEST(Wrapped, ATextColumnAtTheEndOfATableGoesOnBelowItself) {
  const Table table{.heading = {"name", "why"}, .rows = {{"amp", words(20)}}, .left = {0, 1}};
  std::ostringstream out;
  write_aligned(table, out, "  ");
  EXPECT_EQ(out.str(), "  name  why\n  amp   " + words(18) + "\n        " + words(2) + "\n");
}

}  // namespace
}  // namespace foretrace

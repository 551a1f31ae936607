#include "base/align.h"

#include <gtest/gtest.h>

#include <random>

namespace foretrace {
namespace {

std::vector<std::uint64_t> letters(std::string_view text) { return {text.begin(), text.end()}; }

/// The letters that the alignment matches.
std::string common(std::string_view a, std::string_view b, std::size_t most_differences = 100) {
  const auto pairs = align(letters(a), letters(b), most_differences);
  if (!pairs) return "too different";
  std::string text;
  for (const auto& [x, y] : *pairs) {
    EXPECT_EQ(a[x], b[y]);
    text += a[x];
  }
  return text;
}

TEST(Align, FindsWhatCorresponds) {
  EXPECT_EQ(common("abcdef", "abcdef"), "abcdef");
  EXPECT_EQ(common("abcdef", "abXdef"), "abdef");
  EXPECT_EQ(common("abcdef", "acdeYf"), "acdef");
  EXPECT_EQ(common("", "abc"), "");
  EXPECT_EQ(common("abc", ""), "");
  EXPECT_EQ(common("abc", "xyz"), "");
}

TEST(Align, GivesUpWhenTooMuchDiffers) {
  EXPECT_EQ(common("abcdef", "abcdefg", 1), "abcdef");
  EXPECT_EQ(common("abcdef", "abcdefgh", 1), "too different");
  EXPECT_EQ(common("abc", "xyz", 5), "too different");
}

/// Length of the longest common subsequence, by the textbook table.
std::size_t longest(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1,
                                              std::vector<std::size_t>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      table[i + 1][j + 1] =
          a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
    }
  }
  return table[a.size()][b.size()];
}

TEST(Align, FindsTheLongestInOrder) {
  std::mt19937 random(1);
  for (int run = 0; run < 500; ++run) {
    SCOPED_TRACE(run);
    std::vector<std::uint64_t> a(random() % 20), b(random() % 20);
    for (auto* sequence : {&a, &b}) {
      for (std::uint64_t& item : *sequence) item = random() % 4;
    }
    const auto pairs = align(a, b, 100);
    ASSERT_TRUE(pairs);
    EXPECT_EQ(pairs->size(), longest(a, b));
    for (std::size_t i = 0; i < pairs->size(); ++i) {
      const auto [x, y] = (*pairs)[i];
      EXPECT_EQ(a[x], b[y]);
      if (i == 0) continue;
      EXPECT_LT((*pairs)[i - 1].first, x);
      EXPECT_LT((*pairs)[i - 1].second, y);
    }
  }
}

}  // namespace
}  // namespace foretrace

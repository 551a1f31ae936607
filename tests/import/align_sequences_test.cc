#include "import/execution_traces/align_sequences.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "foretrace/trace.h"

namespace foretrace {
namespace {

using Sequence = std::vector<std::uint32_t>;

/// For each letter of `a`, its place in `b` as a digit (modulo ten), "." if it has none.
std::string aligned(const std::string& a, const std::string& b) {
  std::string text;
  for (const std::uint32_t place :
       align_sequences(Sequence(a.begin(), a.end()), Sequence(b.begin(), b.end()))) {
    text += place == kNone ? '.' : static_cast<char>('0' + place % 10);
  }
  return text;
}

std::size_t matched(const Sequence& places) {
  return places.size() - static_cast<std::size_t>(std::count(places.begin(), places.end(), kNone));
}

/// Steps that consist of the same layers, as in training.
Sequence steps(int count, int layers) {
  Sequence all;
  for (int step = 0; step < count; ++step) {
    all.push_back(1000);
    for (int layer = 0; layer < layers; ++layer) {
      for (std::uint32_t op = 0; op < 30; ++op) all.push_back(op);
    }
    all.push_back(1001);
  }
  return all;
}

TEST(AlignSequences, MatchesWhatIsTheSame) {
  EXPECT_EQ(aligned("abcdef", "abcdef"), "012345");
  EXPECT_EQ(aligned("abcdef", "xxabcdefyy"), "234567");
  EXPECT_EQ(aligned("abcxdef", "abcdef"), "012.345");
  EXPECT_EQ(aligned("abcdef", "abcxydef"), "012567");
  EXPECT_EQ(aligned("abc", "xyz"), "...");
  EXPECT_EQ(aligned("", "xyz"), "");
  EXPECT_EQ(aligned("abc", ""), "...");
}

TEST(AlignSequences, FindsOneStepAmongThree) {
  const Sequence all = steps(3, 40);
  const Sequence one = steps(1, 40);
  const Sequence places = align_sequences(one, all);
  EXPECT_EQ(matched(places), one.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    ASSERT_EQ(all[places[i]], one[i]);
    ASSERT_TRUE(i == 0 || places[i] == places[i - 1] + 1);
  }
}

TEST(AlignSequences, SurvivesWhatEitherSideLacks) {
  std::minstd_rand random(1);
  const Sequence truth = steps(1, 200);
  for (int run = 0; run < 20; ++run) {
    Sequence a, b(random() % 5000, 7777);
    std::size_t common = 0;
    for (const std::uint32_t element : truth) {
      const bool in_a = random() % 50 != 0, in_b = random() % 50 != 0;
      if (in_a) a.push_back(element);
      if (in_b) b.push_back(element);
      if (random() % 50 == 0) b.push_back(8888);
      common += in_a && in_b ? 1 : 0;
    }
    const Sequence places = align_sequences(a, b);
    // Equal layers allow the match to be off by one where it starts or continues.
    EXPECT_GE(matched(places), common * 95 / 100) << "run " << run;
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] == kNone) continue;
      ASSERT_EQ(a[i], b[places[i]]);
      ASSERT_TRUE(last == 0 || places[i] > last);
      last = places[i];
    }
  }
}

TEST(AlignSequences, IsAsGoodAsTheLongestCommonSubsequenceOfShortOnes) {
  std::minstd_rand random(2);
  for (int run = 0; run < 300; ++run) {
    Sequence a(random() % 12), b(random() % 12);
    for (std::uint32_t& element : a) element = static_cast<std::uint32_t>(random() % 3);
    for (std::uint32_t& element : b) element = static_cast<std::uint32_t>(random() % 3);
    std::vector<std::vector<std::size_t>> longest(a.size() + 1,
                                                  std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b.size(); ++j) {
        longest[i + 1][j + 1] =
            a[i] == b[j] ? longest[i][j] + 1 : std::max(longest[i][j + 1], longest[i + 1][j]);
      }
    }
    // A free end costs nothing, so the alignment found may be shorter than the longest one.
    EXPECT_LE(matched(align_sequences(a, b)), longest[a.size()][b.size()]);
  }
}

TEST(AlignSequences, TakesLinearTimeForWhatHasNothingInCommon) {
  std::minstd_rand random(3);
  Sequence a(50'000), b(50'000);
  for (std::uint32_t& element : a) element = static_cast<std::uint32_t>(random() % 100);
  for (std::uint32_t& element : b) element = static_cast<std::uint32_t>(100 + random() % 100);
  EXPECT_EQ(matched(align_sequences(a, b)), 0);
}

}  // namespace
}  // namespace foretrace

#include "support/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "foretrace/error.h"

namespace foretrace {
namespace {

std::vector<Inference> ranks(std::initializer_list<RankText> texts) {
  std::vector<Inference> all;
  for (const RankText& text : texts) all.push_back(rank_of(text));
  return all;
}

std::string error_of(const std::vector<Inference>& ranks) {
  try {
    joined(ranks);
    return "";
  } catch (const TraceError& error) {
    return error.what();
  }
}

/// "3+4" for each member: skew and transfer in us.
std::string parts_of(const Meeting& meeting) {
  std::string text;
  for (const MeetingMember& member : meeting.members) {
    text += (text.empty() ? "" : " ") + std::to_string(member.skew / 1us) + "+" +
            std::to_string((member.recorded - member.skew) / 1us);
    if (member.left_early) text += " early";
  }
  return text;
}

TEST(Ranks, ACollectiveIsAWaitForTheLastRankAndATransfer) {
  const RankJoin join = joined(ranks({{"gpu: A 300, c:collective 800", 0},  //
                                      {"gpu: A 700, c:collective 400", 1}}));
  ASSERT_EQ(join.meetings.size(), 1U);
  EXPECT_EQ(parts_of(join.meetings[0]), "400+400 0+400");
  EXPECT_EQ(join.meetings[0].operation, "c");
  EXPECT_EQ(join.ranks[0].waits, 400us);
  EXPECT_EQ(join.ranks[1].times_last, 1U);
  EXPECT_EQ(join.ranks[1].keeps_waiting, 400us);
  EXPECT_EQ(join.ranks[0].matched, 1U);
}

TEST(Ranks, WhoLeavesBeforeTheLastComesWaitsForNobody) {
  // Two ends agree, so the clocks do; the root of the broadcast is done long before.
  const RankJoin join = joined(
      ranks({{"gpu: a:collective 500, A 200, b:collective 100, B 1000, c:collective 500", 0},
             {"gpu: a:collective 500, A 900, b:collective 100, B 300, c:collective 500", 1}}));
  ASSERT_EQ(join.meetings.size(), 3U);
  EXPECT_EQ(parts_of(join.meetings[1]), "0+100 early 0+100");
}

TEST(Ranks, ClocksAreFoundFromTheEndsOfCollectives) {
  // 40 collectives a millisecond apart, on a clock that is 10 ms ahead and gains 50 millionths.
  std::string mine = "gpu: ", theirs = "gpu: ";
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    const int work = 500 + static_cast<int>(random() % 500);
    const int late = static_cast<int>(random() % 300);
    mine += (i > 0 ? ", A " : "A ") + std::to_string(work) + ", c:collective " +
            std::to_string(100 + late);
    theirs += (i > 0 ? ", A " : "A ") + std::to_string(work + late) + ", c:collective 100";
  }
  for (const Nanoseconds ahead : {10ms, -10ms, 0ms}) {
    for (const double drift : {50e-6, 0.0}) {
      std::vector<Inference> both;
      both.push_back(rank_of({mine, 0}));
      both.push_back(rank_of({theirs, 1, 2, 0us, ahead, drift}));
      const RankClock clock = joined(both).clocks[1];
      const Nanoseconds end = both[1].recorded.length;
      EXPECT_NEAR(static_cast<double>(clock.common_time(0ns).count()), 0, 5000) << drift;
      const auto common = static_cast<double>(both[0].recorded.length.count());
      EXPECT_NEAR(static_cast<double>(clock.common_time(end).count()), common, 5000) << drift;
      EXPECT_NEAR(clock.drift, -drift, 10e-6);
      EXPECT_EQ(clock.common, 40U);
    }
  }
}

TEST(Ranks, RecordingsMayBeginAtDifferentCollectives) {
  const RankJoin join = joined(ranks(
      {{"gpu: a:collective 5, A 9, b:collective 5, A 3, c:collective 5, A 4, a:collective 5", 0},
       {"gpu: b:collective 5, A 3, c:collective 5, A 4, a:collective 5", 1, 2, 14us}}));
  ASSERT_EQ(join.meetings.size(), 3U);
  EXPECT_EQ(join.meetings[0].operation, "b");
  EXPECT_EQ(join.ranks[0].unmatched, 1U);
  EXPECT_EQ(join.ranks[1].unmatched, 0U);
}

TEST(Ranks, RecordedGroupsAndNumbersDecide) {
  std::vector<Inference> all;
  for (std::int32_t number = 0; number < 4; ++number) {
    all.push_back(rank_of({"gpu: t:collective 5, A 4, d:collective 5", number, 4}));
    Inference& rank = all.back();
    const std::string pair = number < 2 ? "[0, 1]" : "[2, 3]";
    const std::string across = number % 2 == 0 ? "[0, 2]" : "[1, 3]";
    rank.graph.collectives()[0].members = rank.graph.names().intern(pair);
    rank.graph.collectives()[1].members = rank.graph.names().intern(across);
    for (RecordedCollective& one : rank.graph.collectives()) one.sequence = 17, one.group_size = 2;
  }
  const RankJoin join = joined(all);
  ASSERT_EQ(join.meetings.size(), 4U);
  for (const Meeting& meeting : join.meetings) {
    EXPECT_EQ(meeting.members.size(), 2U);
    EXPECT_EQ(meeting.sequence, 17);
    EXPECT_EQ(meeting.matched, Provenance::measured);
  }
}

TEST(Ranks, TheOrderOfRanksDoesNotMatter) {
  const RankText early{"gpu: A 300, c:collective 800, B 100, d:collective 300", 0};
  const RankText late{"gpu: A 700, c:collective 400, B 300, d:collective 100", 1, 2, 0us, 3ms};
  const RankJoin one = joined(ranks({early, late})), other = joined(ranks({late, early}));
  ASSERT_EQ(one.meetings.size(), other.meetings.size());
  for (std::size_t i = 0; i < one.meetings.size(); ++i) {
    EXPECT_EQ(one.meetings[i].members[0].skew, other.meetings[i].members[1].skew);
    EXPECT_EQ(one.meetings[i].members[1].skew, other.meetings[i].members[0].skew);
  }
}

TEST(Ranks, WhatCannotBeOneJobIsRefused) {
  constexpr auto kOne = "gpu: A 3, c:collective 8";
  EXPECT_EQ(error_of(ranks({{kOne, 0}, {kOne, 0}})),
            "one rank was recorded twice: rank 0 and rank 0; give one run at a time");
  EXPECT_EQ(error_of(ranks({{kOne, 0, 2}, {kOne, 2, 2}})),
            "rank 2: it is rank 2 of 2, but ranks are numbered from 0");
  EXPECT_EQ(error_of(ranks({{kOne, 0, 2}, {kOne, 1, 4}})),
            "rank 1: it is of a job of 4 ranks, but rank 0 is of one of 2; give ranks of one job");
  EXPECT_EQ(error_of(ranks({{kOne, 0}, {"gpu: A 3", 1}})),
            "rank 0: it shares no collective with another rank; give ranks of one job, or the file "
            "of one rank");
  EXPECT_EQ(error_of(ranks({{"gpu: a:collective 8, b:collective 8, c:collective 8", 0},
                            {"gpu: a:collective 8, x:collective 8, y:collective 8", 1}})),
            "rank 1: its 3 collectives of all ranks do not follow in the order of the 3 of rank 0, "
            "wherever recording began; the first that differs is number 1, x");
}

TEST(Ranks, MembersMustAgreeOnTheSizeOfTheirGroup) {
  std::vector<Inference> all = ranks({{"gpu: c:collective 8", 0}, {"gpu: c:collective 8", 1}});
  for (Inference& rank : all) {
    rank.graph.collectives()[0].group = rank.graph.names().intern("7");
    rank.graph.collectives()[0].group_size = rank.rank.number + 2;
  }
  EXPECT_EQ(
      error_of(all),
      "rank 1: its group of group \"7\" has 3 ranks, but 2 for rank 0; give ranks of one job");
}

TEST(Ranks, WithoutAnyCollectiveRanksAreApart) {
  EXPECT_TRUE(joined(ranks({{"gpu: A 3", 0}, {"gpu: A 3", 1}})).meetings.empty());
}

}  // namespace
}  // namespace foretrace

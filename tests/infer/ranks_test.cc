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

/// "3+4" for each member: arrival skew and transfer in us.
std::string parts_of(const MatchedCollective& collective) {
  std::string text;
  for (const CollectiveMember& member : collective.members) {
    text += (text.empty() ? "" : " ") + std::to_string(member.skew / 1us) + "+" +
            std::to_string((member.recorded - member.skew) / 1us);
    if (member.left_early) text += " early";
  }
  return text;
}

TEST(Ranks, ACollectiveIsAWaitForTheLastRankAndATransfer) {
  const RankJoin join = joined(ranks({{"gpu: A 300, c:collective 800", 0},  //
                                      {"gpu: A 700, c:collective 400", 1}}));
  ASSERT_EQ(join.collectives.size(), 1U);
  EXPECT_EQ(parts_of(join.collectives[0]), "400+400 0+400");
  EXPECT_EQ(join.collectives[0].operation, "c");
  EXPECT_EQ(join.ranks[0].waits, 400us);
  EXPECT_EQ(join.ranks[1].times_last, 1U);
  EXPECT_EQ(join.ranks[1].keeps_waiting, 400us);
  EXPECT_EQ(join.ranks[0].matched, 1U);
}

TEST(Ranks, TheLastKeepsOthersWaitingSinceTheOneBeforeIt) {
  const RankJoin join = joined(ranks({{"gpu: A 100, c:collective 1000", 0, 3},
                                      {"gpu: A 300, c:collective 800", 1, 3},
                                      {"gpu: A 700, c:collective 400", 2, 3}}));
  EXPECT_EQ(join.ranks[2].times_last, 1U);
  EXPECT_EQ(join.ranks[2].keeps_waiting, 400us);
  EXPECT_EQ(join.collectives[0].last, 2U);
  EXPECT_EQ(join.collectives[0].arrival_skew, 600us);
}

TEST(Ranks, WhoLeavesBeforeTheLastComesWaitsForNobody) {
  // Two ends agree, so the clocks do; the root of the broadcast is done long before.
  const RankJoin join = joined(
      ranks({{"gpu: a:collective 500, A 200, b:collective 100, B 1000, c:collective 500", 0},
             {"gpu: a:collective 500, A 900, b:collective 100, B 300, c:collective 500", 1}}));
  ASSERT_EQ(join.collectives.size(), 3U);
  EXPECT_EQ(parts_of(join.collectives[1]), "0+100 early 0+100");
}

// Rank 1 enters `b` a gap after rank 0 has left it. Ends of one collective differ by up to 22 us,
// so that only the longer gap shows that rank 0 did not wait.
TEST(Ranks, OnlyWhoLeavesLongBeforeTheLastComesHasNotWaited) {
  const auto parts_with = [](int gap, std::size_t& crossed) {
    const std::string late = "gpu: a:collective 500, A " + std::to_string(300 + gap) +
                             ", b:collective 100, B " + std::to_string(900 - gap) +
                             ", c:collective 500";
    const RankJoin join = joined(
        ranks({{"gpu: a:collective 500, A 200, b:collective 100, B 1000, c:collective 500", 0},
               {late, 1}}));
    crossed = join.crossed;
    return parts_of(join.collectives[1]);
  };
  std::size_t crossed = 0;
  EXPECT_EQ(parts_with(10, crossed), "100+0 0+100");
  EXPECT_EQ(crossed, 1U);
  EXPECT_EQ(parts_with(30, crossed), "0+100 early 0+100");
  EXPECT_EQ(crossed, 0U);
}

// The clock of rank 1 is off by eight times the length of a collective, and each rank once comes
// last.
TEST(Ranks, ClocksMayBeOffByMoreThanACollective) {
  for (const Nanoseconds ahead : {0us, 400us, -400us, 1500us, -1500us}) {
    const RankJoin join = joined(
        ranks({{"gpu: A 100, a:collective 50, B 200, b:collective 90, C 300, c:collective 50", 0},
               {"gpu: A 110, a:collective 40, B 240, b:collective 50, C 300, c:collective 50", 1, 2,
                0us, ahead}}));
    SCOPED_TRACE(to_text(ahead));
    ASSERT_EQ(join.collectives.size(), 3U);
    EXPECT_EQ(parts_of(join.collectives[0]), "10+40 0+40");
    EXPECT_EQ(parts_of(join.collectives[1]), "40+50 0+50");
    EXPECT_EQ(parts_of(join.collectives[2]), "0+50 0+50");
    EXPECT_EQ(join.clocks[1].skew, -ahead);
    EXPECT_EQ(join.crossed, 0U);
  }
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

// Ends that are noted up to 20 us late: a line fits through them slightly better than none does.
TEST(Ranks, ClocksThatOnlyJitterDoNotDrift) {
  std::string mine = "gpu: ", theirs = "gpu: ";
  for (const int late :
       {7,  11, 12, 4, 6, 1, 2,  4,  7,  16, 6, 12, 0, 14, 15, 14, 12, 15, 18, 6,
        12, 2,  15, 7, 0, 8, 16, 13, 15, 12, 3, 8,  3, 2,  12, 19, 12, 3,  1,  10}) {
    const std::string before = theirs == "gpu: " ? "A " : ", A ";
    mine += before + "500, c:collective 100, B 100";
    theirs += before + "500, c:collective " + std::to_string(100 + late) + ", B " +
              std::to_string(100 - late);
  }
  EXPECT_EQ(joined(ranks({{mine, 0}, {theirs, 1}})).clocks[1].drift, 0);
}

TEST(Ranks, RecordingsMayBeginAtDifferentCollectives) {
  const RankJoin join = joined(ranks(
      {{"gpu: a:collective 5, A 9, b:collective 5, A 3, c:collective 5, A 4, a:collective 5", 0},
       {"gpu: b:collective 5, A 3, c:collective 5, A 4, a:collective 5", 1, 2, 14us}}));
  ASSERT_EQ(join.collectives.size(), 3U);
  EXPECT_EQ(join.collectives[0].operation, "b");
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
  ASSERT_EQ(join.collectives.size(), 4U);
  for (const MatchedCollective& collective : join.collectives) {
    EXPECT_EQ(collective.members.size(), 2U);
    EXPECT_EQ(collective.sequence, 17);
    EXPECT_EQ(collective.matched, Provenance::measured);
  }
}

/// Gives the collectives of a rank these groups, in their order.
Inference in_groups(const RankText& text, const std::vector<std::string>& groups) {
  Inference rank = rank_of(text);
  for (std::size_t i = 0; i < groups.size(); ++i)
    rank.graph.collectives()[i].members = rank.graph.names().intern(groups[i]);
  return rank;
}

/// "0 1" for each common collective: the numbers of its members, in order.
std::vector<std::string> members_of(const RankJoin& join, const std::vector<Inference>& ranks) {
  std::vector<std::string> all;
  for (const MatchedCollective& collective : join.collectives) {
    std::vector<std::int32_t> numbers;
    for (const CollectiveMember& one : collective.members)
      numbers.push_back(join.world.empty() ? ranks[one.rank].rank.number
                                           : join.world[one.rank].number);
    std::sort(numbers.begin(), numbers.end());
    std::string& text = all.emplace_back();
    for (const std::int32_t number : numbers)
      text += (text.empty() ? "" : " ") + std::to_string(number);
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Ranks, MembersMeetInWhateverOrderTheyAreListed) {
  std::vector<Inference> both;
  both.push_back(in_groups({"gpu: A 3, c:collective 6", 0}, {"[0, 1]"}));
  both.push_back(in_groups({"gpu: A 7, c:collective 2", 1}, {"[1, 0]"}));
  ASSERT_EQ(joined(both).collectives.size(), 1U);
  EXPECT_EQ(parts_of(joined(both).collectives[0]), "4+2 0+2");
}

// What a shortened list still names are not all members, so that it cannot tell groups apart.
TEST(Ranks, AShortenedListOfMembersNamesNoGroup) {
  std::vector<Inference> both;
  both.push_back(in_groups({"gpu: A 3, c:collective 6", 0}, {"[0, 1, ...]"}));
  both.push_back(in_groups({"gpu: A 7, c:collective 2", 1}, {"[0, 1, 2, ...]"}));
  ASSERT_EQ(joined(both).collectives.size(), 1U);
  EXPECT_EQ(joined(both).collectives[0].members.size(), 2U);
}

// Three stages: activations go down, gradients go up. The middle stage does not send and receive in
// the order of its neighbors.
TEST(Ranks, MessagesHaveTwoEndsAndAnOrderForEachDirection) {
  const std::string up = "[0, 1]", down = "[1, 2]";
  std::vector<Inference> all;
  all.push_back(
      in_groups({"gpu: send:collective 5, A 10, send:collective 5, B 35, recv:collective 5", 0, 3},
                {up, up, up}));
  all.push_back(
      in_groups({"gpu: recv:collective 5, send:collective 5, C 10, recv:collective 5, D 5,"
                 "recv:collective 5, E 20, send:collective 5",
                 1, 3},
                {up, down, up, down, up}));
  all.push_back(
      in_groups({"gpu: F 5, recv:collective 5, G 15, send:collective 5", 2, 3}, {down, down}));
  const RankJoin join = joined(all);
  EXPECT_EQ(members_of(join, all), (std::vector<std::string>{"0 1", "0 1", "0 1", "1 2", "1 2"}));
  std::vector<std::string> groups;
  for (const MatchedCollective& collective : join.collectives) groups.push_back(collective.group);
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "messages from rank 0 to rank 1"), 2);
  EXPECT_EQ(std::count(groups.begin(), groups.end(), "messages from rank 1 to rank 0"), 1);
  for (const CollectiveTotals& rank : join.ranks) EXPECT_EQ(rank.unmatched, 0U);
}

// Rank 0 meets rank 1, and rank 1 meets rank 2, whose clock is known only through that of rank 1.
TEST(Ranks, DriftAddsUpAlongAChainOfRanks) {
  std::string first, middle, last;
  std::vector<std::string> one, both;
  for (int i = 0; i < 40; ++i) {
    const std::string work = (i > 0 ? ", A " : "gpu: A ") + std::to_string(700 + i * 37 % 100);
    first += work + ", x:collective 100, B 100";
    middle += work + ", x:collective 100, y:collective 100";
    last += work + ", B 100, y:collective 100";
    one.insert(one.end(), {"[0, 1]"});
    both.insert(both.end(), {"[0, 1]", "[1, 2]"});
  }
  std::vector<Inference> all;
  all.push_back(in_groups({first, 0, 3}, one));
  all.push_back(in_groups({middle, 1, 3, 0us, 2ms, 500e-6}, both));
  all.push_back(
      in_groups({last, 2, 3, 0us, -7ms, -300e-6}, std::vector<std::string>(40, "[1, 2]")));
  const RankJoin join = joined(all);
  EXPECT_EQ(join.collectives.size(), 80U);
  const Nanoseconds length = all[0].recorded.length;
  for (const auto& [rank, drift] : {std::pair(1U, 500e-6), std::pair(2U, -300e-6)}) {
    const RankClock& clock = join.clocks[rank];
    EXPECT_NEAR(clock.drift, -drift, 1e-6);
    EXPECT_NEAR(static_cast<double>(clock.common_time(0ns).count()), 0, 500);
    const auto end = static_cast<double>(length.count()) * (1 + drift);
    EXPECT_NEAR(
        static_cast<double>((clock.common_time(Nanoseconds(std::llround(end))) - length).count()),
        0, 500);
  }
}

RankJoin joined_as(const std::vector<Inference>& ranks, std::int32_t world_size) {
  std::vector<const Inference*> all;
  for (const Inference& rank : ranks) all.push_back(&rank);
  return join_ranks(all, rank_labels(ranks), world_size);
}

// Tensor groups join neighbors, data groups every other rank; one rank of each place was recorded.
TEST(Ranks, ARecordedRankStandsForOthersByItsPlaceInTheGroups) {
  std::vector<Inference> all;
  all.push_back(
      in_groups({"gpu: t:collective 5, A 4, d:collective 5", 0, 8}, {"[0, 1]", "[0, 2, 4, 6]"}));
  all.push_back(
      in_groups({"gpu: t:collective 5, A 4, d:collective 5", 5, 8}, {"[4, 5]", "[1, 3, 5, 7]"}));
  EXPECT_EQ(error_of(all).find("rank 0: it shares no collective with another rank"), 0U);
  const RankJoin join = joined_as(all, 8);
  ASSERT_EQ(join.world.size(), 8U);
  for (const RankJoin::WorldRank& rank : join.world)
    EXPECT_EQ(rank.recorded, rank.number % 2 == 0 ? 0U : 1U) << rank.number;
  EXPECT_EQ(members_of(join, all),
            (std::vector<std::string>{"0 1", "0 2 4 6", "1 3 5 7", "2 3", "4 5", "6 7"}));
  for (const CollectiveTotals& rank : join.ranks) EXPECT_EQ(rank.matched, 2U);
}

// Ranks 0 and 2 of 4 are in one group; the cause that makes rank 2 late makes no other rank late.
TEST(Ranks, ALateRankStandsForNobodyIfAnotherOfItsPlaceCan) {
  const std::vector<Inference> all =
      ranks({{"gpu: A 100, c:collective 900", 0, 4}, {"gpu: A 990, c:collective 10", 2, 4}});
  const RankJoin join = joined_as(all, 4);
  ASSERT_EQ(join.world.size(), 4U);
  for (const RankJoin::WorldRank& rank : join.world)
    EXPECT_EQ(rank.recorded, rank.number == 2 ? 1U : 0U) << rank.number;
  ASSERT_EQ(join.collectives.size(), 1U);
  EXPECT_EQ(parts_of(join.collectives[0]), "890+10 890+10 0+10 890+10");
}

// One replica was recorded, of a pipeline of two stages with two replicas each.
TEST(Ranks, StagesThatWereNotRecordedSendToEachOther) {
  std::vector<Inference> all;
  all.push_back(
      in_groups({"gpu: send:collective 5, A 4, d:collective 5", 0, 4}, {"[0, 2]", "[0, 1]"}));
  all.push_back(
      in_groups({"gpu: recv:collective 5, A 4, d:collective 5", 2, 4}, {"[0, 2]", "[2, 3]"}));
  const RankJoin join = joined_as(all, 4);
  EXPECT_EQ(members_of(join, all), (std::vector<std::string>{"0 1", "0 2", "1 3", "2 3"}));
  for (const RankJoin::WorldRank& rank : join.world)
    EXPECT_EQ(all[rank.recorded].rank.number, rank.number / 2 * 2);
}

TEST(Ranks, AJobMustFitTheRecordedGroups) {
  std::vector<Inference> all;
  all.push_back(in_groups({"gpu: t:collective 5", 0, 4}, {"[0, 1]"}));
  all.push_back(in_groups({"gpu: t:collective 5", 3, 4}, {"[2, 3]"}));
  const auto refused = [&](std::int32_t size) -> std::string {
    try {
      joined_as(all, size);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(
      refused(2),
      "--ranks: must be at least 4, because rank 3 was recorded, got 2; for a part of the job "
      "give only the files of its ranks");
  EXPECT_EQ(
      refused(7),
      "--ranks: must be a multiple of the 2 ranks that groups such as ranks 0, 1 span, got 7");
  EXPECT_EQ(refused(6), "");
}

TEST(Ranks, TheOrderOfRanksDoesNotMatter) {
  const RankText early{"gpu: A 300, c:collective 800, B 100, d:collective 300", 0};
  const RankText late{"gpu: A 700, c:collective 400, B 300, d:collective 100", 1, 2, 0us, 3ms};
  const RankJoin one = joined(ranks({early, late})), other = joined(ranks({late, early}));
  ASSERT_EQ(one.collectives.size(), other.collectives.size());
  for (std::size_t i = 0; i < one.collectives.size(); ++i) {
    EXPECT_EQ(one.collectives[i].members[0].skew, other.collectives[i].members[1].skew);
    EXPECT_EQ(one.collectives[i].members[1].skew, other.collectives[i].members[0].skew);
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
            "of one rank, or the size of the job (--ranks) for ranks of groups that were recorded "
            "in part");
  EXPECT_EQ(error_of(ranks({{"gpu: a:collective 8, b:collective 8, c:collective 8", 0},
                            {"gpu: a:collective 8, x:collective 8, y:collective 8", 1}})),
            "rank 1: its 3 collectives of all ranks are not in the same order as the 3 of rank 0, "
            "wherever recording began; the first difference is number 1, x");
}

TEST(Ranks, MembersMustAgreeOnTheSizeOfTheirGroup) {
  std::vector<Inference> all = ranks({{"gpu: c:collective 8", 0}, {"gpu: c:collective 8", 1}});
  for (Inference& rank : all) {
    rank.graph.collectives()[0].group = rank.graph.names().intern("7");
    rank.graph.collectives()[0].group_size = rank.rank.number + 2;
  }
  EXPECT_EQ(
      error_of(all),
      "rank 1: it recorded group \"7\" as 3 ranks, but rank 0 recorded 2; give ranks of one job");
}

TEST(Ranks, WithoutAnyCollectiveRanksAreApart) {
  EXPECT_TRUE(joined(ranks({{"gpu: A 3", 0}, {"gpu: A 3", 1}})).collectives.empty());
}

}  // namespace
}  // namespace foretrace

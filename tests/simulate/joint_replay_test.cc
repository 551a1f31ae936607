#include "simulate/joint_replay.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "simulate/fold.h"
#include "simulate/joint_rows.h"
#include "support/random_graph.h"
#include "support/ranks.h"

namespace foretrace {
namespace {

/// The picture of each rank, with times of its own clock.
std::string pictures(const std::vector<Inference>& ranks, const RankJoin& join) {
  std::vector<RankGraph> graphs;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    graphs.push_back({&ranks[i].graph, join.clocks[i].offset});
  const JointReplay replay = simulate_jointly(graphs, join.collectives);
  std::string text = "\n";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += to_ascii(ranks[i].graph, replay.of(i));
  return text;
}

std::vector<Inference> two_ranks() {
  std::vector<Inference> ranks;
  ranks.push_back(rank_of({"zero: A 3, C:collective 6, D 2", 0}));
  ranks.push_back(rank_of({"one: B 7, C:collective 2, E 1", 1}));
  return ranks;
}

TEST(JointReplay, GivesTheRecordedTimes) {
  const std::vector<Inference> ranks = two_ranks();
  EXPECT_EQ(pictures(ranks, joined(ranks)), R"(
zero |AAACCCCCCDD|
one |BBBBBBBCCE|
)");
}

TEST(JointReplay, EveryRankWaitsForTheLast) {
  std::vector<Inference> ranks = two_ranks();
  const RankJoin join = joined(ranks);
  ranks[1].graph.task(TaskId{0}).duration = 1us;  // B; then A comes last.
  EXPECT_EQ(pictures(ranks, join), R"(
zero |AAACCDD|
one |BCCCCE|
)");
  ranks[1].graph.task(TaskId{0}).duration = 9us;
  EXPECT_EQ(pictures(ranks, join), R"(
zero |AAACCCCCCCCDD|
one |BBBBBBBBBCCE|
)");
}

TEST(JointReplay, WhatATransformDoesToACollectiveItDoesToItsTransfer) {
  std::vector<Inference> ranks = two_ranks();
  const RankJoin join = joined(ranks);
  for (Inference& rank : ranks) rank.graph.task(TaskId{1}).duration /= 2;
  EXPECT_EQ(pictures(ranks, join), R"(
zero |AAACCCCCDD|
one |BBBBBBBCE|
)");
}

TEST(JointReplay, ARemovedMemberIsNotWaitedFor) {
  std::vector<Inference> ranks = two_ranks();
  const RankJoin join = joined(ranks);
  ranks[1].graph.remove(TaskId{1});
  EXPECT_EQ(pictures(ranks, join), R"(
zero |AAACCDD|
one |BBBBBBBE|
)");
}

TEST(JointReplay, RanksMayBeginAtDifferentTimes) {
  std::vector<Inference> ranks;
  ranks.push_back(rank_of({"zero: A 3, C:collective 6, D 2", 0}));
  ranks.push_back(rank_of({"one: B 3, C:collective 2, E 1", 1, 2, 4us}));
  EXPECT_EQ(pictures(ranks, joined(ranks)), R"(
zero |AAACCCCCCDD|
one |BBBCCE|
)");
}

// On a lane of priorities no task waits for the one in front of it.
TEST(JointReplay, AllWorkOfARankBeginsWithItsRecording) {
  Graph graph = parse_graph("net: A 3, B 2");
  graph.lane(LaneId{0}).discipline = Discipline::priority;
  const std::vector<RankGraph> ranks = {{&graph, 1us}, {&graph, 4us}};
  const JointReplay replay = simulate_jointly(ranks, {});
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_EQ(replay.of(rank).start, (std::vector<Nanoseconds>{0us, 3us}));
    EXPECT_EQ(replay.of(rank).finish, (std::vector<Nanoseconds>{3us, 5us}));
  }
}

TEST(JointReplay, ARankAsOftenAsWantedIsReplayedOnce) {
  const Graph graph = parse_graph("gpu: A 3, C:collective 6, D 2");
  const std::vector<RankGraph> ranks(64, {&graph});
  MatchedCollective collective;
  for (std::uint32_t i = 0; i < 64; ++i) collective.members.push_back({i, TaskId{1}, 0us, 6us});
  EXPECT_EQ(alike_ranks(ranks, {collective}), std::vector<std::uint32_t>(64, 0));
  EXPECT_EQ(simulate_jointly(ranks, {collective}).of(63).length, 11us);
}

// Each rank differs from the first in one number that its times depend on, the last in a name only.
TEST(JointReplay, RanksThatDifferInOneNumberAreNotAlike) {
  constexpr auto kRank = "cpu: L:launch 2\ngpu: A 3, C:collective 6, D 2\nL -> C [measured launch]";
  std::vector<Graph> graphs;
  const auto add = [&](const auto& change) { change(graphs.emplace_back(parse_graph(kRank))); };
  const auto wait = [](Graph& graph, const auto& change) { graph.change_dependencies(change); };
  add([](Graph&) {});
  add([&](Graph& graph) { wait(graph, [](Dependency& one) { one.lag = 5us; }); });
  add([&](Graph& graph) { wait(graph, [](Dependency& one) { one.anchor = Anchor::start; }); });
  add([&](Graph& graph) {
    wait(graph, [](Dependency& one) { one.tail = TailShare::nearest(0.5); });
  });
  add([](Graph& graph) { graph.task(TaskId{1}).duration = 4us; });
  add([](Graph& graph) { graph.task(TaskId{1}).gap = 1us; });
  add([](Graph& graph) { graph.task(TaskId{3}).tail = TailShare::nearest(0.5); });
  add([](Graph& graph) { graph.task(TaskId{1}).priority = 1; });
  add([](Graph& graph) { graph.lane(LaneId{1}).slice = 5us; });
  add([](Graph& graph) { graph.task(TaskId{1}).name = graph.names().intern("other"); });
  std::vector<RankGraph> ranks;
  MatchedCollective collective;
  for (std::uint32_t i = 0; i < graphs.size(); ++i) {
    ranks.push_back({&graphs[i]});
    collective.members.push_back({i, TaskId{2}, 0us, 6us});
  }
  EXPECT_EQ(alike_ranks(ranks, {collective}),
            (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 0}));
}

// All graphs are equal. What a rank has to do with its collectives, and with whom, differs.
TEST(JointReplay, RanksThatMeetInOtherWaysAreNotAlike) {
  const Graph graph = parse_graph("gpu: A 3, C:collective 6, D:collective 6");
  const std::vector<RankGraph> ranks(6, {&graph});
  const auto met = [](std::uint32_t rank, std::uint32_t task, Nanoseconds skew = 0us) {
    return CollectiveMember{rank, TaskId{task}, skew, 6us};
  };
  std::vector<MatchedCollective> pairs(3);
  for (std::uint32_t i = 0; i < 3; ++i) pairs[i].members = {met(2 * i, 1), met(2 * i + 1, 1)};
  EXPECT_EQ(alike_ranks(ranks, pairs), std::vector<std::uint32_t>(6, 0));
  pairs[1].members[0].skew = 1us;
  EXPECT_EQ(alike_ranks(ranks, pairs), (std::vector<std::uint32_t>{0, 0, 2, 3, 0, 0}));
  pairs[1].members = {met(2, 1), met(3, 2)};
  EXPECT_EQ(alike_ranks(ranks, pairs), (std::vector<std::uint32_t>{0, 0, 2, 3, 0, 0}));
  pairs[1].members = {met(2, 1), met(3, 1)};
  pairs[1].members[1].recorded = 7us;
  EXPECT_EQ(alike_ranks(ranks, pairs), (std::vector<std::uint32_t>{0, 0, 2, 3, 0, 0}));
  std::vector<RankGraph> later = ranks;
  later[4].begins = 1us;
  pairs[1].members[1].recorded = 6us;
  EXPECT_EQ(alike_ranks(later, pairs), (std::vector<std::uint32_t>{0, 0, 0, 0, 4, 5}));
}

/// Ranks in a grid with two kinds of groups. They have collectives in both, with up to two
/// stragglers, groups of uneven sizes, and messages between neighbours.
struct RandomJob {
  explicit RandomJob(std::mt19937& random) {
    const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
    const std::uint32_t rows = 1 + below(4), columns = 1 + below(4);
    const std::uint32_t count = rows * columns;
    const unsigned collective_count = 1 + below(3);
    const Graph plain = random_graph(random, {.lanes = 2, .tasks = 12, .dependencies = 8});
    for (std::uint32_t i = 0; i < count; ++i) graphs.push_back(plain.clone());
    const unsigned stragglers = below(3);
    for (unsigned i = 0; i < stragglers; ++i)
      graphs[below(count)].task(TaskId{below(12)}).duration += Nanoseconds(below(3) * 1000);
    std::vector<std::vector<TaskId>> met(count);
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      for (unsigned i = 0; i < 3 * collective_count; ++i)
        met[rank].push_back(graphs[rank].append(
            LaneId{i % 2},
            {.duration = Nanoseconds(500 + 100 * (i % 3)), .kind = TaskKind::collective}));
    }
    const auto add = [&](const std::vector<std::uint32_t>& ranks, unsigned number) {
      MatchedCollective collective;
      const auto skew = Nanoseconds(below(2) * 100);
      for (const std::uint32_t rank : ranks)
        collective.members.push_back({rank, met[rank][number], skew,
                                      graphs[rank].task(met[rank][number]).duration,
                                      ranks.size() > 2 && rank == ranks[0] && number % 2 == 1});
      if (collective.members.size() > 1) collectives.push_back(collective);
    };
    const std::uint32_t uneven = below(3) == 0 ? below(count) : count;  // Leaves its groups.
    for (unsigned i = 0; i < collective_count; ++i) {
      for (std::uint32_t row = 0; row < rows; ++row) {
        std::vector<std::uint32_t> group;
        for (std::uint32_t column = 0; column < columns; ++column)
          if (row * columns + column != uneven) group.push_back(row * columns + column);
        add(group, 3 * i);
      }
      for (std::uint32_t column = 0; column < columns; ++column) {
        std::vector<std::uint32_t> group;
        for (std::uint32_t row = 0; row < rows; ++row) group.push_back(row * columns + column);
        add(group, 3 * i + 1);
      }
      for (std::uint32_t rank = 0; rank + 1 < count; rank += 2) add({rank, rank + 1}, 3 * i + 2);
    }
  }

  std::vector<RankGraph> ranks() const {
    std::vector<RankGraph> all;
    for (const Graph& graph : graphs) all.push_back({&graph});
    return all;
  }

  std::vector<Graph> graphs;
  std::vector<MatchedCollective> collectives;
};

TEST(JointReplay, FoldedAndExactAreEqualToTheNanosecond) {
  std::size_t folded = 0;
  for (unsigned seed = 0; seed < 10'000; ++seed) {
    std::mt19937 random(seed);
    const RandomJob job(random);
    const std::vector<RankGraph> ranks = job.ranks();
    const JointReplay one = simulate_jointly(ranks, job.collectives, {.memory = false});
    const JointReplay all =
        simulate_jointly(ranks, job.collectives, {.memory = false, .folds = false});
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ASSERT_EQ(one.of(i).start, all.of(i).start) << "seed " << seed << ", rank " << i;
      ASSERT_EQ(one.of(i).finish, all.of(i).finish) << "seed " << seed << ", rank " << i;
      folded += one.first_alike[i] == i ? 0 : 1;
    }
  }
  EXPECT_GT(folded, 4'000U);
}

/// Every third of eight replays has the recorded durations, the others have longer ones; all tasks
/// are probed.
void expect_eight_alike(const JointRows& rows, const JointReplay& once) {
  const std::size_t count = rows.rank_count();
  std::vector<std::vector<Nanoseconds>> longer(count), starts(count), finishes(count);
  std::vector<std::vector<Probe>> probes(count);
  std::vector<JointRows::RankSets> sets(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto durations = rows.durations(i);
    for (const Nanoseconds time : durations) longer[i].push_back(2 * time + 7ns);
    for (std::uint32_t row = 0; row < durations.size(); ++row) probes[i].push_back({row, row});
    starts[i].resize(8 * durations.size()), finishes[i].resize(8 * durations.size());
    for (std::size_t set = 0; set < 8; ++set)
      sets[i].durations[set] =
          as_counts(set % 3 == 0 ? durations : std::span<const Nanoseconds>(longer[i]));
    sets[i].probe_times = {.probes = probes[i],
                           .starts = {as_counts(std::span(starts[i])), starts[i].size()},
                           .finishes = {as_counts(std::span(finishes[i])), finishes[i].size()}};
  }
  const std::vector<EightTimes> lengths = rows.replay_eight(sets);
  for (std::size_t i = 0; i < count; ++i) {
    const Timeline& expected = once.timelines[once.kept[i]];
    for (const std::size_t set : {0U, 3U, 6U}) {
      EXPECT_EQ(Nanoseconds(lengths[i][set]), expected.length);
      for (std::uint32_t task = 0; task < expected.start.size(); ++task) {
        const std::size_t at = set * expected.start.size() + rows.order(i)[task];
        ASSERT_EQ(starts[i][at], expected.start[task]) << "rank " << i << ", task " << task;
        ASSERT_EQ(finishes[i][at], expected.finish[task]) << "rank " << i << ", task " << task;
      }
    }
  }
}

TEST(JointReplay, RowsAndGraphAreEqualToTheNanosecond) {
  std::size_t in_rows = 0, jobs = 0;
  for (unsigned seed = 0; seed < 2'000; ++seed) {
    std::mt19937 random(seed);
    RandomJob job(random);
    std::vector<RankGraph> ranks = job.ranks();
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ranks[i].begins = Nanoseconds(random() % 3 * 400);
      for (std::uint32_t task = 12; task + 1 < job.graphs[i].task_count(); ++task) {
        if (random() % 4 != 0) continue;
        job.graphs[i].task(TaskId{task}).tail = TailShare::nearest(0.25);
        if (task + 2 >= job.graphs[i].task_count()) continue;
        job.graphs[i].add({.before = TaskId{task},
                           .after = TaskId{task + 2},
                           .lag = Nanoseconds(random() % 50),
                           .tail = TailShare::nearest(0.5)});
      }
      if (random() % 4 == 0) job.graphs[i].remove(TaskId{12});
    }
    const JointReplay rows = simulate_jointly(ranks, job.collectives, {.memory = false});
    const JointReplay graph =
        simulate_jointly(ranks, job.collectives, {.reasons = true, .memory = false});
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      ASSERT_EQ(rows.of(i).start, graph.of(i).start) << "seed " << seed << ", rank " << i;
      ASSERT_EQ(rows.of(i).finish, graph.of(i).finish) << "seed " << seed << ", rank " << i;
    }
    ++jobs;
    std::vector<RankGraph> kept;
    std::vector<std::uint32_t> place(ranks.size());
    for (const std::uint32_t rank : rows.kept)
      place[rank] = static_cast<std::uint32_t>(kept.size()), kept.push_back(ranks[rank]);
    std::vector<MatchedCollective> folded = folded_collectives(job.collectives, rows.first_alike);
    for (MatchedCollective& collective : folded) {
      for (CollectiveMember& one : collective.members) one.rank = place[one.rank];
    }
    const auto found =
        JointRows::make(kept, folded, seed % 2 == 0 ? RowOrder::kept : RowOrder::near);
    if (!found) continue;
    ++in_rows;
    expect_eight_alike(*found, rows);
  }
  EXPECT_GT(in_rows, jobs / 2);
}

}  // namespace
}  // namespace foretrace

#include "transform/memory/cheapest_drop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>

namespace foretrace {
namespace {

/// Random blocks of a chain; recomputing a block shares work with some blocks before it.
DropProblem random_problem(std::uint64_t seed) {
  const auto next = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (seed >> 33) % below;
  };
  DropProblem problem;
  const std::uint64_t count = 1 + next(11);
  Bytes all{};
  for (std::uint32_t i = 0; i < count; ++i) {
    problem.times.push_back(Nanoseconds(static_cast<std::int64_t>(next(20))));
    std::set<std::uint32_t> work = {i};
    while (next(3) == 0) work.insert(static_cast<std::uint32_t>(next(i + 1)));
    problem.items.push_back({.bytes = Bytes{static_cast<std::int64_t>(1 + next(30))},
                             .work = {work.begin(), work.end()}});
    all += problem.items.back().bytes;
  }
  problem.wanted =
      Bytes{static_cast<std::int64_t>(next(static_cast<std::uint64_t>(all.count) + 1))};
  return problem;
}

/// Tries all choices.
Nanoseconds least_time(const DropProblem& problem) {
  std::optional<Nanoseconds> least;
  for (std::uint32_t set = 0; set < 1U << problem.items.size(); ++set) {
    std::set<std::uint32_t> work;
    Bytes bytes{};
    for (std::uint32_t i = 0; i < problem.items.size(); ++i) {
      if ((set >> i & 1U) == 0) continue;
      bytes += problem.items[i].bytes;
      work.insert(problem.items[i].work.begin(), problem.items[i].work.end());
    }
    if (bytes < problem.wanted) continue;
    Nanoseconds time{0};
    for (const std::uint32_t task : work) time += problem.times[task];
    least = std::min(least.value_or(time), time);
  }
  return least.value();
}

TEST(CheapestDrop, TheSearchFindsWhatTryingAllChoicesFinds) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const DropProblem problem = random_problem(seed);
    const DropChoice greedy = drop_greedily(problem);
    const DropChoice cheapest = drop_cheapest(problem);
    ASSERT_GE(greedy.bytes, problem.wanted) << seed;
    ASSERT_GE(cheapest.bytes, problem.wanted) << seed;
    ASSERT_TRUE(cheapest.least) << seed;
    ASSERT_LE(cheapest.time, greedy.time) << seed;
    ASSERT_EQ(cheapest.time, least_time(problem)) << seed;
    if (cheapest.time < greedy.time) ++better;
  }
  EXPECT_GT(better, 0) << "greedy was always as good: the search is not tested";
}

TEST(CheapestDrop, GreedyTakesTheMostBytesForTheTime) {
  const DropProblem problem{.items = {{Bytes{10}, {0}}, {Bytes{10}, {1}}, {Bytes{10}, {2}}},
                            .times = {5ns, 1ns, 3ns},
                            .wanted = Bytes{20}};
  EXPECT_EQ(drop_greedily(problem).items, (std::vector<std::uint32_t>{1, 2}));
}

TEST(CheapestDrop, SharedWorkIsPaidOnce) {
  const DropProblem problem{.items = {{Bytes{10}, {0}}, {Bytes{10}, {0, 1}}, {Bytes{10}, {2}}},
                            .times = {4ns, 1ns, 4ns},
                            .wanted = Bytes{20}};
  const DropChoice choice = drop_greedily(problem);
  EXPECT_EQ(choice.items, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(choice.time, 5ns);
}

TEST(CheapestDrop, ManyEqualBlocksEndWithTheBestFoundWhenTheEffortIsSpent) {
  DropProblem problem{.items = {}, .times = {}, .wanted = Bytes{5'003}};
  for (std::uint32_t i = 0; i < 400; ++i) {
    problem.items.push_back({Bytes{20 + i % 7}, {i}});
    problem.times.push_back(Nanoseconds(100 + i * 7 % 13));
  }
  const DropChoice greedy = drop_greedily(problem);
  const DropChoice choice = drop_cheapest(problem, 100'000);
  EXPECT_GE(choice.bytes, problem.wanted);
  EXPECT_LE(choice.time, greedy.time);
}

TEST(CheapestDrop, DropsAllWhereAllIsNotEnough) {
  const DropProblem problem{.items = {{Bytes{10}, {0}}}, .times = {5ns}, .wanted = Bytes{20}};
  EXPECT_EQ(drop_cheapest(problem).items, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace foretrace

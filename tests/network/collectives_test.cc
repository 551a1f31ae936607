// Facts about the closed forms, with the digits that were published or computed by hand, and a test
// that the expansion of each algorithm agrees with its closed form.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "foretrace/error.h"
#include "network/collective.h"
#include "support/expand.h"

namespace foretrace {
namespace {

constexpr LinkCost kUniform{5us, Bandwidth{12.5e9}, 0};
constexpr Bytes kHundredMegabytes{100'000'000};

double closed_ms(std::string_view name, const Call& call, LinkCosts costs = {&kUniform, 1}) {
  const auto algorithm = find_algorithm(name);
  check_call(name, *algorithm, call, costs);
  return static_cast<double>(algorithm->closed_form(call, costs).count()) / 1e6;
}

double expanded_ms(std::string_view name, const Call& call, LinkCosts costs = {&kUniform, 1}) {
  return static_cast<double>(expand(*find_algorithm(name), call, costs).time.count()) / 1e6;
}

struct Fact {
  const char* algorithm;
  Operation operation;
  double four, eight;  ///< ms with 4 and 8 ranks.
};

// alpha = 5 us, 12.5 GB/s, 100 MB.
const Fact kFacts[] = {
    {"ring", Operation::all_reduce, 12.030, 14.070},
    {"halving_doubling", Operation::all_reduce, 12.020, 14.030},
    {"recursive_doubling", Operation::all_reduce, 16.010, 24.015},
    {"double_tree", Operation::all_reduce, 16.020, 16.030},
    {"ring", Operation::all_gather, 6.015, 7.035},
    {"ring", Operation::reduce_scatter, 6.015, 7.035},
    {"pairwise", Operation::all_to_all, 6.015, 7.035},
    {"tree", Operation::broadcast, 16.010, 24.015},
    {"scatter_gather", Operation::broadcast, 12.025, 14.050},
};

TEST(Collectives, ClosedFormsGiveThePublishedTable) {
  for (const Fact& fact : kFacts) {
    SCOPED_TRACE(fact.algorithm);
    EXPECT_NEAR(closed_ms(fact.algorithm, {fact.operation, 4, kHundredMegabytes}), fact.four, 5e-4);
    EXPECT_NEAR(closed_ms(fact.algorithm, {fact.operation, 8, kHundredMegabytes}), fact.eight,
                5e-4);
  }
}

TEST(Collectives, SmallMessagesPreferFewRounds) {
  const auto us = [](const char* name, std::uint32_t ranks) {
    return closed_ms(name, {Operation::all_reduce, ranks, Bytes{64 * 1024}}) * 1e3;
  };
  EXPECT_NEAR(us("ring", 8), 79.2, 0.05);
  EXPECT_NEAR(us("halving_doubling", 8), 39.2, 0.05);
  EXPECT_NEAR(us("recursive_doubling", 8), 30.7, 0.05);
  EXPECT_NEAR(us("ring", 64), 640.3, 0.05);
  EXPECT_NEAR(us("halving_doubling", 64), 70.3, 0.05);
  EXPECT_NEAR(us("recursive_doubling", 64), 61.5, 0.05);
}

TEST(Collectives, LevelsKeepSlowLinksFromCarryingAll) {
  const LinkCost costs[] = {{3us, Bandwidth{150e9}, 0}, {5us, Bandwidth{12.5e9}, 0}};
  const Call call{.ranks = 64, .bytes = kHundredMegabytes, .levels = {8, 8}};
  EXPECT_NEAR(closed_ms("hierarchical", call, costs), 3.029, 5e-4);
  EXPECT_NEAR(expanded_ms("hierarchical", call, costs), 3.029, 5e-4);
  EXPECT_NEAR(closed_ms("ring", {.ranks = 64, .bytes = kHundredMegabytes}), 16.380, 5e-4);
}

TEST(Collectives, ParameterServers) {
  const Call separate{.ranks = 8, .bytes = kHundredMegabytes, .servers = 2};
  EXPECT_NEAR(closed_ms("parameter_server", separate), 64.0, 0.05);
  EXPECT_NEAR(closed_ms("colocated", {.ranks = 8, .bytes = kHundredMegabytes}), 14.0, 0.05);
  const Call byteps{.ranks = 8, .bytes = kHundredMegabytes, .servers = 4};
  EXPECT_NEAR(closed_ms("byteps", byteps), 10.18 + 0.01, 0.01);
  const LinkCost no_latency{0ns, Bandwidth{1e9}, 0};
  const Call none{.ranks = 8, .bytes = {1'000'000}, .servers = 0};
  EXPECT_NEAR(closed_ms("byteps", none, {&no_latency, 1}), 2 * 7 / 8.0, 1e-6);
  const Call as_many{.ranks = 8, .bytes = {1'000'000}, .servers = 8};
  EXPECT_NEAR(closed_ms("byteps", as_many, {&no_latency, 1}), 1, 1e-6);
}

/// The numbers of ranks to test an algorithm with; it refuses some of them.
constexpr std::uint32_t kRanks[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 31, 32, 64};

TEST(Collectives, ExpansionsAgreeWithClosedFormsToANanosecondARound) {
  const LinkCost cost{5us, Bandwidth{12.5e9}, 0.02};
  int compared = 0;
  for (const AlgorithmEntry& entry : algorithms()) {
    if (entry.name == "double_tree" || entry.name == "byteps") continue;  // See below.
    const auto algorithm = entry.make();
    for (const std::string_view operation : operation_names()) {
      for (const std::uint32_t ranks : kRanks) {
        for (const std::int64_t bytes : {0, 1000, 65'536, 12'345'678}) {
          const Call call{.operation = read_operation(operation),
                          .ranks = ranks,
                          .bytes = {bytes},
                          .levels = {ranks},
                          .servers = 2};
          if (!algorithm->refusal(call).empty()) continue;
          SCOPED_TRACE(std::string(entry.name) + " " + std::string(operation) + " " +
                       std::to_string(ranks) + " " + std::to_string(bytes));
          // Reductions overlap with messages where ranks have different tasks, so compare without
          // reductions.
          LinkCost used = cost;
          const bool alike = (ranks & (ranks - 1)) == 0 || entry.name == "ring";
          if (!alike || entry.name == "parameter_server" || entry.name == "colocated")
            used.reduce_ns_per_byte = 0;
          const Nanoseconds closed = algorithm->closed_form(call, {&used, 1});
          const Expansion expansion = expand(*algorithm, call, {&used, 1});
          const std::int64_t rounds = algorithm->plan(call, {&used, 1}).rounds;
          EXPECT_LE(std::abs((expansion.time - closed).count()), rounds + 1);
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 500);
}

TEST(Collectives, PipelinesAddWhatFillingThemTakes) {
  for (const std::uint32_t ranks : kRanks) {
    SCOPED_TRACE(ranks);
    const Call call{.ranks = ranks, .bytes = kHundredMegabytes, .servers = ranks / 2};
    for (const char* name : {"double_tree", "byteps"}) {
      SCOPED_TRACE(name);
      EXPECT_LE(expanded_ms(name, call), closed_ms(name, call) * 1.03);
      // The busiest port carries the bytes of the closed form only for many ranks.
      if (ranks < 16) continue;
      EXPECT_GE(expanded_ms(name, call), closed_ms(name, call) * 0.97);
    }
  }
}

/// The bytes that must leave all ranks together, at least.
double least_moved(const Call& call) {
  const double n = static_cast<double>(call.bytes.count), others = call.ranks - 1;
  switch (call.operation) {
    case Operation::all_reduce:
      return 2 * others * n / call.ranks;  // Every part goes to one rank and comes back.
    case Operation::send_receive:
      return n * call.ranks;
    case Operation::reduce:
    case Operation::reduce_scatter:
      return others * n / call.ranks;
    default:
      return others * n / 2;
  }
}

TEST(Collectives, MoveAtLeastTheBytesTheyMustAndOnlyToEndpoints) {
  for (const AlgorithmEntry& entry : algorithms()) {
    const auto algorithm = entry.make();
    for (const std::string_view operation : operation_names()) {
      for (const std::uint32_t ranks : kRanks) {
        const Call call{.operation = read_operation(operation),
                        .ranks = ranks,
                        .bytes = {1 << 20},
                        .levels = {ranks},
                        .servers = 2};
        if (!algorithm->refusal(call).empty()) continue;
        SCOPED_TRACE(std::string(entry.name) + " " + std::string(operation) + " " +
                     std::to_string(ranks));
        const Plan plan = algorithm->plan(call, {&kUniform, 1});
        std::int64_t moved = 0;
        std::vector<Message> messages;
        for (std::uint32_t round = 0; round < plan.rounds; ++round) {
          for (std::uint32_t rank = 0; rank < plan.endpoints; ++rank) {
            messages.clear();
            algorithm->sends(call, plan, rank, round, messages);
            for (const Message& message : messages) {
              EXPECT_LT(message.to, plan.endpoints);
              EXPECT_NE(message.to, rank);
              EXPECT_GE(message.bytes.count, 0);
              moved += message.bytes.count;
            }
          }
        }
        EXPECT_GE(static_cast<double>(moved) * 1.0001, least_moved(call));
      }
    }
  }
}

TEST(Collectives, ChainsBelowATreeGiveEachRankTheWholeResult) {
  for (const std::vector<std::uint32_t>& levels :
       {std::vector<std::uint32_t>{4, 6}, {8, 3}, {1, 8}, {5, 1}}) {
    SCOPED_TRACE(levels[0]);
    const Call call{.ranks = levels[0] * levels[1], .bytes = {10'000'000}, .levels = levels};
    const auto tree = find_algorithm("double_tree");
    const Plan plan = tree->plan(call, {&kUniform, 1});
    std::vector<std::int64_t> up(call.ranks), down(call.ranks);
    std::vector<Message> messages;
    for (std::uint32_t round = 0; round < plan.rounds; ++round) {
      for (std::uint32_t rank = 0; rank < call.ranks; ++rank) {
        messages.clear();
        tree->sends(call, plan, rank, round, messages);
        for (const Message& message : messages) {
          if (message.reduces) up[rank] += message.bytes.count;
          if (!message.reduces) down[message.to] += message.bytes.count;
        }
      }
    }
    // In each tree, every rank but the root sends its half to one rank, and gets it back from that
    // rank.
    EXPECT_EQ(up, down);
    EXPECT_EQ(std::accumulate(up.begin(), up.end(), std::int64_t{0}),
              (call.ranks - 1) * call.bytes.count);
  }
}

TEST(Collectives, ARingPassesOnOnlyWhatArrivedTheRoundBefore) {
  const Call call{.operation = Operation::all_gather, .ranks = 7, .bytes = {7 * 128}};
  const auto ring = find_algorithm("ring");
  const Expansion expansion = expand(*ring, call, {&kUniform, 1});
  EXPECT_EQ(expansion.messages, 7U * 6);
  EXPECT_EQ(expansion.moved.count, 6 * 7 * 128);
}

TEST(Collectives, UnequalSharesTakeAtLeastAsLongAsTheBusiestPort) {
  Call call{.operation = Operation::all_to_all, .ranks = 4, .bytes = kHundredMegabytes};
  const double even = closed_ms("pairwise", call);
  call.shares = {1, 1, 1, 5};
  EXPECT_NEAR(closed_ms("pairwise", call), 0.015 + 8.0 * 3 * 5 / 8, 5e-4);
  EXPECT_GE(expanded_ms("pairwise", call), closed_ms("pairwise", call) - 1e-6);
  call.shares = {2, 2, 2, 2};
  EXPECT_DOUBLE_EQ(closed_ms("pairwise", call), even);
}

std::string refusal_of(std::string_view name, const Call& call, LinkCost cost = kUniform) {
  try {
    check_call(name, *find_algorithm(name), call, {&cost, 1});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Collectives, SayWhatTheyCannotServe) {
  EXPECT_EQ(refusal_of("ring", {Operation::broadcast, 4}),
            "ring serves all_reduce, all_gather, reduce_scatter, not broadcast");
  EXPECT_EQ(refusal_of("scatter_gather", {Operation::broadcast, 6}),
            "scatter_gather needs a power of two of ranks, got 6");
  EXPECT_EQ(refusal_of("recursive_doubling", {Operation::all_gather, 12}),
            "recursive_doubling needs a power of two of ranks, got 12");
  EXPECT_EQ(refusal_of("hierarchical", {.ranks = 16, .levels = {3, 4}}),
            "hierarchical needs levels, such as 8x4 for 32 ranks, whose product is 16");
  EXPECT_EQ(refusal_of("parameter_server", {.ranks = 16}),
            "parameter_server needs at least 1 server");
  EXPECT_EQ(refusal_of("byteps", {.ranks = 4, .servers = 5}),
            "byteps needs at most as many servers as ranks, 4, got 5");
  EXPECT_EQ(refusal_of("ring", {.ranks = 4}, {1us, Bandwidth{0}, 0}),
            "bandwidth: must be greater than 0, got 0 B/s");
  EXPECT_EQ(refusal_of("rign", {.ranks = 4}).substr(0, 57),
            "there is no algorithm 'rign' (did you mean \"ring\"?); must");
}

TEST(Collectives, NamesOfOperationsAreReadAsPeopleWriteThem) {
  for (const char* name : {"all_reduce", "allreduce", "AllReduce", "all-reduce"})
    EXPECT_EQ(read_operation(name), Operation::all_reduce);
  EXPECT_EQ(read_operation("sendrecv"), Operation::send_receive);
  EXPECT_THROW(read_operation("all_reduse"), Error);
}

TEST(Collectives, BusBandwidthIsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Operation::broadcast, 8), 1);
}

TEST(Collectives, ThatWouldTakeAThousandHoursAreRefused) {
  const Call call{.operation = Operation::all_reduce, .ranks = 8, .bytes = Bytes{1'000'000'000}};
  const LinkCost slow{1us, Bandwidth{1}, 0}, fast{1us, Bandwidth{1e9}, 0};
  const auto ring = find_algorithm("ring");
  EXPECT_NO_THROW(check_call("ring", *ring, call, {&fast, 1}));
  try {
    check_call("ring", *ring, call, {&slow, 1});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "bytes: must take less than 1000 hours, but 1 GB take longer at 1 B/s");
  }
  const Call more{.operation = Operation::all_reduce,
                  .ranks = 8,
                  .bytes = Bytes{std::numeric_limits<std::int64_t>::max()}};
  EXPECT_EQ(ring->closed_form(more, {&slow, 1}), std::chrono::hours(1000));
}

}  // namespace
}  // namespace foretrace

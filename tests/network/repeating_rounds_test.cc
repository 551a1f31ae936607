// Rounds that repeat are skipped, and nothing else changes: compared with the same messages in
// rounds that look different.

#include "network/flow/repeating_rounds.h"

#include <gtest/gtest.h>

#include <random>

#include "network/flow/wires.h"

namespace foretrace {
namespace {

/// The same messages, of which every other round claims to be on another level, which costs the
/// same.
class Alternating final : public Algorithm {
 public:
  explicit Alternating(const Algorithm& algorithm) : algorithm_(algorithm) {}
  std::string refusal(const Call& call) const override { return algorithm_.refusal(call); }
  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    return algorithm_.closed_form(call, costs);
  }
  Plan plan(const Call& call, LinkCosts costs) const override {
    return algorithm_.plan(call, costs);
  }
  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::size_t before = out.size();
    algorithm_.sends(call, plan, rank, round, out);
    for (std::size_t i = before; i < out.size(); ++i)
      out[i].level = static_cast<std::uint8_t>(round % 2);
  }

 private:
  const Algorithm& algorithm_;
};

/// Ports of different bandwidths and latencies, and a link that every third rank shares.
Wires uneven_wires(std::uint32_t ranks, std::mt19937& random) {
  Wires wires;
  for (std::uint32_t i = 0; i < 2 * ranks; ++i)
    wires.capacities.push_back({1e9 * (random() % 8 == 0 ? 7.3 : 50)});
  wires.capacities.push_back({1e9 * static_cast<double>(1 + random() % 300)});
  wires.route = [ranks, slow = random() % ranks](std::uint32_t from, std::uint32_t to,
                                                 std::vector<std::uint32_t>& route) {
    route = {2 * from, 2 * to + 1};
    if (from % 3 == 0) route.push_back(2 * ranks);
    return from == slow ? 9us : 2us;
  };
  return wires;
}

TEST(RepeatingRounds, SkippingThemChangesNoTime) {
  std::mt19937 random(1);
  int skipped = 0;
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    const auto ranks = static_cast<std::uint32_t>(2 + random() % 60);
    const Wires wires = uneven_wires(ranks, random);
    const auto algorithm = find_algorithm(run % 4 == 0 ? "pipeline" : "ring");
    const Call call{.operation = run % 4 == 0 ? Operation::broadcast : Operation::all_reduce,
                    .ranks = ranks,
                    .bytes = {static_cast<std::int64_t>(1 + random() % 30'000'000)}};
    const LinkCost cost{2us, Bandwidth{50e9}, run % 3 == 0 ? .01 : 0};
    const Expansion all = simulate_flows(wires, Alternating(*algorithm), call, {&cost, 1});
    const Expansion some = simulate_flows(wires, *algorithm, call, {&cost, 1});
    EXPECT_EQ(all.skipped, 0U);
    EXPECT_EQ(some.time, all.time);
    EXPECT_EQ(some.messages, all.messages);
    EXPECT_EQ(some.moved, all.moved);
    skipped += some.skipped > 0 ? 1 : 0;
  }
  EXPECT_GT(skipped, 50);
}

TEST(RepeatingRounds, AreNotSkippedWhereOneByteTakesTime) {
  // One part has a byte more. It passes the slow port, which needs a nanosecond for it, only once a
  // lap: the rounds before that take equally long, and say nothing about it.
  const LinkCost cost{2us, Bandwidth{50e9}};
  const Call call{.ranks = 64, .bytes = {64 * 1010 + 1}};
  const auto ring = find_algorithm("ring");
  Wires wires = uniform_wires(64, cost);
  wires.capacities[10] = {1e9};
  const Expansion all = simulate_flows(wires, Alternating(*ring), call, {&cost, 1});
  const Expansion flows = simulate_flows(wires, *ring, call, {&cost, 1});
  EXPECT_EQ(flows.time, all.time);
  EXPECT_EQ(flows.skipped, 0U);
}

TEST(RepeatingRounds, OfALargeRingFewMessagesAreSimulated) {
  const Call call{.ranks = 1024, .bytes = {1'000'000'000}};
  const LinkCost cost{5us, Bandwidth{50e9}};
  const Expansion flows =
      simulate_flows(uniform_wires(1024, cost), *find_algorithm("ring"), call, {&cost, 1});
  EXPECT_EQ(flows.messages, 1024U * 2046);
  EXPECT_LT(flows.messages - flows.skipped, 1024U * 32);
}

TEST(RepeatingRounds, EndWhereARankSendsSomethingElse) {
  const LinkCost cost{5us, Bandwidth{50e9}};
  const Call call{.ranks = 8, .bytes = {1'000'001}};
  const auto ring = find_algorithm("ring");
  const Plan plan = ring->plan(call, {&cost, 1});
  const RepeatingRounds found = repeating_rounds(*ring, call, plan, {&cost, 1}, 2);
  EXPECT_EQ(found.first, 2U);
  EXPECT_EQ(found.end, 7U);  // Then messages are no longer reduced.
  EXPECT_EQ(found.most.count - found.least.count, 1);
  EXPECT_EQ(found.messages, 8U);
  EXPECT_EQ(repeating_rounds(*ring, call, plan, {&cost, 1}, 7).end, plan.rounds);
  EXPECT_EQ(repeating_rounds(*find_algorithm("tree"), call, plan, {&cost, 1}, 0).end, 1U);
}

}  // namespace
}  // namespace foretrace

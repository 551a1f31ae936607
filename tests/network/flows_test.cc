// The fluid model: rates against an oracle that raises all rates together in the plainest way,
// bytes against the bytes that links carried, and times computed by hand.

#include "network/flow/flows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "foretrace/error.h"

namespace foretrace {
namespace {

struct Demand {
  std::vector<std::uint32_t> route;
};

/// The rates of all flows. Raises those that are not fixed until a link is full, fixes the flows of
/// that link, and continues.
std::vector<double> oracle(const std::vector<double>& capacities,
                           const std::vector<Demand>& demands) {
  std::vector<double> rates(demands.size(), 0);
  std::vector<double> left = capacities;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < demands.size(); ++i) open.push_back(i);
  while (!open.empty()) {
    double least = std::numeric_limits<double>::infinity();
    std::size_t tightest = 0;
    for (std::size_t link = 0; link < left.size(); ++link) {
      double count = 0;
      for (const std::size_t i : open)
        count +=
            static_cast<double>(std::count(demands[i].route.begin(), demands[i].route.end(), link));
      if (count > 0 && left[link] / count < least) least = left[link] / count, tightest = link;
    }
    std::vector<std::size_t> still;
    for (const std::size_t i : open) {
      const auto& route = demands[i].route;
      if (std::find(route.begin(), route.end(), tightest) == route.end()) {
        still.push_back(i);
        continue;
      }
      rates[i] = std::max(0.0, least);
      for (const std::uint32_t link : route) left[link] -= rates[i];
    }
    for (double& one : left) one = std::max(0.0, one);
    open = std::move(still);
  }
  return rates;
}

struct Case {
  std::vector<double> capacities;
  std::vector<Demand> demands;
};

Case random_case(std::mt19937& random) {
  Case made;
  const std::size_t links = 1 + random() % 8, flows = 1 + random() % 12;
  for (std::size_t i = 0; i < links; ++i)
    made.capacities.push_back(static_cast<double>(1 + random() % 100));
  for (std::size_t i = 0; i < flows; ++i) {
    Demand demand;
    for (std::uint32_t link = 0; link < links; ++link) {
      if (random() % 3 == 0) demand.route.push_back(link);
    }
    if (demand.route.empty()) demand.route.push_back(static_cast<std::uint32_t>(random() % links));
    made.demands.push_back(demand);
  }
  return made;
}

std::vector<Bandwidth> bandwidths(const std::vector<double>& capacities) {
  std::vector<Bandwidth> all;
  for (const double capacity : capacities) all.push_back({capacity * 1e9});
  return all;
}

TEST(Flows, RatesAreThoseOfTheOracleOnTenThousandNetworks) {
  std::mt19937 random(1);
  for (int run = 0; run < 10'000; ++run) {
    SCOPED_TRACE(run);
    const Case made = random_case(random);
    Flows flows(bandwidths(made.capacities));
    std::vector<FlowId> ids;
    for (const Demand& demand : made.demands)
      ids.push_back(flows.begin(demand.route, Bytes{1'000'000}, 0ns));
    const std::vector<double> expected = oracle(made.capacities, made.demands);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ASSERT_NEAR(flows.rate(ids[i]), expected[i] * 1e9, 1) << "flow " << i;
  }
}

TEST(Flows, RatesAfterEachEndAndBeginAreThoseOfTheOracle) {
  std::mt19937 random(2);
  for (int run = 0; run < 300; ++run) {
    SCOPED_TRACE(run);
    const Case made = random_case(random);
    Flows flows(bandwidths(made.capacities));
    std::map<FlowId, Demand> running;
    Nanoseconds now = 0ns;
    std::size_t begun = 0;
    while (begun < made.demands.size() || !running.empty()) {
      const auto next = flows.next();
      if (begun < made.demands.size() && (!next || random() % 2 == 0)) {
        const Demand& demand = made.demands[begun++];
        const Bytes bytes{static_cast<std::int64_t>(1 + random() % 10'000)};
        running[flows.begin(demand.route, bytes, now)] = demand;
      } else {
        ASSERT_TRUE(next);
        now = *next;
        std::vector<FlowId> ended;
        flows.take_ended(now, ended);
        for (const FlowId id : ended) ASSERT_EQ(running.erase(id), 1U);
      }
      std::vector<Demand> demands;
      for (const auto& [id, demand] : running) demands.push_back(demand);
      const std::vector<double> expected = oracle(made.capacities, demands);
      std::size_t i = 0;
      for (const auto& [id, demand] : running) ASSERT_NEAR(flows.rate(id), expected[i++] * 1e9, 1);
    }
  }
}

TEST(Flows, AFlowEndsWhenAllItsBytesHaveBeenTransferred) {
  std::mt19937 random(3);
  for (int run = 0; run < 300; ++run) {
    SCOPED_TRACE(run);
    const Case made = random_case(random);
    Flows flows(bandwidths(made.capacities));
    std::map<FlowId, double> left;
    for (const Demand& demand : made.demands) {
      const std::int64_t bytes = 1000 + random() % 1'000'000;
      left[flows.begin(demand.route, Bytes{bytes}, 0ns)] = static_cast<double>(bytes);
    }
    Nanoseconds now = 0ns;
    while (const auto next = flows.next()) {
      for (auto& [id, bytes] : left)
        bytes -= flows.rate(id) * static_cast<double>((*next - now).count()) * 1e-9;
      std::vector<FlowId> ended;
      flows.take_ended(now = *next, ended);
      // Whole nanoseconds: an end comes up to 1 ns late, which is up to 100 bytes here.
      for (const FlowId id : ended) EXPECT_NEAR(left.extract(id).mapped(), 0, 100) << id;
    }
    EXPECT_TRUE(left.empty());
  }
}

TEST(Flows, TheOrderOfEqualFlowsDoesNotChangeABit) {
  std::mt19937 random(4);
  for (int run = 0; run < 300; ++run) {
    Case made = random_case(random);
    const auto rates = [&](const std::vector<Demand>& demands) {
      Flows flows(bandwidths(made.capacities));
      std::map<std::vector<std::uint32_t>, double> found;
      std::vector<FlowId> ids;
      for (const Demand& demand : demands)
        ids.push_back(flows.begin(demand.route, Bytes{1000}, 0ns));
      for (std::size_t i = 0; i < ids.size(); ++i) found[demands[i].route] = flows.rate(ids[i]);
      return found;
    };
    const auto before = rates(made.demands);
    std::shuffle(made.demands.begin(), made.demands.end(), random);
    EXPECT_EQ(rates(made.demands), before);
  }
}

TEST(Flows, TheSharedLinkIsDividedAndTheRestGoesToOthers) {
  Flows flows({Bandwidth{10e9}, Bandwidth{4e9}});
  const std::uint32_t a[] = {0}, ab[] = {0, 1}, b[] = {1};
  const FlowId first = flows.begin(a, Bytes{80}, 0ns);
  const FlowId second = flows.begin(ab, Bytes{20}, 0ns);
  const FlowId third = flows.begin(b, Bytes{40}, 0ns);
  EXPECT_DOUBLE_EQ(flows.rate(first), 8e9);
  EXPECT_DOUBLE_EQ(flows.rate(second), 2e9);
  EXPECT_DOUBLE_EQ(flows.rate(third), 2e9);
  std::vector<FlowId> ended;
  ASSERT_EQ(flows.next(), 10ns);
  flows.take_ended(10ns, ended);
  EXPECT_EQ(ended, (std::vector<FlowId>{first, second}));
  EXPECT_DOUBLE_EQ(flows.rate(third), 4e9);
  EXPECT_EQ(flows.next(), 15ns);  // 20 bytes are left.
}

TEST(Flows, AChangeSolvesOnlyWhatItAffects) {
  // A chain: each link is shared by its own flow and by one that crosses to the next link, and the
  // links get wider, so that each is limited by another link than its neighbor.
  constexpr std::uint32_t kLinks = 1000;
  std::vector<Bandwidth> capacities;
  for (std::uint32_t i = 0; i < kLinks; ++i) capacities.push_back({1e9 * (1 + i)});
  Flows flows(capacities);
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    const std::uint32_t own[] = {i}, both[] = {i, (i + 1) % kLinks};
    flows.begin(own, Bytes{1'000'000'000}, 0ns);
    flows.begin(both, Bytes{1'000'000'000}, 0ns);
  }
  const std::uint32_t last[] = {kLinks - 1};
  (void)flows.next();
  const std::uint64_t before = flows.computed_rates();
  EXPECT_GE(before, 2 * kLinks);
  flows.begin(last, Bytes{1000}, 0ns);
  (void)flows.next();
  EXPECT_LE(flows.computed_rates() - before, 100U);
}

TEST(Flows, AFlowThatLosesItsLimitSlowsFasterOnes) {
  Flows flows({Bandwidth{10e9}, Bandwidth{4e9}, Bandwidth{9e9}});
  const std::uint32_t a[] = {0}, ab[] = {0, 1}, b[] = {1}, c[] = {2};
  const FlowId first = flows.begin(a, Bytes{1000}, 0ns);
  const FlowId second = flows.begin(ab, Bytes{1000}, 0ns);
  const FlowId third = flows.begin(b, Bytes{20}, 0ns);
  const FlowId fourth = flows.begin(c, Bytes{1000}, 0ns);
  EXPECT_DOUBLE_EQ(flows.rate(first), 8e9);
  EXPECT_DOUBLE_EQ(flows.rate(fourth), 9e9);
  std::vector<FlowId> ended;
  ASSERT_EQ(flows.next(), 10ns);
  flows.take_ended(10ns, ended);
  EXPECT_EQ(ended, std::vector<FlowId>{third});
  EXPECT_DOUBLE_EQ(flows.rate(first), 6e9);
  EXPECT_DOUBLE_EQ(flows.rate(second), 4e9);
  EXPECT_DOUBLE_EQ(flows.rate(fourth), 9e9);
}

TEST(Flows, NothingToSendEndsAtOnce) {
  Flows flows({Bandwidth{1e9}});
  const std::uint32_t only[] = {0};
  const FlowId empty = flows.begin(only, Bytes{0}, 5ns);
  const FlowId local = flows.begin({}, Bytes{100}, 5ns);
  EXPECT_EQ(flows.next(), 5ns);
  std::vector<FlowId> ended;
  flows.take_ended(5ns, ended);
  EXPECT_EQ(ended, (std::vector<FlowId>{empty, local}));
  EXPECT_EQ(flows.next(), std::nullopt);
}

TEST(Flows, ALinkWithoutBandwidthIsRefused) { EXPECT_THROW(Flows({Bandwidth{0}}), Error); }

}  // namespace
}  // namespace foretrace

// Collectives on links: on an idle uniform network flows take as long as the closed form; where
// links are shared, they take longer.

#include "network/flow/wires.h"

#include <gtest/gtest.h>

#include <cmath>

#include "network/collectives/multi_rail.h"
#include "support/expand.h"

namespace foretrace {
namespace {

constexpr LinkCost kIdle{5us, Bandwidth{12.5e9}, 0};

TEST(Wires, FlowsOnAnIdleUniformNetworkTakeAsLongAsTheClosedForm) {
  int compared = 0;
  for (const AlgorithmEntry& entry : algorithms()) {
    // Pipelines and servers interleave messages on a port; see below.
    if (entry.name == "double_tree" || entry.name == "byteps" || entry.name == "in_network" ||
        entry.name == "parameter_server" || entry.name == "colocated")
      continue;
    const auto algorithm = entry.make();
    for (const std::string_view operation : operation_names()) {
      for (const std::uint32_t ranks : {2U, 4U, 7U, 8U, 16U}) {
        const Call call{.operation = read_operation(operation),
                        .ranks = ranks,
                        .bytes = {12'345'678},
                        .levels = {ranks}};
        if (!algorithm->refusal(call).empty()) continue;
        // Ranks that are idle in the first round send early, and share a port.
        const bool folds = entry.name == "tree" || entry.name == "halving_doubling" ||
                           entry.name == "recursive_doubling";
        if (folds && (ranks & (ranks - 1)) != 0) continue;
        SCOPED_TRACE(std::string(entry.name) + " " + std::string(operation) + " " +
                     std::to_string(ranks));
        const Nanoseconds closed = algorithm->closed_form(call, {&kIdle, 1});
        const Plan plan = algorithm->plan(call, {&kIdle, 1});
        const Wires wires = uniform_wires(plan.endpoints, kIdle);
        const Expansion flows = simulate_flows(wires, *algorithm, call, {&kIdle, 1});
        EXPECT_LE(std::abs((flows.time - closed).count()), plan.rounds + 1);
        EXPECT_LE(
            std::abs((closed_form_time(wires, *algorithm, call, {&kIdle, 1}) - closed).count()),
            plan.rounds + 1);
        EXPECT_EQ(flows.moved, expand(*algorithm, call, {&kIdle, 1}).moved);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 50);
}

TEST(Wires, PipelinesAndServersStayNearTheirClosedForms) {
  for (const char* name : {"double_tree", "in_network", "parameter_server", "colocated"}) {
    SCOPED_TRACE(name);
    const Call call{.ranks = 16, .bytes = {100'000'000}, .servers = 4};
    const auto algorithm = find_algorithm(name);
    const Plan plan = algorithm->plan(call, {&kIdle, 1});
    const Wires wires = uniform_wires(plan.endpoints, kIdle, plan.switches_from);
    const auto closed = static_cast<double>(algorithm->closed_form(call, {&kIdle, 1}).count());
    const Expansion flows = simulate_flows(wires, *algorithm, call, {&kIdle, 1});
    EXPECT_NEAR(static_cast<double>(flows.time.count()) / closed, 1, .1);
  }
}

/// Two ranks on each of two hosts; all traffic that leaves a host shares one link.
Wires two_hosts(double uplink) {
  Wires wires = uniform_wires(4, {1us, Bandwidth{10e9}});
  for (int i = 0; i < 4; ++i) wires.capacities.push_back({uplink});
  wires.route = [inner = wires.route](std::uint32_t from, std::uint32_t to,
                                      std::vector<std::uint32_t>& route) {
    const Nanoseconds latency = inner(from, to, route);
    if (from / 2 == to / 2) return latency;
    route.push_back(8 + from / 2);
    route.push_back(10 + to / 2);
    return 2 * latency;
  };
  return wires;
}

TEST(Wires, ASharedUplinkSlowsWhatCrossesIt) {
  const Call call{.operation = Operation::all_to_all, .ranks = 4, .bytes = {4'000'000}};
  const auto pairwise = find_algorithm("pairwise");
  const LinkCost cost{1us, Bandwidth{10e9}};
  // Each host sends 2 ranks x 2 peers x 1 MB over its uplink.
  const Expansion slow = simulate_flows(two_hosts(2e9), *pairwise, call, {&cost, 1});
  EXPECT_NEAR(static_cast<double>(slow.time.count()), 4e6 / 2e9 * 1e9, 0.15e6);
  const Expansion fast = simulate_flows(two_hosts(1e12), *pairwise, call, {&cost, 1});
  EXPECT_NEAR(static_cast<double>(fast.time.count()), 3e6 / 10e9 * 1e9, 0.02e6);
  EXPECT_GT(closed_form_time(two_hosts(2e9), *pairwise, call, {&cost, 1}), fast.time);
}

TEST(Wires, AllToAllsOfAMachineComputeFewRatesAMessage) {
  const Call call{.operation = Operation::all_to_all, .ranks = 128, .bytes = {64 << 20}};
  const Network network(find_cluster("dgx-h100", call.ranks));
  const LinkCost cost{5us, Bandwidth{50e9}};
  const Expansion flows =
      simulate_flows(wires_of(network, 0), *find_algorithm("pairwise"), call, {&cost, 1});
  EXPECT_EQ(flows.messages, 128U * 127U);
  // All flows are connected: solving what is connected would compute about 128 rates a message.
  EXPECT_LT(flows.computed_rates, 5 * flows.messages);
}

TEST(Wires, ChannelsOnRailsUseTheNicOfEachRank) {
  const LinkCost cost{1us, Bandwidth{100e9}};
  // Four hosts of four ranks; each rank has a NIC of its own, ten times slower than the links
  // inside the host.
  Wires wires = uniform_wires(16, cost);
  for (int i = 0; i < 32; ++i) wires.capacities.push_back({10e9});
  wires.route = [inner = wires.route](std::uint32_t from, std::uint32_t to,
                                      std::vector<std::uint32_t>& route) {
    const Nanoseconds latency = inner(from, to, route);
    if (from / 4 == to / 4) return latency;
    route.push_back(32 + from);
    route.push_back(48 + to);
    return latency;
  };
  const auto ring = find_algorithm("ring");
  const Call call{.ranks = 16, .bytes = {160'000'000}};
  const MultiRail rails(*ring, {{0, 1, 2, 3}});
  const Expansion one = simulate_flows(wires, *ring, call, {&cost, 1});
  const Expansion four = simulate_flows(wires, rails, call, {&cost, 1});
  EXPECT_EQ(four.moved, one.moved);
  const double faster =
      static_cast<double>(one.time.count()) / static_cast<double>(four.time.count());
  EXPECT_NEAR(faster, 4, .3);
}

}  // namespace
}  // namespace foretrace

#include <algorithm>
#include <cmath>

#include "ask/collective/pricing.h"
#include "foretrace/error.h"
#include "network/collectives/interleaved.h"
#include "network/collectives/on_rails.h"
#include "network/nccl/sends.h"

namespace foretrace {
namespace {

/// NCCL's hop over NVLink with protocol Simple; here it only decides how pipelines cut the data.
constexpr Nanoseconds kHopTime{3400};

std::string cut_name(const std::string& machine) { return machine.substr(0, machine.find(':')); }

/// The first `per_node` devices of each host; all of them for 0.
Cluster placed(const CollectiveQuestion& question, std::int64_t ranks, std::int64_t per_node) {
  if (per_node <= 0) return find_cluster(question.machine, ranks);
  Cluster cluster = find_cluster(question.machine, 1);
  const std::int64_t devices = std::max(1, cluster.facts.devices_per_host);
  if (per_node > devices)
    throw Error("--ranks-per-node: " + question.machine + " has " + std::to_string(devices) +
                " devices on a host, got " + std::to_string(per_node));
  const std::int64_t hosts = (ranks + per_node - 1) / per_node;
  cluster = find_cluster(question.machine, hosts * devices);
  std::vector<std::uint32_t> chosen;
  for (std::size_t i = 0; i < cluster.placement.size(); ++i) {
    if (static_cast<std::int64_t>(i) % devices < per_node) chosen.push_back(cluster.placement[i]);
  }
  chosen.resize(std::min<std::size_t>(chosen.size(), static_cast<std::size_t>(ranks)));
  cluster.placement = std::move(chosen);
  return cluster;
}

/// Our algorithm that sends as NCCL's does.
std::string like_nccl(Operation operation, const std::string& chosen) {
  if (operation == Operation::all_to_all) return "pairwise";
  if (operation == Operation::send_receive) return "send_receive";
  if (operation == Operation::broadcast) return "pipeline";
  if (operation == Operation::reduce) return "tree";
  return chosen.starts_with("Tree") || chosen.starts_with("NVLSTree") ? "double_tree" : "ring";
}

/// GB/s of the narrowest link between neighbors of an order.
double narrowest(const Network& network, const RingOrder& order) {
  double least = 1e300;
  std::vector<LinkId> route;
  for (std::size_t i = 0; i < order.size(); ++i) {
    network.route(order[i], order[(i + 1) % order.size()], 0, route);
    for (const LinkId link : route)
      least = std::min(least, network.links()[link].bandwidth.bytes_per_second / 1e9);
  }
  return least;
}

}  // namespace

MachinePricing::MachinePricing(const CollectiveQuestion& question, std::int64_t ranks,
                               std::int64_t per_node, const Calibration* calibration)
    : question_(question),
      network_(std::make_unique<Network>(placed(question, ranks, per_node))),
      calibration_(calibration) {
  places_ = places_of(*network_);
  system_ = system_of(*network_, places_, assumed_);
}

CollectiveRow MachinePricing::by_nccl(Operation operation, Bytes bytes) const {
  CollectiveRow row = row_of(operation, places_.ranks, places_.nodes, bytes);
  double us = 0;
  std::optional<Calibrated> known;
  if (operation == Operation::all_to_all || operation == Operation::send_receive) {
    row.algorithm = "sends";
    us = sends_us(operation, places_, bytes);
  } else if (places_.ranks > 1) {
    const NcclPath path = choose_path(operation, system_, bytes);
    row.algorithm =
        std::string(to_string(path.algorithm)) + " " + std::string(to_string(path.protocol));
    us = expected_us(path, system_, operation, bytes);
  }
  row.basis = "NCCL's model";
  if (calibration_ && calibration_->knows(operation)) {
    known = calibration_->time(operation, {places_.nodes, places_.per_node}, bytes);
    us = known->us;
    row.basis = known->is_covered ? "calibrated" : "extrapolated";
  }
  finish_row(row, operation, from_microseconds(us));
  if (known)
    row.lower = from_microseconds(known->lower_us), row.upper = from_microseconds(known->upper_us);
  return row;
}

/// The orders in which channels take the devices of a node; none where there is only one way.
std::vector<RingOrder> MachinePricing::orders_of(const std::string& algorithm) const {
  const bool ring = algorithm == "ring", tree = algorithm == "double_tree";
  const bool even = places_.nodes * places_.per_node == places_.ranks && places_.per_node > 1;
  if (!even || (!ring && (!tree || places_.nodes == 1))) return {};
  std::vector<RingOrder> orders = nvlink_rings(*network_, places_.per_node);
  // One order does for what NICs bring, unless its NVLinks are narrower.
  const double g = places_.per_node;
  const double most = narrowest(*network_, orders.front()) * g / (g - 1);
  if (tree || (places_.nodes > 1 && most >= places_.inter)) orders.resize(1);
  return orders;
}

CollectiveRow MachinePricing::on_links(const AskedCollective& asked, Bytes bytes) const {
  const auto groups = static_cast<std::uint32_t>(question_.groups);
  Call call{.operation = asked.operation,
            .ranks = places_.ranks / groups,
            .bytes = bytes,
            .levels = question_.levels,
            .servers = static_cast<std::uint32_t>(question_.servers)};
  CollectiveRow row = row_of(asked.operation, call.ranks, places_.nodes, bytes);
  row.algorithm = asked.algorithm;
  row.basis = question_.fidelity == "flow" ? "flow" : "closed form";
  if (asked.algorithm == "auto") {
    const std::string chosen = by_nccl(asked.operation, bytes).algorithm;
    row.algorithm = like_nccl(asked.operation, chosen);
    if (chosen.starts_with("NVLS ")) row.basis += " without NVLS";
  }
  if (row.algorithm == "hierarchical" && call.levels.empty())
    call.levels = {places_.per_node, places_.nodes};
  const auto algorithm = find_algorithm(row.algorithm);
  const double rate = places_.nodes > 1 ? places_.inter / places_.per_node : places_.intra;
  const LinkCost cost{kHopTime, Bandwidth{std::max(rate, 1e-3) * 1e9}, 0};
  check_call(row.algorithm, *algorithm, call, {&cost, 1});
  if (algorithm->plan(call, {&cost, 1}).endpoints > call.ranks)
    throw Error(row.algorithm + " needs servers or switches of its own, which " +
                cut_name(question_.machine) + " does not have; ask for a uniform network");
  const Wires wires = wires_of(*network_, static_cast<std::uint64_t>(question_.seed));
  const auto time_of = [&](const Algorithm& one, const Call& whole) {
    return question_.fidelity == "flow" ? flow_on(wires, one, whole, {&cost, 1}).time
                                        : closed_on(wires, one, whole, {&cost, 1});
  };
  if (groups > 1) {
    Call all = call;
    all.ranks *= groups;
    const std::uint32_t active = question_.fidelity == "flow" ? groups : 1;
    finish_row(row, asked.operation, time_of(Interleaved(*algorithm, call, groups, active), all));
  } else if (const std::vector<RingOrder> orders = orders_of(row.algorithm); !orders.empty()) {
    const bool tree = row.algorithm == "double_tree";
    const std::size_t channels = orders.size() * (places_.nodes > 1 ? places_.per_node : 1);
    if (channels > 1) row.algorithm += " x " + std::to_string(channels);
    if (tree) call.levels = {places_.per_node, places_.nodes};
    const OnRails rails(*algorithm, orders, tree ? OnRails::Kind::tree : OnRails::Kind::ring);
    finish_row(row, asked.operation, time_of(rails, call));
  } else {
    finish_row(row, asked.operation, time_of(*algorithm, call));
  }
  return row;
}

CollectiveRow MachinePricing::price(const AskedCollective& asked, Bytes bytes) const {
  const bool flows = question_.fidelity == "flow";
  CollectiveRow row = flows || asked.algorithm != "auto" || question_.groups > 1
                          ? on_links(asked, bytes)
                          : by_nccl(asked.operation, bytes);
  // In closed form, groups do not see each other: alone, or one after the other.
  if (question_.groups > 1 && !flows) row.upper = row.time * question_.groups;
  return row;
}

}  // namespace foretrace

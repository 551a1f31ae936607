#include "network/nccl/machine_collectives.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "network/collectives/interleaved.h"
#include "network/collectives/multi_rail.h"
#include "network/flow/wires.h"
#include "network/nccl/sends.h"

namespace foretrace {
namespace {

/// NCCL's hop over NVLink with protocol Simple. Here it only decides how pipelines cut the data.
constexpr Nanoseconds kHopTime{3400};

/// Factors that contain four fifths of published times. Within a host: H100, A100 and GB200 by
/// NVLink, each with only two numbers of its own known (1.06 to 1.17); other devices and PCIe, as
/// each of these by NCCL's latencies (1.17 to 1.6). Across hosts: InfiniBand; and Slingshot, where
/// 2 to 128 hosts took up to 14 times as long between 4 KiB and 512 MiB, and 1.1 times from there
/// on. Where copies go through the memory of the host, all ranks share it.
constexpr double kWithin = 1.17, kWithinOthers = 1.5, kAcross = 1.3, kAcrossOthers = 4;
constexpr double kOfEachRank = 1.3;
constexpr std::uint32_t kMostMeasured = 8;  ///< Ranks within a host.
constexpr std::int64_t kLongEnough = 512 << 20, kLeastMeasured = 80;

/// Returns the name of our algorithm that sends as NCCL's choice does.
std::string like_nccl(Operation operation, const std::string& chosen) {
  if (operation == Operation::all_to_all) return "pairwise";
  if (operation == Operation::send_receive) return "send_receive";
  if (operation == Operation::broadcast) return "pipeline";
  if (operation == Operation::reduce) return "tree";
  return chosen.starts_with("Tree") || chosen.starts_with("NVLSTree") ? "double_tree" : "ring";
}

/// Returns the GB/s of the narrowest link between neighbors of an order.
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

MachineCollectives::MachineCollectives(Cluster cluster, double slow_link, std::uint32_t groups)
    : network_(std::move(cluster)),
      places_(places_of(network_, groups)),
      system_(system_of(network_, places_, assumed_)),
      slow_link_(slow_link) {
  const bool is_across = places_.nodes > 1;
  if (is_across && groups > 1) nic_share_ = places_.inter / places_of(network_).inter;
  (is_across ? places_.inter : places_.intra) *= slow_link;
  (is_across ? system_.channel_inter : system_.channel_intra) *= slow_link;
}

MachineCollectives::NcclEstimate MachineCollectives::expected(Operation operation,
                                                              Bytes bytes) const {
  if (operation == Operation::all_to_all || operation == Operation::send_receive)
    return {"sends", sends_us(operation, places_, system_.architecture, bytes)};
  if (places_.ranks <= 1) return {};
  const NcclPath path = choose_path(operation, system_, bytes);
  return {fmt::format("{} {}", to_string(path.algorithm), to_string(path.protocol)),
          expected_us(path, system_, operation, bytes)};
}

MachineCollectives::NcclEstimate MachineCollectives::by_nccl(Operation operation,
                                                             Bytes bytes) const {
  NcclEstimate estimate = expected(operation, bytes);
  const HostFacts& facts = cluster().facts;
  if (places_.nodes > 1) {
    const bool is_other = !facts.sharp.value_or(true) && bytes.count < kLongEnough;
    estimate.faster = kAcross, estimate.slower = is_other ? kAcrossOthers : kAcross;
  } else {
    const bool is_measured =
        places_.kind == LinkKind::nvlink && facts.architecture.value_or(0) >= kLeastMeasured;
    estimate.faster = estimate.slower = is_measured ? kWithin : kWithinOthers;
    // Beyond the ranks that were measured, NCCL may leave a path sooner than its tuning says.
    if (places_.ranks > kMostMeasured) {
      for (const NcclPath& path : nccl_paths(operation, system_))
        estimate.faster =
            std::max(estimate.faster, estimate.us / expected_us(path, system_, operation, bytes));
    }
    if (system_.copies_through_host) estimate.slower = kOfEachRank * places_.ranks;
  }
  return estimate;
}

/// Returns the orders in which channels visit the devices of a node; empty if the order of the
/// ranks is used as it is.
std::vector<RingOrder> MachineCollectives::orders_of(const std::string& algorithm) const {
  const bool ring = algorithm == "ring", tree = algorithm == "double_tree";
  const bool even = places_.nodes * places_.per_node == places_.ranks && places_.per_node > 1;
  if (!even || (!ring && (!tree || places_.nodes == 1))) return {};
  std::vector<RingOrder> orders = nvlink_rings(network_, places_.per_node);
  // One order is enough to use the NICs fully, unless its NVLinks are narrower.
  const double g = places_.per_node;
  const double most = narrowest(network_, orders.front()) * g / (g - 1);
  if (tree || (places_.nodes > 1 && most >= places_.inter)) orders.resize(1);
  return orders;
}

/// Slows down the narrowest link on the route from the last rank to the first.
void MachineCollectives::slow_down(Wires& wires) const {
  if (slow_link_ == 1 || places_.ranks < 2) return;
  std::vector<std::uint32_t> route;
  wires.route(places_.ranks - 1, 0, route);
  const auto narrowest = std::ranges::min_element(
      route, {}, [&](std::uint32_t link) { return wires.capacities[link].bytes_per_second; });
  if (narrowest != route.end()) wires.capacities[*narrowest].bytes_per_second *= slow_link_;
}

void MachineCollectives::share_nics(Wires& wires) const {
  if (nic_share_ == 1) return;
  const std::vector<ClusterNode>& nodes = cluster().nodes;
  for (LinkId link = 0; link < network_.links().size(); ++link) {
    const ClusterLink& cable = network_.links()[link];
    const bool is_of_nic =
        nodes[cable.from].kind == NodeKind::nic || nodes[cable.to].kind == NodeKind::nic;
    if (is_of_nic && cable.kind == LinkKind::network)
      wires.capacities[link].bytes_per_second *= nic_share_;
  }
}

Wires MachineCollectives::wires(std::uint64_t routing) const {
  Wires wires = wires_of(network_, routing);
  slow_down(wires);
  share_nics(wires);
  return wires;
}

PacketPaths MachineCollectives::packet_paths(std::uint64_t routing) const {
  PacketPaths paths = paths_of(network_, routing);
  const Wires links = wires(routing);
  for (LinkId link = 0; link < paths.links.size(); ++link)
    paths.links[link].bandwidth = links.capacities[link];
  return paths;
}

PreparedCollective MachineCollectives::prepare(Run run) const {
  Call& call = run.call;
  if (run.algorithm == "auto")
    run.algorithm = like_nccl(call.operation, by_nccl(call.operation, call.bytes).choice);
  if (run.algorithm == "hierarchical" && call.levels.empty())
    call.levels = {places_.per_node, places_.nodes};
  auto algorithm = find_algorithm(run.algorithm);
  const double rate = places_.nodes > 1 ? places_.inter / places_.per_node : places_.intra;
  const LinkCost cost{kHopTime, Bandwidth{std::max(rate, 1e-3) * 1e9}, 0};
  check_call(run.algorithm, *algorithm, call, {&cost, 1});
  if (algorithm->plan(call, {&cost, 1}).endpoints > call.ranks)
    throw Error(
        fmt::format("{} needs dedicated servers or switches, which the machine does not have; use "
                    "a uniform network instead",
                    run.algorithm));
  if (run.groups > 1) {
    const std::uint32_t active = run.flows || run.packets != nullptr ? run.groups : 1;
    auto groups = std::make_unique<Interleaved>(*algorithm, call, run.groups, active);
    call.ranks *= run.groups;
    return {run.algorithm, std::move(algorithm), std::move(groups), call, cost};
  }
  const std::vector<RingOrder> orders = orders_of(run.algorithm);
  if (orders.empty()) return {run.algorithm, nullptr, std::move(algorithm), call, cost};
  const bool tree = run.algorithm == "double_tree";
  const std::size_t channels = orders.size() * (places_.nodes > 1 ? places_.per_node : 1);
  if (channels > 1) run.algorithm += " x " + std::to_string(channels);
  if (tree) call.levels = {places_.per_node, places_.nodes};
  auto rails = std::make_unique<MultiRail>(*algorithm, orders,
                                           tree ? MultiRail::Kind::tree : MultiRail::Kind::ring);
  return {run.algorithm, std::move(algorithm), std::move(rails), call, cost};
}

MachineCollectives::LinkEstimate MachineCollectives::on_links(const Run& run) const {
  const PreparedCollective prepared = prepare(run);
  const LinkCosts costs(&prepared.cost, 1);
  if (run.packets != nullptr) {
    const PacketRun packets = simulate_packets(packet_paths(run.routing), *run.packets,
                                               *prepared.algorithm, prepared.call, costs);
    return {prepared.name, packets.expansion.time, packets};
  }
  const Wires links = wires(run.routing);
  return {prepared.name, run.flows
                             ? simulate_flows(links, *prepared.algorithm, prepared.call, costs).time
                             : closed_form_time(links, *prepared.algorithm, prepared.call, costs)};
}

}  // namespace foretrace

#include "transform/parallel/communicator.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

TransferDoubt wider(TransferDoubt a, TransferDoubt b) {
  return {std::max(a.faster, b.faster), std::max(a.slower, b.slower)};
}

/// Returns the algorithm that "auto" means on a uniform network without servers.
const char* usual_algorithm(Operation operation) {
  switch (operation) {
    case Operation::all_to_all:
      return "pairwise";
    case Operation::send_receive:
      return "send_receive";
    case Operation::broadcast:
      return "pipeline";
    case Operation::reduce:
      return "tree";
    default:
      return "ring";
  }
}

}  // namespace

void NetworkSettings::describe(Fields& fields) {
  fields.name_or_path("machine", machine,
                      "The machine that the GPUs are part of: a name from `foretrace list "
                      "machines`, or a file");
  fields.bandwidth("bandwidth", bandwidth,
                   "Instead of a machine: bandwidth at which each GPU sends and receives on a "
                   "uniform network");
  fields.optional_time("latency", latency, "Instead of a machine: latency of a message", 0ns);
  fields.text("algorithm", algorithm,
              "How collectives are run: \"auto\" is NCCL's choice, ring on a uniform network; or "
              "a name from `foretrace list collectives`");
  fields.number("slow_link", slow_link,
                "Share of its bandwidth that one degraded link still has: a link between nodes or, "
                "within one node, of a GPU; 1: no link is degraded",
                1e-6, 1);
  fields.integer("servers", servers, "For parameter_server: hosts that only serve", 0, 65'536);
}

bool NetworkSettings::is_given() const {
  return !machine.empty() || latency || bandwidth.bytes_per_second > 0;
}

std::string NetworkSettings::text() const {
  NetworkSettings copy = *this;
  return json_line(write_json(copy));
}

namespace {

Cluster strided_cluster(const std::string& machine, std::int64_t workers, std::int64_t stride) {
  Cluster cluster = find_cluster(machine, workers * stride);
  if (stride == 1) return cluster;
  std::vector<std::uint32_t> chosen;
  for (std::size_t i = 0; i < cluster.placement.size(); i += static_cast<std::size_t>(stride))
    chosen.push_back(cluster.placement[i]);
  cluster.placement = std::move(chosen);
  return cluster;
}

/// Returns how many groups of workers share a node if each group takes every `stride`-th device.
std::uint32_t groups_on_node(const HostFacts& facts, std::int64_t stride) {
  const std::int64_t devices =
      std::max({1, facts.devices_per_host, facts.devices_per_nvlink_domain});
  return static_cast<std::uint32_t>(std::min(stride, devices));
}

}  // namespace

Communicator::Communicator(const NetworkSettings& settings, std::int64_t workers,
                           std::int64_t stride)
    : settings_(settings), workers_(static_cast<std::uint32_t>(workers)) {
  const bool is_uniform = settings.bandwidth.bytes_per_second > 0 || settings.latency;
  if (!settings.machine.empty() && is_uniform)
    throw Error("machine: must not be given together with bandwidth and latency");
  if (settings.machine.empty() && (settings.bandwidth.bytes_per_second <= 0 || !settings.latency))
    throw Error(
        "machine: must be given (\"dgx-a100\"; see `foretrace list machines`), or for a uniform "
        "network both bandwidth and latency");
  described_ = fmt::format("{} GPU{}", workers, workers == 1 ? "" : "s");
  if (!settings.machine.empty()) {
    Cluster cluster =
        within("machine", [&] { return strided_cluster(settings.machine, workers, stride); });
    const std::uint32_t groups = groups_on_node(cluster.facts, stride);
    machine_ = std::make_unique<MachineCollectives>(std::move(cluster), settings.slow_link, groups);
    described_ += " of " + settings.machine.substr(0, settings.machine.find(':'));
    const std::uint32_t nodes = machine_->places().nodes;
    if (nodes > 1) described_ += fmt::format(", {} nodes", nodes);
  } else {
    described_ += " over " + to_text(settings.bandwidth);
  }
}

Nanoseconds Communicator::time(Operation operation, Bytes bytes) {
  if (workers_ == 1 || bytes <= Bytes{}) return 0ns;
  const auto [found, is_new] = known_.try_emplace({operation, bytes.count});
  if (is_new) found->second = priced(operation, bytes);
  return found->second;
}

const std::vector<std::string>& Communicator::assumed() const {
  static const std::vector<std::string> nothing;
  return machine_ ? machine_->assumed() : nothing;
}

Nanoseconds Communicator::priced(Operation operation, Bytes bytes) {
  if (machine_ && settings_.algorithm == "auto") {
    const MachineCollectives::NcclEstimate estimate = machine_->by_nccl(operation, bytes);
    doubt_ = wider(doubt_, {estimate.faster, estimate.slower});
    return from_microseconds(estimate.us);
  }
  return on_links(operation, bytes);
}

MachineCollectives::Run Communicator::run(Operation operation, Bytes bytes) const {
  return {.algorithm = settings_.algorithm,
          .call = {.operation = operation, .ranks = workers_, .bytes = bytes}};
}

/// Gives every link the slow link's bandwidth, because a round takes as long as its slowest link.
LinkCost Communicator::uniform_cost() const {
  return {*settings_.latency, Bandwidth{settings_.bandwidth.bytes_per_second * settings_.slow_link},
          0};
}

PreparedCollective Communicator::prepare(Operation operation, Bytes bytes) const {
  if (machine_)
    return within("algorithm", [&] { return machine_->prepare(run(operation, bytes)); });
  std::string name = settings_.algorithm;
  if (name == "auto") name = usual_algorithm(operation);
  auto algorithm = find_algorithm(name);
  const Call call{.operation = operation,
                  .ranks = workers_,
                  .bytes = bytes,
                  .servers = static_cast<std::uint32_t>(settings_.servers)};
  const LinkCost cost = uniform_cost();
  check_call(name, *algorithm, call, {&cost, 1});
  return {name, nullptr, std::move(algorithm), call, cost};
}

PacketPaths Communicator::packet_paths(const Plan& plan) const {
  return machine_ ? machine_->packet_paths()
                  : uniform_paths(plan.endpoints, uniform_cost(), plan.switches_from);
}

Nanoseconds Communicator::on_links(Operation operation, Bytes bytes) const {
  if (machine_)
    return within("algorithm", [&] { return machine_->on_links(run(operation, bytes)).time; });
  const PreparedCollective prepared = prepare(operation, bytes);
  return prepared.algorithm->closed_form(prepared.call, {&prepared.cost, 1});
}

Communicator& Communicators::among(std::int64_t ranks, std::int64_t stride) {
  return known_.try_emplace({ranks, stride}, settings_, ranks, stride * apart_).first->second;
}

PacketRun Communicators::send_packets(const std::vector<PacketRequest>& requests,
                                      const PacketSettings& settings,
                                      std::vector<CollectiveTimes>& times) {
  std::vector<PreparedCollective> sent;
  std::vector<PacketCollective> collectives;
  std::int64_t most = 0;
  Plan widest;
  bool is_alike = true, has_servers = false;
  for (const PacketRequest& request : requests) {
    const PreparedCollective& added =
        sent.emplace_back(among(request.ranks).prepare(request.operation, request.bytes));
    const Plan plan = added.algorithm->plan(added.call, {&added.cost, 1});
    is_alike = is_alike && (most == 0 || most == request.ranks);
    has_servers = has_servers || plan.endpoints > request.ranks;
    if (plan.endpoints > widest.endpoints) widest = plan;
    most = std::max(most, request.ranks);
  }
  if (has_servers && !is_alike)
    throw Error(
        "servers: must serve collectives of one number of ranks at a time; choose them with where");
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const PacketRequest& request = requests[i];
    collectives.push_back({.rounds = {.algorithm = sent[i].algorithm.get(),
                                      .call = sent[i].call,
                                      .costs = {&sent[i].cost, 1},
                                      .at = request.at,
                                      .predecessor = request.predecessor},
                           .queue = request.queue,
                           .loss = request.loss,
                           .pull_loss = request.pull_loss,
                           .unimportant = request.unimportant});
  }
  return simulate_packets(among(most).packet_paths(widest), settings, collectives, times);
}

TransferDoubt Communicators::doubt() const {
  TransferDoubt widest;
  for (const auto& [ranks, communicator] : known_) widest = wider(widest, communicator.doubt());
  return widest;
}

std::vector<std::string> Communicators::assumed() const {
  return known_.empty() ? std::vector<std::string>{} : known_.begin()->second.assumed();
}

}  // namespace foretrace

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "question/collective/pricing.h"

namespace foretrace {
namespace {

/// Places ranks on the first `per_node` devices of each host; on all of them for 0.
Cluster placed(const CollectiveQuestion& question, std::int64_t ranks, std::int64_t per_node) {
  if (per_node <= 0) return find_cluster(question.machine, ranks);
  Cluster cluster = find_cluster(question.machine, 1);
  const std::int64_t devices = std::max(1, cluster.facts.devices_per_host);
  if (per_node > devices)
    throw Error(fmt::format("--ranks-per-node: {} has {} devices on a host, got {}",
                            question.machine, devices, per_node));
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

}  // namespace

MachinePricing::MachinePricing(const CollectiveQuestion& question, std::int64_t ranks,
                               std::int64_t per_node, const Calibration* calibration)
    : question_(question), machine_(placed(question, ranks, per_node)), calibration_(calibration) {}

CollectiveRow MachinePricing::by_nccl(Operation operation, Bytes bytes) const {
  CollectiveRow row = row_of(operation, places().ranks, places().nodes, bytes);
  const MachineCollectives::NcclEstimate chosen = machine_.by_nccl(operation, bytes);
  row.algorithm = chosen.choice;
  row.basis = "NCCL's model";
  if (!calibration_ || !calibration_->knows(operation)) {
    finish_row(row, operation, from_microseconds(chosen.us));
    row.lower = scaled(row.time, 1 / chosen.faster), row.upper = scaled(row.time, chosen.slower);
    return row;
  }
  const CalibratedTime known =
      calibration_->time(operation, {places().nodes, places().per_node}, bytes);
  row.basis = known.is_covered ? "calibrated" : "extrapolated";
  // Links between few devices of a mesh are slower than those between all, which may be all that
  // was measured.
  const bool is_bounded = !known.is_covered && places().nodes == 1;
  const double least = is_bounded ? chosen.us / chosen.faster : 0;
  finish_row(row, operation, from_microseconds(std::max(known.us, least)));
  row.lower = from_microseconds(std::max(known.lower_us, least));
  row.upper = from_microseconds(std::max(known.upper_us, is_bounded ? chosen.us : 0));
  return row;
}

CollectiveRow MachinePricing::on_links(const RequestedCollective& requested, Bytes bytes) const {
  const auto groups = static_cast<std::uint32_t>(question_.groups);
  const bool flows = question_.fidelity == "flow";
  const std::optional<PacketSettings> packets = packets_of(question_);
  const Call call{.operation = requested.operation,
                  .ranks = places().ranks / groups,
                  .bytes = bytes,
                  .levels = question_.levels,
                  .servers = static_cast<std::uint32_t>(question_.servers)};
  CollectiveRow row = row_of(requested.operation, call.ranks, places().nodes, bytes);
  row.basis = packets ? "packets" : flows ? "flow" : "closed form";
  if (requested.algorithm == "auto" &&
      machine_.by_nccl(requested.operation, bytes).choice.starts_with("NVLS "))
    row.basis += " without NVLS";
  const MachineCollectives::LinkEstimate ran =
      machine_.on_links({.algorithm = requested.algorithm,
                         .call = call,
                         .groups = groups,
                         .flows = flows,
                         .packets = packets ? &*packets : nullptr,
                         .routing = static_cast<std::uint64_t>(question_.seed)});
  row.algorithm = ran.algorithm;
  if (ran.packets) row.packets = figures_of(*packets, *ran.packets);
  finish_row(row, requested.operation, ran.time);
  return row;
}

CollectiveRow MachinePricing::price(const RequestedCollective& requested, Bytes bytes) const {
  const bool flows = question_.fidelity != "closed";
  CollectiveRow row = flows || requested.algorithm != "auto" || question_.groups > 1
                          ? on_links(requested, bytes)
                          : by_nccl(requested.operation, bytes);
  // A closed form does not know the other groups: each runs alone, or at worst one after the other.
  if (question_.groups > 1 && !flows) row.upper = row.time * question_.groups;
  return row;
}

}  // namespace foretrace

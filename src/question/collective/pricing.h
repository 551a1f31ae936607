#pragma once

// Prices one collective on one kind of network; price_collective() chooses which.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/question/collective.h"
#include "network/collective.h"
#include "network/nccl/calibration.h"
#include "network/nccl/machine_collectives.h"
#include "network/packet/packet_run.h"

namespace foretrace {

/// The operation and the algorithm that a question asks for; "auto" means NCCL's choice, or the
/// fastest.
struct RequestedCollective {
  Operation operation = Operation::all_reduce;
  std::string algorithm = "auto";
};
RequestedCollective requested_collective(const CollectiveQuestion& question);

/// A uniform network, with given latency (alpha) and bandwidth (beta).
class UniformPricing {
 public:
  /// Throws Error if latency, bandwidth or ranks are missing.
  explicit UniformPricing(const CollectiveQuestion& question);
  CollectiveRow price(const RequestedCollective& requested, Bytes bytes) const;

 private:
  Nanoseconds time_of(const Algorithm& algorithm, const Call& call, CollectiveRow& row) const;
  const CollectiveQuestion& question_;
  LinkCost cost_;
};

/// A machine with the same number of ranks on each host.
class MachinePricing {
 public:
  /// `per_node` 0 means as many ranks as a host has devices. Throws Error as find_cluster() does.
  MachinePricing(const CollectiveQuestion& question, std::int64_t ranks, std::int64_t per_node,
                 const Calibration* calibration);

  CollectiveRow price(const RequestedCollective& requested, Bytes bytes) const;
  const RankPlaces& places() const { return machine_.places(); }
  const Cluster& cluster() const { return machine_.cluster(); }
  const std::vector<std::string>& assumed() const { return machine_.assumed(); }

 private:
  CollectiveRow by_nccl(Operation operation, Bytes bytes) const;
  CollectiveRow on_links(const RequestedCollective& requested, Bytes bytes) const;

  const CollectiveQuestion& question_;
  MachineCollectives machine_;
  const Calibration* calibration_;
};

/// The packet settings of the question. Returns nullopt for other fidelities.
std::optional<PacketSettings> packets_of(const CollectiveQuestion& question);
PacketFigures figures_of(const PacketSettings& settings, const PacketRun& run);

/// A row without times and bandwidths, which finish_row() fills in.
CollectiveRow row_of(Operation operation, std::uint32_t ranks, std::uint32_t nodes, Bytes bytes);
void finish_row(CollectiveRow& row, Operation operation, Nanoseconds time);

}  // namespace foretrace

#pragma once

// Times of collectives among the ranks of a machine: by NCCL's own model, and by running an
// algorithm on the machine's links.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/collective.h"
#include "network/collectives/nvlink_rings.h"
#include "network/flow/wires.h"
#include "network/nccl/nccl_system.h"
#include "network/network.h"
#include "network/packet/packet_run.h"

namespace foretrace {

class MachineCollectives {
 public:
  /// Places one rank on each device of the cluster's placement. One link between nodes (or from a
  /// device if there is one node) keeps only the share `slow_link` of its bandwidth. NCCL gives all
  /// channels equal amounts to send, so that all wait for the channel on that link. `groups` is the
  /// number of groups like this one, on other devices of the same nodes, that share the NICs all
  /// the time.
  explicit MachineCollectives(Cluster cluster, double slow_link = 1, std::uint32_t groups = 1);

  struct NcclEstimate {
    std::string choice;  ///< "Ring Simple"; "sends" if NCCL has no dedicated collective.
    double us = 0;
    double faster = 1, slower = 1;  ///< 80 % of times are from us / faster to us * slower.
  };
  /// `bytes` is counted as in nccl-tests. A collective of one rank takes 0 us.
  NcclEstimate by_nccl(Operation operation, Bytes bytes) const;

  struct Run {
    /// A name, or "auto" for the algorithm that sends as NCCL's choice does.
    std::string algorithm = "auto";
    Call call = {};            ///< The call of each group. Levels of "hierarchical" may be missing.
    std::uint32_t groups = 1;  ///< Interleaved groups that run on the machine at the same time.
    bool flows = false;  ///< Messages share links as flows; otherwise the closed form is used.
    const PacketSettings* packets = nullptr;  ///< If not null, messages are packets.
    std::uint64_t routing = 0;                ///< Seed of ECMP.
  };
  struct LinkEstimate {
    std::string algorithm;  ///< The name and the number of channels: "ring x 8".
    Nanoseconds time{0};
    std::optional<PacketRun> packets = {};
  };
  /// Throws Error if the algorithm cannot serve the call, or needs dedicated servers.
  LinkEstimate on_links(const Run& run) const;
  PreparedCollective prepare(Run run) const;
  /// Returns the links as packets see them. REQUIRES: this outlives the result.
  PacketPaths packet_paths(std::uint64_t routing = 0) const;

  const Cluster& cluster() const { return network_.cluster(); }
  const RankPlaces& places() const { return places_; }
  /// One sentence for each fact that the machine file does not state.
  const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  NcclEstimate expected(Operation operation, Bytes bytes) const;
  std::vector<RingOrder> orders_of(const std::string& algorithm) const;
  Wires wires(std::uint64_t routing) const;
  void slow_down(Wires& wires) const;
  void share_nics(Wires& wires) const;

  Network network_;
  RankPlaces places_;
  std::vector<std::string> assumed_;
  NcclSystem system_;
  double slow_link_;
  double nic_share_ = 1;  ///< Share of the NICs that other groups leave.
};

}  // namespace foretrace

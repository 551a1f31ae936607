#pragma once

// Collectives among the ranks of a machine: as NCCL's own model has them, and as one of the
// algorithms runs on the machine's links.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/network.h"
#include "network/collectives/nvlink_rings.h"
#include "network/flow/wires.h"
#include "network/nccl/system_of.h"
#include "network/packet/packet_on.h"

namespace foretrace {

class MachineCollectives {
 public:
  /// One rank on each device of the cluster's placement. Of one link between nodes, or from a
  /// device where there is one node, only the share `slow_link` of the bandwidth is left. NCCL
  /// gives each channel as much to send, so that all wait for the one on that link. `groups`: so
  /// many like this one, on other devices of the same nodes, share the NICs all the time.
  explicit MachineCollectives(Cluster cluster, double slow_link = 1, std::uint32_t groups = 1);

  struct OfNccl {
    std::string choice;  ///< "Ring Simple"; "sends" where NCCL has no collective of its own.
    double us = 0;
  };
  /// `bytes` as nccl-tests counts them. Nothing takes 0 us among one rank.
  OfNccl by_nccl(Operation operation, Bytes bytes) const;

  struct Run {
    /// A name, or "auto" for the algorithm that sends as NCCL's choice does.
    std::string algorithm = "auto";
    Call call = {};            ///< Of each group. Levels of "hierarchical" may be missing.
    std::uint32_t groups = 1;  ///< Interleaved ones, all on the machine at the same time.
    bool flows = false;        ///< Messages share links as flows; otherwise closed form.
    const PacketSettings* packets = nullptr;  ///< Not null: messages are packets.
    std::uint64_t routing = 0;                ///< Seed of ECMP.
  };
  struct OnLinks {
    std::string algorithm;  ///< The name, and how many channels: "ring x 8".
    Nanoseconds time{0};
    std::optional<PacketRun> packets = {};
  };
  /// Throws Error where the algorithm cannot serve the call, or needs servers of its own.
  OnLinks on_links(const Run& run) const;
  SentCollective sent(Run run) const;
  /// The links as packets see them. REQUIRES: this outlives them.
  PacketPaths packet_paths(std::uint64_t routing = 0) const;

  const Cluster& cluster() const { return network_.cluster(); }
  const RankPlaces& places() const { return places_; }
  /// A sentence for each fact that the machine does not state.
  const std::vector<std::string>& assumed() const { return assumed_; }

 private:
  std::vector<RingOrder> orders_of(const std::string& algorithm) const;
  Wires wires(std::uint64_t routing) const;
  void slow_down(Wires& wires) const;
  void share_nics(Wires& wires) const;

  Network network_;
  RankPlaces places_;
  std::vector<std::string> assumed_;
  NcclSystem system_;
  double slow_link_;
  double nic_share_ = 1;  ///< The part of the NICs that other groups leave.
};

}  // namespace foretrace

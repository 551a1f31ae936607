#pragma once

#include "foretrace/collective.h"
#include "network/collectives/nvlink_rings.h"

namespace foretrace {

/// An algorithm as NCCL runs it on hosts with a NIC for each device: as many channels as a host has
/// ranks, each with an equal part of the data and an order of its own, so that all NICs work and
/// what leaves a host on one rail arrives on the same:
///
///     channel 0   host 0: 0 1 2 3    host 1: 3 0 1 2    host 2: 2 3 0 1
///     channel 1   host 0: 1 2 3 0    host 1: 0 1 2 3    ...
///
/// These for each of several orders of the devices, where one does not use all NVLinks. A tree
/// begins with the same device on each host, as only the first of a chain leaves it.
class OnRails final : public Algorithm {
 public:
  enum class Kind { ring, tree };
  /// REQUIRES: `algorithm` outlives this, `orders` has permutations of the ranks of a host, and the
  /// ranks of its call are a multiple of that.
  OnRails(const Algorithm& algorithm, std::vector<RingOrder> orders, Kind kind = Kind::ring);

  std::string refusal(const Call& call) const override { return algorithm_.refusal(call); }
  Nanoseconds closed(const Call& call, LinkCosts costs) const override {
    return algorithm_.closed(call, costs);
  }
  Plan plan(const Call& call, LinkCosts costs) const override {
    return algorithm_.plan(part(call, 0), costs);
  }
  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override;

 private:
  std::uint32_t channels(const Call& call) const;
  Call part(const Call& call, std::uint32_t channel) const;

  const Algorithm& algorithm_;
  std::vector<RingOrder> orders_;
  std::vector<RingOrder> place_in_order_;  ///< By device, for each order.
  std::uint32_t per_node_;
  Kind kind_;
};

}  // namespace foretrace

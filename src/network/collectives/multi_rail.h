#pragma once

#include "network/collective.h"
#include "network/collectives/nvlink_rings.h"

namespace foretrace {

/// An algorithm as NCCL runs it on hosts with a NIC for each device. There are as many channels as
/// a host has ranks, each with an equal part of the data and its own order, so that all NICs work
/// and traffic that leaves a host on one rail arrives on the same rail:
///
///     channel 0   host 0: 0 1 2 3    host 1: 3 0 1 2    host 2: 2 3 0 1
///     channel 1   host 0: 1 2 3 0    host 1: 0 1 2 3    ...
///
/// This is repeated for each of several orders of the devices if one order does not use all
/// NVLinks. In a tree every host begins with the same device, because only the first rank of a
/// chain sends to other hosts.
class MultiRail final : public Algorithm {
 public:
  enum class Kind { ring, tree };
  /// REQUIRES: `algorithm` outlives this, `orders` holds permutations of the ranks of a host, and
  /// the number of ranks in a call is a multiple of the ranks per host.
  MultiRail(const Algorithm& algorithm, std::vector<RingOrder> orders, Kind kind = Kind::ring);

  std::string refusal(const Call& call) const override { return algorithm_.refusal(call); }
  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    return algorithm_.closed_form(call, costs);
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

#pragma once

#include "foretrace/collective.h"

namespace foretrace {

/// An algorithm as NCCL runs it on hosts with a NIC for each device: as many channels as a host has
/// ranks, each with an equal part of the data and an order of its own, so that all NICs work and
/// what leaves a host on one rail arrives on the same:
///
///     channel 0   host 0: 0 1 2 3    host 1: 3 0 1 2    host 2: 2 3 0 1
///     channel 1   host 0: 1 2 3 0    host 1: 0 1 2 3    ...
///
/// A tree begins with the same device on each host, as only the first of a chain leaves it.
class OnRails final : public Algorithm {
 public:
  enum class Order { ring, tree };
  /// REQUIRES: `algorithm` outlives this, and its call's ranks are a multiple of `per_node`.
  OnRails(const Algorithm& algorithm, std::uint32_t per_node, Order order = Order::ring)
      : algorithm_(algorithm), per_node_(per_node), order_(order) {}

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
  Call part(const Call& call, std::uint32_t channel) const;

  const Algorithm& algorithm_;
  std::uint32_t per_node_;
  Order order_;
};

}  // namespace foretrace

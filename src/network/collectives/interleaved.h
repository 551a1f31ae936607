#pragma once

#include "network/collective.h"

namespace foretrace {

/// Several groups that run one algorithm at the same time: rank i is member i / groups of group i
/// mod groups, as data-parallel groups are placed beside tensor-parallel ones.
class Interleaved final : public Algorithm {
 public:
  /// `group_call` is the call of each group; only the first `active` groups send. REQUIRES:
  /// `algorithm` outlives this, and groups > 0.
  Interleaved(const Algorithm& algorithm, Call group_call, std::uint32_t groups,
              std::uint32_t active)
      : algorithm_(algorithm),
        group_call_(std::move(group_call)),
        groups_(groups),
        active_(active) {}

  std::string refusal(const Call&) const override { return algorithm_.refusal(group_call_); }
  Nanoseconds closed_form(const Call&, LinkCosts costs) const override {
    return algorithm_.closed_form(group_call_, costs);
  }
  Plan plan(const Call&, LinkCosts costs) const override;
  void sends(const Call&, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override;

 private:
  const Algorithm& algorithm_;
  Call group_call_;
  std::uint32_t groups_, active_;
};

}  // namespace foretrace

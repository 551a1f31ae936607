#include "network/collectives/interleaved.h"

namespace foretrace {

Plan Interleaved::plan(const Call&, LinkCosts costs) const {
  Plan plan = algorithm_.plan(group_call_, costs);
  plan.endpoints *= groups_;
  if (plan.switches_from < plan.endpoints / groups_) plan.switches_from *= groups_;
  return plan;
}

void Interleaved::sends(const Call&, const Plan& plan, std::uint32_t rank, std::uint32_t round,
                        std::vector<Message>& out) const {
  if (rank % groups_ >= active_) return;
  Plan group_plan = plan;
  group_plan.endpoints /= groups_;
  const std::size_t before = out.size();
  algorithm_.sends(group_call_, group_plan, rank / groups_, round, out);
  for (std::size_t i = before; i < out.size(); ++i)
    out[i].to = out[i].to * groups_ + rank % groups_;
}

}  // namespace foretrace

#include "network/collectives/multi_rail.h"

#include "network/collectives/registered.h"

namespace foretrace {

MultiRail::MultiRail(const Algorithm& algorithm, std::vector<RingOrder> orders, Kind kind)
    : algorithm_(algorithm),
      orders_(std::move(orders)),
      place_in_order_(orders_),
      per_node_(static_cast<std::uint32_t>(orders_.front().size())),
      kind_(kind) {
  for (std::size_t i = 0; i < orders_.size(); ++i) {
    for (std::uint32_t place = 0; place < per_node_; ++place)
      place_in_order_[i][orders_[i][place]] = place;
  }
}

std::uint32_t MultiRail::channels(const Call& call) const {
  // On one host it makes no difference which device begins.
  const bool one_host = call.ranks == per_node_;
  return static_cast<std::uint32_t>(orders_.size()) * (one_host ? 1 : per_node_);
}

Call MultiRail::part(const Call& call, std::uint32_t channel) const {
  Call channel_call = call;
  channel_call.bytes = part_of(call.bytes, channels(call), channel);
  return channel_call;
}

void MultiRail::sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
                      std::vector<Message>& out) const {
  const std::uint32_t g = per_node_, node = rank / g, count = channels(call);
  Call channel_call = call;
  for (std::uint32_t channel = 0; channel < count; ++channel) {
    const RingOrder& order = orders_[channel % orders_.size()];
    const auto begin = static_cast<std::uint32_t>(channel / orders_.size());
    // In a ring, host h begins at place (begin - h) mod g of the order.
    const auto first = [&](std::uint32_t host) {
      return kind_ == Kind::tree ? begin : (begin + g - host % g) % g;
    };
    const std::uint32_t position = place_in_order_[channel % orders_.size()][rank % g];
    const std::size_t before = out.size();
    channel_call.bytes = part_of(call.bytes, count, channel);
    algorithm_.sends(channel_call, plan, node * g + (position + g - first(node)) % g, round, out);
    for (std::size_t i = before; i < out.size(); ++i) {
      const std::uint32_t to = out[i].to, host = to / g;
      out[i].to = host * g + order[(to % g + first(host)) % g];
    }
  }
}

}  // namespace foretrace

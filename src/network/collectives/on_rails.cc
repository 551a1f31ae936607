#include "network/collectives/on_rails.h"

#include "network/collectives/registered.h"

namespace foretrace {

Call OnRails::part(const Call& call, std::uint32_t channel) const {
  Call own = call;
  own.bytes = part_of(call.bytes, per_node_, channel);
  return own;
}

void OnRails::sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
                    std::vector<Message>& out) const {
  const std::uint32_t g = per_node_, node = rank / g;
  for (std::uint32_t channel = 0; channel < g; ++channel) {
    // In a ring, host h begins with its device (channel - h) mod g.
    const auto first = [&](std::uint32_t host) {
      return order_ == Order::tree ? channel : (channel + g - host % g) % g;
    };
    const std::uint32_t place = node * g + (rank % g + g - first(node)) % g;
    const std::size_t before = out.size();
    algorithm_.sends(part(call, channel), plan, place, round, out);
    for (std::size_t i = before; i < out.size(); ++i) {
      const std::uint32_t to = out[i].to, host = to / g;
      out[i].to = host * g + (to % g + first(host)) % g;
    }
  }
}

}  // namespace foretrace

// broadcast     (log2 p + p-1) alpha + 2 (p-1)/p n beta          van de Geijn; p a power of two
// A binomial scatter from rank 0: half of the data goes to the rank half of the group away, and so
// on recursively. Then a ring all-gather collects the parts.

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class ScatterGather final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(call.operation, {Operation::broadcast});
    return served.empty() ? not_power_of_two(call.ranks) : served;
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double others = call.ranks - 1;
    return hockney(ceil_log2(call.ranks) + others,
                   2 * others * static_cast<double>(call.bytes.count) / call.ranks, 0,
                   cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks, .rounds = ceil_log2(call.ranks) + call.ranks - 1};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t p = call.ranks, scatters = ceil_log2(p);
    if (round < scatters) {
      const std::uint32_t distance = p >> (round + 1), to = rank + distance;
      if (rank % (2 * distance) != 0) return;
      const Bytes half =
          parts_before(call.bytes, p, to + distance) - parts_before(call.bytes, p, to);
      out.push_back({.to = to, .bytes = half});
      return;
    }
    const std::uint32_t part = (rank + p - (round - scatters) % p) % p;
    out.push_back({.to = (rank + 1) % p, .bytes = part_of(call.bytes, p, part)});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_scatter_gather_algorithm() {
  return std::make_unique<ScatterGather>();
}

}  // namespace foretrace

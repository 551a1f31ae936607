// all-gather    ceil(log2 p) alpha + (p-1)/p n beta
// all-to-all    log2 p (alpha + n/2 beta)                   p a power of two; Bruck et al. 1997
//               otherwise the blocks whose distance has the bit of the round set, exactly

#include <algorithm>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class Bruck final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    return unsupported_operation(call.operation, {Operation::all_gather, Operation::all_to_all});
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double rounds = ceil_log2(call.ranks);
    double blocks = call.ranks - 1;
    if (call.operation == Operation::all_to_all) {
      blocks = 0;
      for (std::uint32_t round = 0; round < ceil_log2(call.ranks); ++round)
        blocks += blocks_of(call, round);
    }
    return hockney(rounds, static_cast<double>(call.bytes.count) * blocks / call.ranks, 0,
                   cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks, .rounds = ceil_log2(call.ranks)};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t to = (rank + (1U << round)) % call.ranks;
    out.push_back(
        {.to = to, .bytes = parts_before(call.bytes, call.ranks, blocks_of(call, round))});
  }

 private:
  static std::uint32_t blocks_of(const Call& call, std::uint32_t round) {
    const std::uint32_t bit = 1U << round;
    if (call.operation == Operation::all_gather) return std::min(bit, call.ranks - bit);
    // Counts the distances from 1 to p - 1 that have the bit set.
    const std::uint32_t whole = call.ranks / (2 * bit) * bit, rest = call.ranks % (2 * bit);
    return whole + (rest > bit ? rest - bit : 0);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_bruck_algorithm() { return std::make_unique<Bruck>(); }

}  // namespace foretrace

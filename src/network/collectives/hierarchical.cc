// all-reduce    sum over levels i of
//               2 (p_i - 1) alpha_i + 2 (p_i - 1)/p_i n/(p_1 .. p_(i-1)) beta_i
//
// BlueConnect (Cho et al., 2019): a ring reduce-scatter within each level, innermost first, then
// the all-gathers in reverse order. Each level handles only the part of the data that the levels
// inside it left to a rank, so that the slowest links carry the least.

#include <numeric>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class Hierarchical final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(call.operation, {Operation::all_reduce});
    if (!served.empty()) return served;
    const std::uint64_t product = std::accumulate(call.levels.begin(), call.levels.end(),
                                                  std::uint64_t{1}, std::multiplies<>());
    if (!call.levels.empty() && product == call.ranks) return "";
    return "needs levels, such as 8x4 for 32 ranks, whose product is " + std::to_string(call.ranks);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    double n = static_cast<double>(call.bytes.count);
    Nanoseconds time{0};
    for (std::size_t i = 0; i < call.levels.size(); ++i) {
      const double p = call.levels[i], bytes = n * (p - 1) / p;
      time += hockney(2 * (p - 1), 2 * bytes, bytes, cost_at(costs, i));
      n /= p;
    }
    return time;
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks, .rounds = 2 * steps(call)};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const bool gathers = round >= steps(call);
    std::uint32_t step = gathers ? 2 * steps(call) - 1 - round : round;
    std::uint32_t stride = 1;
    Bytes remaining = call.bytes;
    for (std::size_t level = 0; level < call.levels.size(); ++level) {
      const std::uint32_t p = call.levels[level], digit = rank / stride % p;
      if (step < p - 1) {
        const std::uint32_t to = digit + 1 == p ? rank - digit * stride : rank + stride;
        const std::uint32_t back = gathers ? p - 2 - step : step;  // Rounds since the level began.
        const std::uint32_t part = (digit + p + (gathers ? 1 : 0) - back) % p;
        out.push_back({.to = to,
                       .bytes = part_of(remaining, p, part),
                       .level = static_cast<std::uint8_t>(level),
                       .reduces = !gathers});
        return;
      }
      step -= p - 1;
      // The part that the ring's reduce-scatter leaves to the rank.
      remaining = part_of(remaining, p, (digit + 1) % p);
      stride *= p;
    }
  }

 private:
  static std::uint32_t steps(const Call& call) {
    std::uint32_t steps = 0;
    for (const std::uint32_t p : call.levels) steps += p - 1;
    return steps;
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_hierarchical_algorithm() {
  return std::make_unique<Hierarchical>();
}

}  // namespace foretrace

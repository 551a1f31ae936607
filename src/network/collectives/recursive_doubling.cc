// all-reduce    log2 p (alpha + n beta + n gamma)
//               otherwise, with the greatest power of two below p: + 2 (alpha + n beta) + n gamma
// all-gather    log2 p alpha + (p-1)/p n beta                        p a power of two
// Thakur, Rabenseifner, Gropp 2005. Each rank beyond the greatest power of two first gives its data
// to a partner, and gets the result from it at the end.

#include <bit>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class RecursiveDoubling final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served =
        unsupported_operation(call.operation, {Operation::all_reduce, Operation::all_gather});
    if (!served.empty() || call.operation == Operation::all_reduce) return served;
    return not_power_of_two(call.ranks);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    const double rounds = ceil_log2(power), n = static_cast<double>(call.bytes.count);
    if (call.operation == Operation::all_gather)
      return hockney(rounds, n * (call.ranks - 1) / call.ranks, 0, cost_at(costs, 0));
    const double folded = power == call.ranks ? 0 : 1;
    return hockney(rounds + 2 * folded, (rounds + 2 * folded) * n, (rounds + folded) * n,
                   cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    return {.endpoints = call.ranks, .rounds = ceil_log2(power) + (power == call.ranks ? 0 : 2)};
  }

  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    const bool folds = power != call.ranks, gathers = call.operation == Operation::all_gather;
    if (folds && round == 0) {
      if (rank >= power) out.push_back({.to = rank - power, .bytes = call.bytes, .reduces = true});
    } else if (folds && round + 1 == plan.rounds) {
      if (rank < call.ranks - power) out.push_back({.to = rank + power, .bytes = call.bytes});
    } else if (rank < power) {
      const std::uint32_t distance = 1U << (round - (folds ? 1 : 0));
      out.push_back({.to = rank ^ distance,
                     .bytes = gathers ? gathered_bytes(call, rank, distance) : call.bytes,
                     .reduces = !gathers});
    }
  }

 private:
  /// Returns the size of the parts of the `distance` ranks that share the upper bits of `rank`.
  static Bytes gathered_bytes(const Call& call, std::uint32_t rank, std::uint32_t distance) {
    const std::uint32_t first = rank & ~(distance - 1);
    return parts_before(call.bytes, call.ranks, first + distance) -
           parts_before(call.bytes, call.ranks, first);
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_recursive_doubling_algorithm() {
  return std::make_unique<RecursiveDoubling>();
}

}  // namespace foretrace

// all-reduce      2 log2 p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma      Rabenseifner
//                 otherwise, for the greatest power of two below p: + 2 (alpha + n beta) + n gamma
// reduce-scatter    log2 p alpha +   (p-1)/p n beta + (p-1)/p n gamma      p a power of two
// all-gather        log2 p alpha +   (p-1)/p n beta                        p a power of two
// Halving: the partner is half of the group away and receives half of the rank's data. Doubling
// runs the same exchanges in reverse order.

#include <bit>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class HalvingDoubling final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(
        call.operation, {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter});
    if (!served.empty() || call.operation == Operation::all_reduce) return served;
    return not_power_of_two(call.ranks);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    const double n = static_cast<double>(call.bytes.count), part = n * (power - 1) / power;
    const double laps = call.operation == Operation::all_reduce ? 2 : 1;
    const double folded = power == call.ranks ? 0 : 1;
    const double reduced = call.operation == Operation::all_gather ? 0 : part + folded * n;
    return hockney(laps * ceil_log2(power) + 2 * folded, laps * part + 2 * folded * n, reduced,
                   cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    const std::uint32_t laps = call.operation == Operation::all_reduce ? 2 : 1;
    return {.endpoints = call.ranks,
            .rounds = laps * ceil_log2(power) + (power == call.ranks ? 0 : 2)};
  }

  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t power = std::bit_floor(call.ranks);
    const bool folds = power != call.ranks;
    if (folds && round == 0) {
      if (rank >= power) out.push_back({.to = rank - power, .bytes = call.bytes, .reduces = true});
    } else if (folds && round + 1 == plan.rounds) {
      if (rank < call.ranks - power) out.push_back({.to = rank + power, .bytes = call.bytes});
    } else if (rank < power) {
      out.push_back(exchange(call, power, rank, round - (folds ? 1 : 0)));
    }
  }

 private:
  static Message exchange(const Call& call, std::uint32_t power, std::uint32_t rank,
                          std::uint32_t step) {
    const std::uint32_t bits = ceil_log2(power);
    const bool halves = call.operation != Operation::all_gather && step < bits;
    const std::uint32_t up = call.operation == Operation::all_gather ? step : step - bits;
    const std::uint32_t distance = halves ? power >> (step + 1) : 1U << up;
    const std::uint32_t to = rank ^ distance;
    // Halving sends what the partner keeps; doubling sends what the rank has.
    const std::uint32_t first = (halves ? to : rank) & ~(distance - 1);
    const Bytes bytes =
        parts_before(call.bytes, power, first + distance) - parts_before(call.bytes, power, first);
    return {.to = to, .bytes = bytes, .reduces = halves};
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_halving_doubling_algorithm() {
  return std::make_unique<HalvingDoubling>();
}

}  // namespace foretrace

// broadcast     (p-2 + k) (alpha + n/k beta) along a chain of ranks, in k chunks
// k is the number of chunks that minimizes this, sqrt((p-2) n beta / alpha), rounded.

#include <algorithm>
#include <cmath>

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

constexpr double kMaxPieces = 65536;  ///< Our choice: more pieces only slow down the simulation.

class Pipeline final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    const std::string served = unsupported_operation(call.operation, {Operation::broadcast});
    if (!served.empty()) return served;
    return call.ranks >= 2 ? "" : "needs at least 2 ranks, got " + std::to_string(call.ranks);
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const Plan plan = this->plan(call, costs);
    const double chunk = static_cast<double>(call.bytes.count) / plan.chunks;
    return hockney(plan.rounds, plan.rounds * chunk, 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts costs) const override {
    const LinkCost& cost = cost_at(costs, 0);
    const double wire =
        static_cast<double>(call.bytes.count) * 1e9 / cost.bandwidth.bytes_per_second;
    const double alpha = std::max(1.0, static_cast<double>(cost.latency.count()));
    const double best = std::sqrt((call.ranks - 2) * wire / alpha);
    const auto chunks = static_cast<std::uint32_t>(std::clamp(std::round(best), 1.0, kMaxPieces));
    return {.endpoints = call.ranks, .rounds = call.ranks - 2 + chunks, .chunks = chunks};
  }

  /// In round i + c, rank i forwards chunk c.
  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    if (rank + 1 >= call.ranks || round < rank || round - rank >= plan.chunks) return;
    const Bytes bytes = part_of(call.bytes, plan.chunks, round - rank);
    out.push_back({.to = rank + 1, .bytes = bytes});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_pipeline_algorithm() { return std::make_unique<Pipeline>(); }

}  // namespace foretrace

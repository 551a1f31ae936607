// all-reduce      2 (p-1) alpha + 2 (p-1)/p n beta + (p-1)/p n gamma     Patarasuk, Yuan 2009
// all-gather        (p-1) alpha +   (p-1)/p n beta
// reduce-scatter    (p-1) alpha +   (p-1)/p n beta + (p-1)/p n gamma

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class Ring final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    return unsupported_operation(
        call.operation, {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter});
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double steps = call.ranks - 1;
    const double bytes = static_cast<double>(call.bytes.count) * steps / call.ranks;
    const double laps = call.operation == Operation::all_reduce ? 2 : 1;
    const double reduced = call.operation == Operation::all_gather ? 0 : bytes;
    return hockney(laps * steps, laps * bytes, reduced, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    const std::uint32_t laps = call.operation == Operation::all_reduce ? 2 : 1;
    return {.endpoints = call.ranks, .rounds = laps * (call.ranks - 1)};
  }

  /// In round r, rank i forwards part i - r, which arrived in the round before.
  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t p = call.ranks;
    const std::uint32_t next = rank + 1 == p ? 0 : rank + 1;
    const std::uint32_t lap_round = round < p ? round : round - p;
    const std::uint32_t part = rank >= lap_round ? rank - lap_round : rank + p - lap_round;
    const bool reduces = call.operation != Operation::all_gather && round < p - 1;
    out.push_back({.to = next, .bytes = part_of(call.bytes, p, part), .reduces = reduces});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_ring_algorithm() { return std::make_unique<Ring>(); }

}  // namespace foretrace

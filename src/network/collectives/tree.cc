// broadcast     ceil(log2 p) (alpha + n beta)
// reduce        ceil(log2 p) (alpha + n beta + n gamma)
// all-reduce    the reduce, then the broadcast: 2 log2 p (alpha + n beta) + log2 p n gamma
// A binomial tree with its root at rank 0. It is not pipelined; double_tree is.

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class Tree final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    return unsupported_operation(call.operation,
                                 {Operation::all_reduce, Operation::broadcast, Operation::reduce});
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    const double n = static_cast<double>(call.bytes.count), rounds = ceil_log2(call.ranks);
    const double laps = call.operation == Operation::all_reduce ? 2 : 1;
    const double reduced = call.operation == Operation::broadcast ? 0 : rounds * n;
    return hockney(laps * rounds, laps * rounds * n, reduced, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    const std::uint32_t laps = call.operation == Operation::all_reduce ? 2 : 1;
    return {.endpoints = call.ranks, .rounds = laps * ceil_log2(call.ranks)};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const std::uint32_t depth = ceil_log2(call.ranks);
    const bool reduces = call.operation != Operation::broadcast && round < depth;
    if (reduces) {
      // The farther half sends its data to the nearer half: the broadcast in reverse.
      const std::uint32_t distance = 1U << (depth - 1 - round);
      if (rank >= distance && rank < 2 * distance)
        out.push_back({.to = rank - distance, .bytes = call.bytes, .reduces = true});
      return;
    }
    const std::uint32_t distance =
        1U << (call.operation == Operation::broadcast ? round : round - depth);
    if (rank < distance && rank + distance < call.ranks)
      out.push_back({.to = rank + distance, .bytes = call.bytes});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_tree_algorithm() { return std::make_unique<Tree>(); }

}  // namespace foretrace

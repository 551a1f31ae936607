// all-reduce, broadcast     2 alpha + (1 + 1/k) n beta     in k chunks of n / k
// Each rank sends its data to the switch, which reduces or copies it for all (NVLS; SHARP, with the
// tree of switches modelled as one switch). Only the ranks' ports limit the rate; the switch keeps
// up.

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

/// Our choice; similar to the number of chunks that NVLS uses for 64 MiB.
constexpr std::uint32_t kSwitchChunks = 64;

class InNetwork final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    return unsupported_operation(call.operation, {Operation::all_reduce, Operation::broadcast});
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    if (call.ranks < 2) return Nanoseconds(0);
    const double n = static_cast<double>(call.bytes.count);
    return hockney(2, n * (1 + 1.0 / kSwitchChunks), 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks + 1,
            .rounds = call.ranks < 2 ? 0 : kSwitchChunks + 1,
            .chunks = kSwitchChunks,
            .switches_from = call.ranks};
  }

  /// Chunk c goes up in round c and down in round c + 1.
  void sends(const Call& call, const Plan& plan, std::uint32_t rank, std::uint32_t round,
             std::vector<Message>& out) const override {
    const bool is_switch = rank == call.ranks;
    const bool copies = call.operation == Operation::broadcast;
    if (!is_switch && round < plan.chunks && (!copies || rank == 0))
      out.push_back(
          {.to = call.ranks, .bytes = part_of(call.bytes, plan.chunks, round), .streams = true});
    if (!is_switch || round == 0) return;
    const Bytes bytes = part_of(call.bytes, plan.chunks, round - 1);
    for (std::uint32_t to = copies ? 1 : 0; to < call.ranks; ++to)
      out.push_back({.to = to, .bytes = bytes, .streams = true});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_in_network_algorithm() { return std::make_unique<InNetwork>(); }

}  // namespace foretrace

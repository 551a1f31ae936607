// alpha + n beta: each rank sends to the next one, at the same time (nccl-tests' sendrecv).

#include "network/collectives/registered.h"

namespace foretrace {
namespace {

class SendReceive final : public Algorithm {
 public:
  std::string refusal(const Call& call) const override {
    return unsupported_operation(call.operation, {Operation::send_receive});
  }

  Nanoseconds closed_form(const Call& call, LinkCosts costs) const override {
    if (call.ranks < 2) return Nanoseconds(0);
    return hockney(1, static_cast<double>(call.bytes.count), 0, cost_at(costs, 0));
  }

  Plan plan(const Call& call, LinkCosts) const override {
    return {.endpoints = call.ranks, .rounds = call.ranks < 2 ? 0U : 1U};
  }

  void sends(const Call& call, const Plan&, std::uint32_t rank, std::uint32_t,
             std::vector<Message>& out) const override {
    out.push_back({.to = (rank + 1) % call.ranks, .bytes = call.bytes});
  }
};

}  // namespace

std::unique_ptr<Algorithm> make_send_receive_algorithm() { return std::make_unique<SendReceive>(); }

}  // namespace foretrace

#include "network/flow/flows.h"
#include "network/flow/rounds.h"
#include "network/flow/wires.h"

namespace foretrace {
namespace {

class FlowNetwork final : public MessageNetwork {
 public:
  explicit FlowNetwork(const Wires& wires) : wires_(wires), flows_(wires.capacities) {}

  std::uint32_t begin(std::size_t, std::uint32_t from, const Message& message,
                      Nanoseconds now) override {
    const Nanoseconds latency = wires_.route(from, message.to, route_);
    const FlowId flow = flows_.begin(route_, message.bytes, now);
    if (flow >= latency_.size()) latency_.resize(flow + 1);
    latency_[flow] = latency;
    return flow;
  }
  std::optional<Nanoseconds> next(Nanoseconds) override { return flows_.next(); }
  void take(Nanoseconds now, std::vector<std::uint32_t>& left,
            std::vector<std::uint32_t>& arrived) override {
    flows_.take_ended(now, arrived);
    left = arrived;
  }
  Nanoseconds latency(std::uint32_t flow) const override { return latency_[flow]; }
  std::size_t active() const override { return flows_.active(); }
  Flows* flows() override { return &flows_; }
  std::uint64_t computed_rates() const { return flows_.computed_rates(); }

 private:
  const Wires& wires_;
  Flows flows_;
  std::vector<Nanoseconds> latency_;  ///< By flow.
  std::vector<std::uint32_t> route_;
};

}  // namespace

Expansion simulate_flows(const Wires& wires, const Algorithm& algorithm, const Call& call,
                         LinkCosts costs) {
  FlowNetwork network(wires);
  const CollectiveRun run{.algorithm = &algorithm, .call = call, .costs = costs};
  std::vector<CollectiveTimes> times;
  Expansion expansion = run_rounds(network, {&run, 1}, times);
  expansion.computed_rates = network.computed_rates();
  return expansion;
}

}  // namespace foretrace

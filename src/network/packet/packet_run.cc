#include "network/packet/packet_run.h"

#include <algorithm>

#include "base/statistics.h"

namespace foretrace {
namespace {

/// The rounds that a tensor passes through in the reducing half of a collective, and in the other
/// half.
struct TensorRounds {
  std::uint32_t reducing = 1, other = 1;
};

/// A server is one round away. In a ring, each part passes through all ranks.
TensorRounds tensor_rounds(const Algorithm& algorithm, const Call& call, const Plan& plan) {
  if (plan.lag == 0) return {};
  TensorRounds tensor{0, 0};
  std::vector<Message> messages;
  for (std::uint32_t round = 0; round < plan.rounds; ++round) {
    messages.clear();
    algorithm.sends(call, plan, 0, round, messages);
    bool adds = false, moves = false;
    for (const Message& message : messages) (message.reduces ? adds : moves) = true;
    tensor.reducing += adds ? 1 : 0;
    tensor.other += moves ? 1 : 0;
  }
  return {std::max(1U, tensor.reducing / std::max(1U, plan.lag)),
          std::max(1U, tensor.other / std::max(1U, plan.lag))};
}

class PacketNetwork final : public MessageNetwork {
 public:
  PacketNetwork(const PacketPaths& paths, const PacketSettings& settings,
                std::span<const PacketCollective> collectives)
      : collectives_(collectives), packets_(paths, settings) {
    for (const PacketCollective& collective : collectives) {
      const CollectiveRun& run = collective.rounds;
      tensor_rounds_.push_back(
          tensor_rounds(*run.algorithm, run.call, run.algorithm->plan(run.call, run.costs)));
    }
  }

  std::uint32_t begin(std::size_t number, std::uint32_t from, const Message& message,
                      Nanoseconds now) override {
    const PacketCollective& collective = collectives_[number];
    const TensorRounds& tensor = tensor_rounds_[number];
    return packets_.begin({.from = from,
                           .to = message.to,
                           .bytes = message.bytes,
                           .queue = collective.queue,
                           .loss = message.reduces ? collective.loss / tensor.reducing
                                                   : collective.pull_loss / tensor.other,
                           .unimportant = collective.unimportant},
                          now);
  }
  std::optional<Nanoseconds> next(Nanoseconds limit) override { return packets_.next(limit); }
  void take(Nanoseconds now, std::vector<std::uint32_t>& left,
            std::vector<std::uint32_t>& arrived) override {
    packets_.take(now, left, arrived);
  }
  Nanoseconds latency(std::uint32_t) const override { return Nanoseconds(0); }
  std::size_t active() const override { return packets_.active(); }
  Packets& packets() { return packets_; }

 private:
  std::span<const PacketCollective> collectives_;
  std::vector<TensorRounds> tensor_rounds_;
  Packets packets_;
};

PacketRun summed_up(Packets& packets, const Expansion& expansion) {
  packets.finish();
  PacketRun run{.expansion = expansion, .counts = packets.counts()};
  std::vector<Nanoseconds> times = packets.completions();
  if (times.empty()) return run;
  Nanoseconds sum{0};
  for (const Nanoseconds time : times) sum += time;
  run.mean = sum / static_cast<std::int64_t>(times.size());
  run.p99 = upper_quantile(times, 99);
  run.median = lower_quantile(times, 50);
  return run;
}

}  // namespace

PacketRun simulate_packets(const PacketPaths& paths, const PacketSettings& settings,
                           std::span<const PacketCollective> collectives,
                           std::vector<CollectiveTimes>& times) {
  PacketNetwork network(paths, settings, collectives);
  std::vector<CollectiveRun> rounds;
  for (const PacketCollective& collective : collectives) rounds.push_back(collective.rounds);
  const Expansion expansion = run_rounds(network, rounds, times);
  return summed_up(network.packets(), expansion);
}

PacketRun simulate_packets(const PacketPaths& paths, const PacketSettings& settings,
                           const Algorithm& algorithm, const Call& call, LinkCosts costs) {
  const PacketCollective collective{
      .rounds = {.algorithm = &algorithm, .call = call, .costs = costs},
      .loss = settings.loss,
      .pull_loss = settings.pull_loss,
      .unimportant = settings.unimportant};
  std::vector<CollectiveTimes> times;
  return simulate_packets(paths, settings, {&collective, 1}, times);
}

PacketRun simulate_packets(const LinkCost& cost, const PacketSettings& settings,
                           const Algorithm& algorithm, const Call& call) {
  const LinkCosts costs(&cost, 1);
  const Plan plan = algorithm.plan(call, costs);
  return simulate_packets(uniform_paths(plan.endpoints, cost, plan.switches_from), settings,
                          algorithm, call, costs);
}

PacketRun run_messages(const PacketPaths& paths, const PacketSettings& settings,
                       const std::vector<TimedMessage>& messages) {
  Packets packets(paths, settings);
  for (const TimedMessage& timed : messages) packets.begin(timed.message, timed.at);
  Expansion expansion{.messages = messages.size()};
  std::vector<MessageId> left, arrived;
  while (const auto next = packets.next(Nanoseconds::max())) {
    arrived.clear();
    packets.take(*next, left, arrived);
    if (!arrived.empty()) expansion.time = *next;
  }
  for (const TimedMessage& timed : messages) expansion.moved += timed.message.bytes;
  return summed_up(packets, expansion);
}

}  // namespace foretrace

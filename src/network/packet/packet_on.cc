#include "network/packet/packet_on.h"

#include <algorithm>

#include "base/statistics.h"

namespace foretrace {
namespace {

/// The rounds that a tensor passes through in the reducing half of a collective, and in the other
/// half.
struct Halves {
  std::uint32_t adding = 1, other = 1;
};

/// A server is one round away. In a ring, each part passes through all ranks.
Halves halves_of(const Algorithm& algorithm, const Call& call, const Plan& plan) {
  if (plan.lag == 0) return {};
  Halves halves{0, 0};
  std::vector<Message> messages;
  for (std::uint32_t round = 0; round < plan.rounds; ++round) {
    messages.clear();
    algorithm.sends(call, plan, 0, round, messages);
    bool adds = false, moves = false;
    for (const Message& message : messages) (message.reduces ? adds : moves) = true;
    halves.adding += adds ? 1 : 0;
    halves.other += moves ? 1 : 0;
  }
  return {std::max(1U, halves.adding / std::max(1U, plan.lag)),
          std::max(1U, halves.other / std::max(1U, plan.lag))};
}

class PacketCarrier final : public Carrier {
 public:
  PacketCarrier(const PacketPaths& paths, const PacketSettings& settings,
                std::span<const PacketCollective> collectives)
      : collectives_(collectives), packets_(paths, settings) {
    for (const PacketCollective& one : collectives) {
      const CollectiveRun& of = one.rounds;
      halves_.push_back(halves_of(*of.algorithm, of.call, of.algorithm->plan(of.call, of.costs)));
    }
  }

  std::uint32_t begin(std::size_t collective, std::uint32_t from, const Message& message,
                      Nanoseconds now) override {
    const PacketCollective& one = collectives_[collective];
    const Halves& halves = halves_[collective];
    return packets_.begin(
        {.from = from,
         .to = message.to,
         .bytes = message.bytes,
         .queue = one.queue,
         .loss = message.reduces ? one.loss / halves.adding : one.pull_loss / halves.other,
         .unimportant = one.unimportant},
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
  std::vector<Halves> halves_;
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

PacketRun packets_together(const PacketPaths& paths, const PacketSettings& settings,
                           std::span<const PacketCollective> collectives,
                           std::vector<RoundsTimes>& times) {
  PacketCarrier carrier(paths, settings, collectives);
  std::vector<CollectiveRun> rounds;
  for (const PacketCollective& one : collectives) rounds.push_back(one.rounds);
  const Expansion expansion = run_rounds(carrier, rounds, times);
  return summed_up(carrier.packets(), expansion);
}

PacketRun packet_on(const PacketPaths& paths, const PacketSettings& settings,
                    const Algorithm& algorithm, const Call& call, LinkCosts costs) {
  const PacketCollective one{.rounds = {.algorithm = &algorithm, .call = call, .costs = costs},
                             .loss = settings.loss,
                             .pull_loss = settings.pull_loss,
                             .unimportant = settings.unimportant};
  std::vector<RoundsTimes> times;
  return packets_together(paths, settings, {&one, 1}, times);
}

PacketRun packet_on(const LinkCost& cost, const PacketSettings& settings,
                    const Algorithm& algorithm, const Call& call) {
  const LinkCosts costs(&cost, 1);
  const Plan plan = algorithm.plan(call, costs);
  return packet_on(uniform_paths(plan.endpoints, cost, plan.switches_from), settings, algorithm,
                   call, costs);
}

PacketRun run_messages(const PacketPaths& paths, const PacketSettings& settings,
                       const std::vector<TimedMessage>& messages) {
  Packets packets(paths, settings);
  for (const TimedMessage& one : messages) packets.begin(one.message, one.at);
  Expansion expansion{.messages = messages.size()};
  std::vector<MessageId> left, arrived;
  while (const auto next = packets.next(Nanoseconds::max())) {
    arrived.clear();
    packets.take(*next, left, arrived);
    if (!arrived.empty()) expansion.time = *next;
  }
  for (const TimedMessage& one : messages) expansion.moved += one.message.bytes;
  return summed_up(packets, expansion);
}

}  // namespace foretrace

#include "network/flow/wires.h"

#include <algorithm>
#include <cmath>

namespace foretrace {
namespace {

/// Up to this many messages are computed one by one; beyond it, rounds are sampled.
constexpr std::uint64_t kMaxMessages = 1 << 15;
constexpr std::uint32_t kMinSamples = 4;

/// Adds up the bytes that one round puts on each link.
class RoundLoad {
 public:
  RoundLoad(const Wires& wires, const Algorithm& algorithm, const Call& call, const Plan& plan)
      : wires_(wires),
        algorithm_(algorithm),
        call_(call),
        plan_(plan),
        bytes_(wires.capacities.size()) {}

  struct Cost {
    double latency = 0, wire = 0, reduce = 0;  ///< Nanoseconds.
    bool streams = false;
  };

  Cost of(std::uint32_t round, LinkCosts costs) {
    Cost cost;
    touched_.clear();
    for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
      messages_.clear();
      algorithm_.sends(call_, plan_, rank, round, messages_);
      for (const Message& message : messages_) add(rank, message, costs, cost);
    }
    for (const std::uint32_t link : touched_) {
      cost.wire = std::max(cost.wire, static_cast<double>(bytes_[link]) * 1e9 /
                                          wires_.capacities[link].bytes_per_second);
      bytes_[link] = 0;
    }
    return cost;
  }

 private:
  void add(std::uint32_t from, const Message& message, LinkCosts costs, Cost& cost) {
    const Nanoseconds latency = wires_.route(from, message.to, route_);
    cost.latency = std::max(cost.latency, static_cast<double>(latency.count()));
    cost.streams = cost.streams || message.streams;
    const LinkCost& level = costs[std::min<std::size_t>(message.level, costs.size() - 1)];
    if (message.reduces)
      cost.reduce = std::max(cost.reduce,
                             static_cast<double>(message.bytes.count) * level.reduce_ns_per_byte);
    for (const std::uint32_t link : route_) {
      if (bytes_[link] == 0) touched_.push_back(link);
      bytes_[link] += message.bytes.count;
    }
  }

  const Wires& wires_;
  const Algorithm& algorithm_;
  const Call& call_;
  const Plan& plan_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::uint32_t> touched_, route_;
  std::vector<Message> messages_;
};

}  // namespace

Wires uniform_wires(std::uint32_t endpoints, const LinkCost& cost, std::uint32_t switches_from) {
  Wires wires;
  wires.capacities.assign(2 * std::size_t{endpoints}, cost.bandwidth);
  wires.route = [latency = cost.latency, switches_from](std::uint32_t from, std::uint32_t to,
                                                        std::vector<std::uint32_t>& route) {
    route.clear();
    if (from < switches_from) route.push_back(2 * from);
    if (to < switches_from) route.push_back(2 * to + 1);
    return latency;
  };
  return wires;
}

Wires wires_of(const Network& network, std::uint64_t seed) {
  Wires wires;
  std::vector<Nanoseconds> latencies;
  for (const ClusterLink& link : network.links()) {
    wires.capacities.push_back(link.bandwidth);
    latencies.push_back(link.latency);
  }
  wires.route = [&network, seed, latencies = std::move(latencies)](
                    std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& route) {
    network.route(from, to, seed, route);
    Nanoseconds latency{0};
    for (const std::uint32_t link : route) latency += latencies[link];
    return latency;
  };
  return wires;
}

Nanoseconds closed_form_time(const Wires& wires, const Algorithm& algorithm, const Call& call,
                             LinkCosts costs) {
  const Plan plan = algorithm.plan(call, costs);
  if (plan.rounds == 0) return Nanoseconds(0);
  const std::uint64_t most = std::max<std::uint64_t>(kMinSamples, kMaxMessages / plan.endpoints);
  RoundLoad load(wires, algorithm, call, plan);
  // Chunks that climb and descend a level every few rounds leave the others without a message.
  const bool has_levels =
      plan.lag > 1 && plan.chunks < plan.lag && load.of(plan.chunks, costs).wire <= 0;
  const std::uint32_t levels = plan.lag > 1 ? (plan.rounds - plan.chunks) / plan.lag : 0;
  const std::uint32_t rounds = has_levels ? plan.chunks * (levels + 1) : plan.rounds;
  const std::uint32_t samples = static_cast<std::uint32_t>(std::min<std::uint64_t>(rounds, most));
  double time = 0, stream_latency = 0;
  for (std::uint32_t i = 0; i < samples; ++i) {
    auto round = static_cast<std::uint32_t>((2 * std::uint64_t{i} + 1) * rounds /
                                            (2 * std::uint64_t{samples}));
    if (has_levels) round = round / plan.chunks * plan.lag + round % plan.chunks;
    const double stands_for = static_cast<double>(rounds) / samples;
    const RoundLoad::Cost cost = load.of(round, costs);
    // Latencies of a stream overlap, except for one way up and one way down.
    if (cost.streams) stream_latency = std::max(stream_latency, 2 * cost.latency);
    time += stands_for * (cost.wire + cost.reduce + (cost.streams ? 0 : cost.latency));
  }
  // Level by level, what the chunks that follow the first one do not hide.
  double level_latency = 0;
  const double following = std::min(plan.chunks, plan.lag) - 1.;
  for (std::uint32_t level = 0; level <= levels && levels > 0; ++level) {
    const RoundLoad::Cost cost = load.of(level * plan.lag, costs);
    if (cost.streams) level_latency += std::max(0., cost.latency - following * cost.wire);
  }
  return from_nanoseconds(time + std::max(stream_latency, level_latency));
}

}  // namespace foretrace

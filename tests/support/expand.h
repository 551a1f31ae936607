#pragma once

// Expands an algorithm into its sends on an idle uniform network, round after round, as an oracle
// for its closed form and for flows.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "network/collective.h"

namespace foretrace {

class Expander {
 public:
  Expander(const Algorithm& algorithm, const Call& call, LinkCosts costs)
      : algorithm_(algorithm),
        call_(call),
        costs_(costs),
        plan_(algorithm.plan(call, costs)),
        ready_((plan_.lag + 1) * std::size_t{plan_.endpoints}),
        sending_(plan_.endpoints),
        receiving_(plan_.endpoints) {
    for (const LinkCost& cost : costs) beta_.push_back(1e9 / cost.bandwidth.bytes_per_second);
  }

  Expansion run() {
    for (round_ = 0; round_ < plan_.rounds; ++round_) {
      carry_over();
      for (std::uint32_t rank = 0; rank < plan_.endpoints; ++rank) {
        messages_.clear();
        algorithm_.sends(call_, plan_, rank, round_, messages_);
        for (const Message& message : messages_) send(rank, message);
      }
    }
    for (const std::int64_t time : ready_) last_ = std::max(last_, time);
    expansion_.time = Nanoseconds(last_);
    return expansion_;
  }

 private:
  /// Arrivals of round r, one entry per endpoint. Only the last lag + 1 rounds are kept.
  std::int64_t* ready_in(std::uint32_t round) {
    return ready_.data() + std::size_t{round % (plan_.lag + 1)} * plan_.endpoints;
  }

  /// After this, row r holds the time by which all messages sent in rounds up to r have arrived.
  void carry_over() {
    if (plan_.lag == 0) {
      if (round_ == plan_.second_phase) gate_ = ready_;
      return;
    }
    if (round_ == 0) return;
    std::copy_n(ready_in(round_ + plan_.lag), plan_.endpoints, ready_in(round_));
  }

  std::int64_t earliest(std::uint32_t rank) {
    if (plan_.switches_from < plan_.endpoints && rank < plan_.switches_from) return 0;
    if (plan_.lag == 0) return gate_.empty() ? 0 : gate_[rank];
    return round_ < plan_.lag ? 0 : ready_in(round_ - plan_.lag)[rank];
  }

  void send(std::uint32_t from, const Message& message) {
    const std::size_t level = std::min<std::size_t>(message.level, costs_.size() - 1);
    const LinkCost& cost = costs_[level];
    const auto bytes = static_cast<double>(message.bytes.count);
    const std::int64_t alpha = cost.latency.count(), wire = std::llround(bytes * beta_[level]);
    const std::int64_t busy = wire + (message.streams ? 0 : alpha);
    std::int64_t start = earliest(from);
    if (from < plan_.switches_from) {
      start = std::max(start, sending_[from]);
      sending_[from] = start + busy;
    }
    std::int64_t arrival = start + alpha + wire;
    if (message.to < plan_.switches_from) {
      arrival = std::max(arrival, receiving_[message.to] + busy);
      receiving_[message.to] = arrival;
    }
    // The reduction starts only once the receiver's own earlier rounds have arrived.
    if (message.reduces)
      arrival =
          std::max(arrival, earliest(message.to)) + std::llround(bytes * cost.reduce_ns_per_byte);
    std::int64_t& ready = ready_in(round_)[message.to];
    ready = std::max(ready, arrival);
    ++expansion_.messages;
    expansion_.moved += message.bytes;
  }

  const Algorithm& algorithm_;
  const Call& call_;
  LinkCosts costs_;
  Plan plan_;
  std::vector<double> beta_;  ///< Nanoseconds per byte, by level.
  std::vector<std::int64_t> ready_, gate_, sending_, receiving_;
  std::vector<Message> messages_;
  std::uint32_t round_ = 0;
  std::int64_t last_ = 0;
  Expansion expansion_;
};

/// Works out every message. Takes O(messages) time and O(endpoints) memory.
inline Expansion expand(const Algorithm& algorithm, const Call& call, LinkCosts costs) {
  return Expander(algorithm, call, costs).run();
}

}  // namespace foretrace

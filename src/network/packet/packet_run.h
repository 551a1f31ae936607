#pragma once

// Runs collectives whose messages are packets, and measures how long the messages take.

#include <span>
#include <vector>

#include "network/flow/rounds.h"
#include "network/packet/packets.h"

namespace foretrace {

struct PacketRun {
  Expansion expansion;
  PacketCounts counts;
  /// Times of single messages.
  Nanoseconds mean{0}, median{0}, p99{0};
};

/// One of several collectives that share a packet network, with the shares of each message that may
/// be missing. `loss` and `pull_loss` are divided among the rounds of a tensor, for messages that
/// are reduced and for others, so that the total loss over all its rounds stays within each.
struct PacketCollective {
  CollectiveRun rounds;
  std::uint8_t queue = 0;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

/// Runs collectives together. Throws Error if settings contradict each other. `times` is as for
/// run_rounds().
PacketRun simulate_packets(const PacketPaths& paths, const PacketSettings& settings,
                           std::span<const PacketCollective> collectives,
                           std::vector<CollectiveTimes>& times);

/// Runs one collective alone, with the loss given in the settings.
PacketRun simulate_packets(const PacketPaths& paths, const PacketSettings& settings,
                           const Algorithm& algorithm, const Call& call, LinkCosts costs);

/// Runs it on a uniform network.
PacketRun simulate_packets(const LinkCost& cost, const PacketSettings& settings,
                           const Algorithm& algorithm, const Call& call);

/// A message that begins at a given time.
struct TimedMessage {
  PacketMessage message;
  Nanoseconds at{0};
};
PacketRun run_messages(const PacketPaths& paths, const PacketSettings& settings,
                       const std::vector<TimedMessage>& messages);

}  // namespace foretrace

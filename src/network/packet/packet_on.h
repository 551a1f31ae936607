#pragma once

// A collective whose messages are packets, and how long its messages took.

#include <span>
#include <vector>

#include "network/flow/rounds.h"
#include "network/packet/packets.h"

namespace foretrace {

struct PacketRun {
  Expansion expansion;
  PacketCounts counts;
  /// How long messages took.
  Nanoseconds mean{0}, median{0}, p99{0};
};

/// One of several collectives whose packets meet. The share of each message that may be missing: a
/// message that is added up loses a part of `loss`, others of `pull_loss`, so that what is lost on
/// all hops of a tensor stays within both.
struct PacketCollective {
  RoundsOf rounds;
  std::uint8_t queue = 0;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

/// Throws Error where settings contradict each other. `times` as for run_rounds().
PacketRun packets_together(const PacketPaths& paths, const PacketSettings& settings,
                           std::span<const PacketCollective> collectives,
                           std::vector<RoundsTimes>& times);

/// One by itself, with the loss that the settings have.
PacketRun packet_on(const PacketPaths& paths, const PacketSettings& settings,
                    const Algorithm& algorithm, const Call& call, LinkCosts costs);

/// The same on a uniform network.
PacketRun packet_on(const LinkCost& cost, const PacketSettings& settings,
                    const Algorithm& algorithm, const Call& call);

/// Messages that begin at given times, until nothing is under way.
struct TimedMessage {
  PacketMessage message;
  Nanoseconds at{0};
};
PacketRun run_messages(const PacketPaths& paths, const PacketSettings& settings,
                       const std::vector<TimedMessage>& messages);

}  // namespace foretrace

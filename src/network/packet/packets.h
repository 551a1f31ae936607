#pragma once

// Traffic as packets: queues that fill up, drop and mark; senders that slow down and retransmit.
//
// Every packet has an event for each link on its path, and one more if it has to wait. A message
// that is alone on its links runs as a train (train.h): one event for all its packets until another
// message comes to one of these links; the packets are then placed where they are at that time. The
// cost therefore grows with contention, not with bytes.
//
// All messages from one endpoint to another use one connection: they share a window, which the most
// urgent messages use first. An idle connection starts over with its first window.
//
// Acknowledgements take the latency of the path, use no bandwidth, and are never lost. Packets are
// stored and forwarded. Results depend only on the settings and the order of calls.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "foretrace/units.h"
#include "network/packet/paths.h"
#include "network/packet/ports.h"
#include "network/packet/settings.h"

namespace foretrace {

struct PacketMessage {
  std::uint32_t from = 0, to = 0;
  Bytes bytes{};
  std::uint8_t queue = 0;  ///< 0 to 7; 0 is served first.
  double loss = 0;         ///< The share that may be missing, if the transport bounds loss.
  double unimportant = 0;  ///< The share of its packets that switches may drop early.
};

using MessageId = std::uint32_t;

class Packets {
 public:
  /// Throws Error if settings contradict each other. REQUIRES: `paths` outlives this.
  Packets(const PacketPaths& paths, const PacketSettings& settings);
  Packets(Packets&&) noexcept;
  ~Packets();

  /// REQUIRES: `now` does not decrease from call to call. Ids of messages that have arrived are
  /// reused.
  MessageId begin(const PacketMessage& message, Nanoseconds now);

  /// Returns the next time up to `limit` at which a message has left its sender or has arrived;
  /// nullopt if there is none.
  std::optional<Nanoseconds> next(Nanoseconds limit);
  /// Appends the messages whose last packet was first sent by `now`, and those that have arrived by
  /// `now`, ordered by time and id.
  void take(Nanoseconds now, std::vector<MessageId>& left, std::vector<MessageId>& arrived);
  /// Runs until nothing is in flight.
  void finish();

  const PacketCounts& counts() const;
  /// How long each message took, in the order in which they arrived.
  const std::vector<Nanoseconds>& completions() const;
  std::size_t active() const;

 private:
  std::unique_ptr<class PacketEngine> engine_;
};

}  // namespace foretrace

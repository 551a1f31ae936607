#pragma once

// Traffic as packets: queues that fill up, drop and mark; senders that slow down and send again.
//
// Every packet has an event for each link that it takes, and one more where it has to wait. A
// message whose links carry nothing else is a train (train.h): one event, until another message
// comes to one of its links; then its packets are put where they are by then. So the cost grows
// with contention and not with bytes.
//
// Messages from one endpoint to another are one connection: they share a window, of which the most
// urgent take what there is. A connection on which nothing is under way begins anew.
//
// Acknowledgements take the latency of the path, no bandwidth, and are not lost. Packets are
// stored and forwarded. Everything is a function of the settings and the order of calls.

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
  double loss = 0;         ///< The share that may be missing, where the transport bounds loss.
  double unimportant = 0;  ///< The share of its packets that switches may drop early.
};

using MessageId = std::uint32_t;

class Packets {
 public:
  /// Throws Error on settings that contradict each other. REQUIRES: `paths` outlives this.
  Packets(const PacketPaths& paths, const PacketSettings& settings);
  Packets(Packets&&) noexcept;
  ~Packets();

  /// Times must not go back from call to call. Ids of messages that have arrived are used again.
  MessageId begin(const PacketMessage& message, Nanoseconds now);

  /// The next time up to `limit` at which a message has left its sender or has arrived; nothing
  /// where none does until then.
  std::optional<Nanoseconds> next(Nanoseconds limit);
  /// Appends, in order of time and id, the messages whose last packet was sent for the first time,
  /// and those that arrived, by `now`.
  void take(Nanoseconds now, std::vector<MessageId>& left, std::vector<MessageId>& arrived);
  /// Until nothing is under way.
  void finish();

  const PacketCounts& counts() const;
  /// How long each message took, in the order in which they arrived.
  const std::vector<Nanoseconds>& completions() const;
  std::size_t active() const;

 private:
  std::unique_ptr<class PacketEngine> engine_;
};

}  // namespace foretrace

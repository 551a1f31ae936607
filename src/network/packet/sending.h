#pragma once

// The state of one message at both ends. Each packet is acknowledged by itself, so that transports
// can tell which are missing. Windows and counts are in packets.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "network/packet/packet.h"

namespace foretrace {

/// A set of packet numbers.
class PacketSet {
 public:
  void reset(std::uint32_t packets) { words_.assign((packets + 63U) / 64U, 0); }
  bool has(std::uint32_t i) const { return (words_[i / 64U] >> (i % 64U) & 1U) != 0; }
  void add(std::uint32_t i) { words_[i / 64U] |= std::uint64_t{1} << (i % 64U); }
  void remove(std::uint32_t i) { words_[i / 64U] &= ~(std::uint64_t{1} << (i % 64U)); }

 private:
  std::vector<std::uint64_t> words_;
};

/// The messages from one endpoint to another share what may be in flight between them.
struct Connection {
  Connection(double full, double first) : window(first), threshold(full) {}

  double window, threshold;
  std::uint64_t sent = 0, passed = 0;  ///< Packets that were ever in flight, and no longer are.
  std::uint64_t recover = 0;           ///< The window shrinks again for losses from here on.
  double marks = 0, answers = 0, congestion = 0;  ///< DCTCP: of this window; alpha.
  std::uint64_t window_end = 0;
  Picoseconds smoothed = 0;         ///< Round trip.
  std::vector<std::uint32_t> open;  ///< Messages, the most urgent first.
};

struct Sending {
  // The message.
  std::uint32_t from = 0, to = 0;
  std::int64_t bytes = 0;
  std::uint32_t packets = 0, slice = 0, last = 0;  ///< Payload of a packet, and of the last one.
  std::uint8_t queue = 0;
  std::int64_t needed = 0;  ///< Bytes that do, as the rest may be lost.
  double unimportant = 0;   ///< Share of its packets.

  std::uint64_t luck = 0;  ///< Of this message among those of its pair; seeds that of packets.
  std::uint32_t resent = 0;

  // Its paths.
  std::uint32_t pair = 0;  ///< See PairPaths.
  std::uint32_t paths = 1, first_path = 0;
  Picoseconds round_trip = 0;  ///< Without waiting in queues.
  Picoseconds back = 0;        ///< How long an acknowledgement takes.
  double full_window = 0;      ///< A round trip of packets at the rate of the narrowest link.

  // The sender.
  std::shared_ptr<Connection> connection;
  std::uint32_t next = 0;       ///< The first that was never sent.
  std::uint32_t base = 0;       ///< All before it are acknowledged.
  std::uint32_t highest = 0;    ///< One past the highest that is acknowledged.
  std::uint32_t looked_at = 0;  ///< Those before it were searched for gaps.
  std::uint32_t in_flight = 0;
  std::uint32_t timeouts = 0;  ///< In a row.
  std::uint32_t cut = 0;       ///< Packets that came without payload.
  Picoseconds deadline = 0;
  std::vector<std::uint32_t> again;  ///< To be sent again, from `again_at` on.
  std::uint32_t again_at = 0;
  PacketSet acknowledged, outstanding;

  // The receiver.
  PacketSet got;
  std::int64_t got_bytes = 0;

  // The run.
  Picoseconds begun = 0;
  std::uint32_t under_way = 0;  ///< Packets and acknowledgements.
  bool stopped = false;         ///< The sender knows that the receiver has enough.
  bool has_left = false, has_ended = false, has_timer = false, is_train = false;
  bool uses_links = false;
  bool wants_probe = false;
  std::uint32_t probes = 0;  ///< Those under way.
  /// The probes ask for packets before `probed`, unless sent again from `probed_again` on.
  std::uint32_t probed = 0, probed_again = 0;

  std::uint32_t payload(std::uint32_t seq) const { return seq + 1 == packets ? last : slice; }
  bool has_more() const { return again_at < again.size() || next < packets; }

  /// A packet no longer counts as being in flight, for it arrived or was lost.
  void settle(std::uint32_t seq) {
    if (!outstanding.has(seq)) return;
    outstanding.remove(seq);
    --in_flight;
    ++connection->passed;
  }
  void send_again(std::uint32_t seq) {
    settle(seq);
    again.push_back(seq);
  }
  /// Settles the packets that at least `distance` later ones have overtaken, calling lost(seq) for
  /// each. Each is looked at once: one that is lost again is left to the timer.
  template <class Lost>
  void find_gaps(std::uint32_t distance, const Lost& lost) {
    for (; looked_at + distance < highest; ++looked_at) {
      if (!acknowledged.has(looked_at) && outstanding.has(looked_at)) lost(looked_at);
    }
  }
  /// All that is not acknowledged is sent again.
  void send_all_again() {
    again.clear();
    again_at = 0;
    for (std::uint32_t seq = base; seq < next; ++seq) {
      if (!acknowledged.has(seq)) send_again(seq);
    }
    looked_at = next;
    connection->recover = connection->sent;
  }
  /// The answer to a probe is there, and with the last of them the BITMAP: packets sent before the
  /// probes that are not acknowledged are lost. While there are packets that were never sent, those
  /// go first.
  void take_bitmap() {
    if (--probes > 0) return;
    PacketSet later;
    later.reset(packets);
    for (std::uint32_t i = probed_again; i < again.size(); ++i) later.add(again[i]);
    for (std::uint32_t seq = base; seq < probed; ++seq) {
      if (acknowledged.has(seq) || later.has(seq)) continue;
      settle(seq);
      if (next == packets) again.push_back(seq);
    }
  }
};

}  // namespace foretrace

#pragma once

// The state of one message at sender and receiver. Each packet is acknowledged individually, so
// that transports know which ones are missing. Windows and counts are in packets.

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

/// The messages from one endpoint to another share one window.
struct Connection {
  Connection(double full, double first) : window(first), threshold(full) {}

  double window, threshold;
  /// Packets that were ever sent, and packets that are no longer in flight.
  std::uint64_t sent = 0, passed = 0;
  std::uint64_t recover = 0;  ///< Only losses of packets from here on shrink the window again.
  /// DCTCP: counts of the current window; the estimate alpha.
  double marks = 0, answers = 0, congestion = 0;
  std::uint64_t window_end = 0;
  Picoseconds smoothed = 0;         ///< Smoothed round trip.
  std::vector<std::uint32_t> open;  ///< Messages, the most urgent first.
};

struct MessageTransfer {
  // The message.
  std::uint32_t from = 0, to = 0;
  std::int64_t bytes = 0;
  /// Payload bytes of a packet, and of the last packet.
  std::uint32_t packets = 0, slice = 0, last = 0;
  std::uint8_t queue = 0;
  std::int64_t needed = 0;  ///< Bytes that suffice, as the rest may be lost.
  double unimportant = 0;   ///< Share of its packets that are unimportant.

  /// Seeds the random numbers of its packets; differs among the messages of a pair.
  std::uint64_t loss_seed = 0;
  std::uint32_t resent = 0;

  // Its paths.
  std::uint32_t pair = 0;  ///< See PairPaths.
  std::uint32_t paths = 1, first_path = 0;
  Picoseconds round_trip = 0;  ///< On idle links.
  Picoseconds back = 0;        ///< Time of an acknowledgement on its way back.
  /// The packets that fill a round trip at the rate of the narrowest link.
  double full_window = 0;

  // The sender.
  std::shared_ptr<Connection> connection;
  std::uint32_t next = 0;       ///< The first packet that was never sent.
  std::uint32_t base = 0;       ///< All packets before it are acknowledged.
  std::uint32_t highest = 0;    ///< One past the highest acknowledged packet.
  std::uint32_t looked_at = 0;  ///< All packets before it were searched for gaps.
  std::uint32_t in_flight = 0;
  std::uint32_t timeouts = 0;  ///< Consecutive timeouts.
  std::uint32_t cut = 0;       ///< Packets that arrived without payload.
  Picoseconds deadline = 0;
  std::vector<std::uint32_t> again;  ///< Packets to retransmit, from index `again_at` on.
  std::uint32_t again_at = 0;
  PacketSet acknowledged, outstanding;

  // The receiver.
  PacketSet got;
  std::int64_t got_bytes = 0;

  // The run.
  Picoseconds begun = 0;
  std::uint32_t under_way = 0;  ///< Packets and acknowledgements in flight.
  bool stopped = false;         ///< The sender knows that the receiver has enough.
  bool has_left = false, has_ended = false, has_timer = false, is_train = false;
  bool uses_links = false;
  bool wants_probe = false;
  std::uint32_t probes = 0;  ///< Probes in flight.
  /// The probes ask about packets before `probed`, except those queued for retransmission at index
  /// `probed_again` or later.
  std::uint32_t probed = 0, probed_again = 0;

  std::uint32_t payload(std::uint32_t seq) const { return seq + 1 == packets ? last : slice; }
  bool has_more() const { return again_at < again.size() || next < packets; }

  /// Removes a packet from those in flight because it arrived or was lost.
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
  /// Calls lost(seq) for each packet in flight that at least `distance` later ones have overtaken.
  /// Each packet is examined once; if a retransmission is lost too, only the timer repairs it.
  template <class Lost>
  void find_gaps(std::uint32_t distance, const Lost& lost) {
    for (; looked_at + distance < highest; ++looked_at) {
      if (!acknowledged.has(looked_at) && outstanding.has(looked_at)) lost(looked_at);
    }
  }
  /// Schedules all unacknowledged packets for retransmission.
  void send_all_again() {
    again.clear();
    again_at = 0;
    for (std::uint32_t seq = base; seq < next; ++seq) {
      if (!acknowledged.has(seq)) send_again(seq);
    }
    looked_at = next;
    connection->recover = connection->sent;
  }
  /// Handles the answer to a probe. The last answer brings the BITMAP: packets sent before the
  /// probes that are not acknowledged are lost. They are retransmitted only once every packet was
  /// sent for the first time.
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

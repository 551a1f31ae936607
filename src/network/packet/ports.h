#pragma once

// The queues in front of links, and how a switch treats a packet that meets a long queue:
//
//     packet --> room for it?  --> its queue long? --> [0|1|2|3|4|5|6|7] --> link
//                   | no              | yes               strict priority
//                   v                 v
//            drop, or cut its     mark it; an unimportant
//            payload ("trim")     one is dropped (K_low)
//
// Thresholds apply to all queues of a port together: with one threshold per queue, less urgent
// packets would fill the memory unmarked. Memory belongs to a switch and is shared by its ports.
// The links of hosts have unlimited room.

#include <array>
#include <cstdint>
#include <vector>

#include "base/random_generator.h"
#include "network/packet/packet.h"
#include "network/packet/paths.h"
#include "network/packet/settings.h"

namespace foretrace {

/// Counts of what happened to packets, over all links.
struct PacketCounts {
  std::uint64_t sent = 0, arrived = 0, dropped = 0, lost = 0;  ///< `lost`: by bad links.
  std::uint64_t trimmed = 0, marked = 0, hops = 0, timeouts = 0;
  std::uint64_t in_trains = 0;  ///< Packets that advanced in trains, without an event each.
  Bytes dropped_important{}, dropped_unimportant{};  ///< Includes losses on bad links.
  Bytes sent_again{};
  Bytes missing_important{}, missing_unimportant{};  ///< Never delivered, as the transport allows.
  Bytes deepest_queue{};                             ///< The longest queue of a switch port.
  Bytes fullest_switch{};                            ///< The most bytes that a switch held.
};

class Ports {
 public:
  Ports(const PacketPaths& paths, const PacketSettings& settings, bool by_remaining,
        PacketPool& packets, EventHeap& events);

  /// Offers a packet to its next link. Returns false if it is dropped; the caller then owns it
  /// again.
  bool offer(std::uint32_t id, std::uint32_t link, Picoseconds now);
  /// Packets that were evicted to make room for others since the last call.
  std::vector<std::uint32_t>& evicted() { return evicted_; }
  /// Called when the link has become free.
  void serve(std::uint32_t link, Picoseconds now);
  /// Returns whether a bad link loses the packet that it carries.
  bool loses(std::uint32_t link, const Packet& packet) const {
    return ports_[link].is_bad && packet.loss_draw < loss_threshold_;
  }

  /// For trains: places a packet where offer() would have, behind the packets already there.
  void place(std::uint32_t id, std::uint32_t link, Picoseconds busy_until);
  void keep_busy(std::uint32_t link, Picoseconds until);

  bool is_idle(std::uint32_t link, Picoseconds now) const {
    return ports_[link].free <= now && ports_[link].waiting == 0;
  }
  bool is_bad(std::uint32_t link) const { return ports_[link].is_bad; }
  /// Reports the round trip of messages over the link, which sets pFabric's buffers.
  void expect(std::uint32_t link, Picoseconds round_trip);

  Picoseconds time_on(std::uint32_t link, std::uint32_t bytes) const {
    const Port& port = ports_[link];
    if (bytes == whole_packet_) return port.whole_time;
    return time_of(port, bytes);
  }
  Picoseconds latency(std::uint32_t link) const { return ports_[link].latency; }
  PacketCounts& counts() { return counts_; }
  const PacketCounts& counts() const { return counts_; }

 private:
  struct Port {
    double rate = 0;  ///< Bytes per second.
    Picoseconds latency = 0, whole_time = 0;
    Picoseconds free = 0;
    Picoseconds round_trip = 0;
    std::uint32_t memory = PacketLink::kLossless;
    std::uint32_t waiting = 0;  ///< Packets.
    bool is_waking = false, is_bad = false, has_priorities = true;
    std::uint8_t used = 0;  ///< A bit for each queue with packets.
    std::int64_t bytes = 0, mark_at = 0;
    double average = 0;
    std::array<std::uint32_t, kPortQueues> head{}, tail{};
    std::vector<std::uint32_t> shortest;  ///< pFabric: in the order of arrival.
  };

  static Picoseconds time_of(const Port& port, std::uint32_t bytes);
  void start(std::uint32_t id, std::uint32_t link, Picoseconds now);
  static std::size_t queue_of(const Port& port, const Packet& packet) {
    return port.has_priorities ? packet.queue : 0;
  }
  void push(Port& port, std::uint32_t id);
  std::uint32_t pop(Port& port);
  std::uint32_t pop_shortest(Port& port);
  bool admit(Port& port, std::uint32_t id);
  bool admit_by_remaining(Port& port, std::uint32_t id);
  bool drops_early(Port& port, Packet& packet);
  bool cut(const Port& port, Packet& packet);
  void take_out(Port& port, const Packet& packet);
  void drop(const Packet& packet);

  PacketPool& packets_;
  EventHeap& events_;
  std::uint32_t whole_packet_;
  bool by_remaining_, trims_, is_red_;
  std::int64_t buffer_, port_limit_, drop_at_, header_room_;
  double loss_threshold_;  ///< Packets below this value are lost on bad links.
  RandomGenerator draws_;
  std::vector<Port> ports_;
  std::vector<std::int64_t> used_bytes_;  ///< Bytes, by switch.
  std::vector<std::uint32_t> evicted_;
  PacketCounts counts_;
};

}  // namespace foretrace

#include "network/packet/ports.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace foretrace {
namespace {

/// NDP (Handley et al., SIGCOMM 2017): headers of 64 bytes, which have reserved room.
constexpr std::uint32_t kHeaderBytes = 64;
constexpr std::int64_t kHeaderShare = 16;  ///< Headers get 1/16 of the buffer; assumed.

/// RED (Floyd and Jacobson, 1993) with the recommended values: weight of the average, maximum drop
/// probability, and the ratio of the upper to the lower threshold.
constexpr double kRedWeight = 0.002, kRedMost = 0.1, kRedSpan = 3;

/// pFabric's buffers, in bandwidth-delay products.
constexpr double kPfabricBuffer = 2;

}  // namespace

Ports::Ports(const PacketPaths& paths, const PacketSettings& settings, bool by_remaining,
             PacketPool& packets, EventHeap& events)
    : packets_(packets),
      events_(events),
      whole_packet_(static_cast<std::uint32_t>((settings.slice + settings.header).count)),
      by_remaining_(by_remaining),
      trims_(settings.queue == "trim"),
      is_red_(settings.queue == "red"),
      buffer_(settings.buffer.count),
      port_limit_(settings.port_limit().count),
      drop_at_(std::min(settings.drop_threshold().count, port_limit_)),
      header_room_(trims_ ? port_limit_ / kHeaderShare : 0),
      loss_threshold_(settings.link_loss * 0x1p32),
      draws_(static_cast<std::uint64_t>(settings.seed)),
      ports_(paths.links.size()),
      used_bytes_(paths.memories) {
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    const PacketLink& link = paths.links[i];
    Port& port = ports_[i];
    port.rate = link.bandwidth.bytes_per_second;
    port.latency = link.latency.count() * 1000;
    port.memory = buffer_ > 0 ? link.memory : PacketLink::kLossless;
    port.is_bad = link.is_first_hosts && settings.link_loss > 0;
    port.has_priorities = settings.switch_priorities || link.memory == PacketLink::kLossless;
    port.mark_at = settings.mark_threshold(link.bandwidth).count;
    port.whole_time = time_of(port, whole_packet_);
  }
}

Picoseconds Ports::time_of(const Port& port, std::uint32_t bytes) {
  return std::llround(static_cast<double>(bytes) * 1e12 / port.rate);
}

void Ports::expect(std::uint32_t link, Picoseconds round_trip) {
  ports_[link].round_trip = std::max(ports_[link].round_trip, round_trip);
}

void Ports::start(std::uint32_t id, std::uint32_t link, Picoseconds now) {
  Port& port = ports_[link];
  port.free = now + time_on(link, packets_[id].bytes);
  ++counts_.hops;
  const bool is_probe = packets_[id].has(Packet::probe);
  events_.push(port.free + port.latency, is_probe ? EventHeap::probe_arrival : EventHeap::arrival,
               id);
}

bool Ports::offer(std::uint32_t id, std::uint32_t link, Picoseconds now) {
  Port& port = ports_[link];
  if (port.free <= now && port.waiting == 0) {
    start(id, link, now);
    return true;
  }
  if (!admit(port, id)) return false;
  push(port, id);
  if (!port.is_waking) {
    port.is_waking = true;
    events_.push(port.free, EventHeap::port_free, link);
  }
  return true;
}

void Ports::place(std::uint32_t id, std::uint32_t link, Picoseconds busy_until) {
  Port& port = ports_[link];
  if (port.waiting == 0) port.free = std::max(port.free, busy_until);
  push(port, id);
  if (port.is_waking) return;
  port.is_waking = true;
  events_.push(port.free, EventHeap::port_free, link);
}

void Ports::keep_busy(std::uint32_t link, Picoseconds until) {
  ports_[link].free = std::max(ports_[link].free, until);
}

void Ports::serve(std::uint32_t link, Picoseconds now) {
  Port& port = ports_[link];
  port.is_waking = false;
  if (port.waiting == 0) return;
  if (port.free <= now) start(by_remaining_ ? pop_shortest(port) : pop(port), link, now);
  if (port.waiting == 0) return;
  port.is_waking = true;
  events_.push(port.free, EventHeap::port_free, link);
}

void Ports::push(Port& port, std::uint32_t id) {
  Packet& packet = packets_[id];
  packet.next = kNoPacket;
  ++port.waiting;
  port.bytes += packet.bytes;
  if (port.memory != PacketLink::kLossless) {
    std::int64_t& used = used_bytes_[port.memory];
    used += packet.bytes;
    counts_.fullest_switch = std::max(counts_.fullest_switch, Bytes{used});
    counts_.deepest_queue = std::max(counts_.deepest_queue, Bytes{port.bytes});
  }
  if (by_remaining_) return port.shortest.push_back(id);
  const std::size_t queue = queue_of(port, packet);
  if ((port.used >> queue & 1U) != 0)
    packets_[port.tail[queue]].next = id;
  else
    port.head[queue] = id;
  port.tail[queue] = id;
  port.used = static_cast<std::uint8_t>(port.used | 1U << queue);
}

void Ports::take_out(Port& port, const Packet& packet) {
  --port.waiting;
  port.bytes -= packet.bytes;
  if (port.memory != PacketLink::kLossless) used_bytes_[port.memory] -= packet.bytes;
}

std::uint32_t Ports::pop(Port& port) {
  const auto queue = static_cast<std::size_t>(std::countr_zero(port.used));
  const std::uint32_t id = port.head[queue];
  const Packet& packet = packets_[id];
  port.head[queue] = packet.next;
  if (packet.next == kNoPacket) port.used = static_cast<std::uint8_t>(port.used & ~(1U << queue));
  take_out(port, packet);
  return id;
}

/// Removes the earliest packet of the message with the fewest remaining packets.
std::uint32_t Ports::pop_shortest(Port& port) {
  auto best = port.shortest.begin();
  for (auto at = best; at != port.shortest.end(); ++at) {
    if (packets_[*at].remaining < packets_[*best].remaining) best = at;
  }
  const std::uint32_t flow = packets_[*best].flow;
  for (auto at = port.shortest.begin(); at != port.shortest.end(); ++at) {
    if (packets_[*at].flow == flow && packets_[*at].seq < packets_[*best].seq) best = at;
  }
  const std::uint32_t id = *best;
  port.shortest.erase(best);
  take_out(port, packets_[id]);
  return id;
}

void Ports::drop(const Packet& packet) {
  ++counts_.dropped;
  (packet.has(Packet::important) ? counts_.dropped_important : counts_.dropped_unimportant) +=
      Bytes{packet.bytes};
}

/// Cuts the payload and lets the header go first. Returns false if even the header finds no room.
bool Ports::cut(const Port& port, Packet& packet) {
  if (!trims_ || packet.has(Packet::trimmed)) return false;
  packet.bytes = std::min(packet.bytes, kHeaderBytes);
  packet.queue = 0;
  packet.set(Packet::trimmed);
  ++counts_.trimmed;
  return used_bytes_[port.memory] + packet.bytes <= buffer_ &&
         port.bytes + packet.bytes <= port_limit_;
}

bool Ports::drops_early(Port& port, Packet& packet) {
  if (packet.has(Packet::trimmed)) return false;
  if (!packet.has(Packet::important)) return port.bytes > drop_at_;
  if (!is_red_ || packet.has(Packet::can_mark)) return false;
  port.average += kRedWeight * (static_cast<double>(port.bytes) - port.average);
  const auto least = static_cast<double>(port.mark_at);
  const double over = (port.average - least) / (least * (kRedSpan - 1));
  return over > 0 && (over >= 1 || draws_.uniform() < over * kRedMost);
}

bool Ports::admit(Port& port, std::uint32_t id) {
  if (port.memory == PacketLink::kLossless) return true;
  if (by_remaining_) return admit_by_remaining(port, id);
  Packet& packet = packets_[id];
  if (packet.has(Packet::probe)) return true;
  if (drops_early(port, packet)) return drop(packet), false;
  const std::int64_t size = packet.bytes, room = packet.has(Packet::trimmed) ? 0 : header_room_;
  if (port.bytes + size > port_limit_ - room || used_bytes_[port.memory] + size > buffer_ - room) {
    if (!cut(port, packet)) return drop(packet), false;
    return true;
  }
  if (packet.has(Packet::can_mark) && port.bytes > port.mark_at) {
    packet.set(Packet::marked);
    ++counts_.marked;
  }
  return true;
}

/// A full queue drops the packet whose message has most remaining, which may be the arriving one.
bool Ports::admit_by_remaining(Port& port, std::uint32_t id) {
  const Packet& packet = packets_[id];
  const auto limit = static_cast<std::int64_t>(kPfabricBuffer * port.rate *
                                               static_cast<double>(port.round_trip) * 1e-12);
  if (port.bytes + packet.bytes <= std::min(limit, port_limit_)) return true;
  auto worst = port.shortest.end();
  std::uint32_t most = packet.remaining;
  for (auto at = port.shortest.begin(); at != port.shortest.end(); ++at) {
    if (packets_[*at].remaining > most) worst = at, most = packets_[*at].remaining;
  }
  drop(worst == port.shortest.end() ? packet : packets_[*worst]);
  if (worst == port.shortest.end()) return false;
  take_out(port, packets_[*worst]);
  evicted_.push_back(*worst);
  port.shortest.erase(worst);
  return true;
}

}  // namespace foretrace

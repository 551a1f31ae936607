#include "base/draws.h"
#include "network/packet/engine.h"

namespace foretrace {

std::uint32_t PacketEngine::wire_bytes(const Sending& one, std::uint32_t seq) const {
  return one.payload(seq) + static_cast<std::uint32_t>(settings_.header.count);
}

bool PacketEngine::is_unimportant(const Sending& one, std::uint32_t seq) const {
  if (one.unimportant <= 0) return false;
  const std::uint64_t pair = std::uint64_t{one.from} << 32U | one.to;
  const auto seed = static_cast<std::uint64_t>(settings_.seed);
  return Draws(Draws(pair ^ seed << 1U).next() + seq).uniform() < one.unimportant;
}

std::uint32_t PacketEngine::make_packet(MessageId id, std::uint32_t seq, bool again) {
  Sending& one = messages_[id];
  const std::uint32_t made = packets_.take();
  Packet& packet = packets_[made];
  packet.flow = id;
  packet.seq = seq;
  packet.bytes = wire_bytes(one, seq);
  packet.queue = one.queue;
  packet.remaining = one.packets - one.base;
  packet.path = static_cast<std::uint16_t>((seq + one.first_path + (again ? 1 + one.timeouts : 0)) %
                                           one.paths);
  packet.hop = pairs_.begin(one.pair, packet.path);
  if (again || !is_unimportant(one, seq)) packet.set(Packet::important);
  if (again) packet.set(Packet::again);
  if (traits_.is_marked) packet.set(Packet::can_mark);
  if (!one.outstanding.has(seq)) {
    one.outstanding.add(seq);
    ++one.in_flight;
  }
  ++one.under_way;
  ++ports_.counts().sent;
  if (again) ports_.counts().sent_again += Bytes{one.payload(seq)};
  return made;
}

void PacketEngine::send(MessageId id, std::uint32_t seq, bool again, Picoseconds now) {
  const std::uint32_t packet = make_packet(id, seq, again);
  packets_[packet].sent = now;
  offer(packet, now);
}

void PacketEngine::go(MessageId id, Picoseconds now) {
  send_more(id, now);
  Sending& one = messages_[id];
  if (one.stopped || one.has_timer) return;
  if (one.deadline <= now) one.deadline = now + transport_->patience(one);
  one.has_timer = true;
  events_.push(one.deadline, EventHeap::timer, id);
}

void PacketEngine::send_more(MessageId id, Picoseconds now) {
  for (;;) {
    Sending& one = messages_[id];
    if (one.stopped || one.in_flight + 1 > one.window || !one.has_more()) break;
    if (one.again_at < one.again.size()) {
      const std::uint32_t seq = one.again[one.again_at++];
      if (!one.acknowledged.has(seq)) send(id, seq, true, now);
    } else {
      send(id, one.next++, false, now);
    }
  }
  Sending& one = messages_[id];
  if (one.next == one.packets && !one.has_left) leave(id);
  if (!traits_.bounds_loss || one.stopped || one.probes > 0) return;
  if (one.wants_probe || !one.has_more()) probe(id, now);
}

void PacketEngine::probe(MessageId id, Picoseconds now) {
  messages_[id].wants_probe = false;
  messages_[id].probed = messages_[id].next;
  messages_[id].probed_again = messages_[id].again_at;
  for (std::uint32_t path = 0; path < messages_[id].paths; ++path) {
    Sending& one = messages_[id];
    const std::uint32_t made = packets_.take();
    Packet& packet = packets_[made];
    packet.flow = id;
    packet.queue = one.queue;
    packet.path = static_cast<std::uint16_t>(path);
    packet.hop = pairs_.begin(one.pair, path);
    packet.flags = Packet::important | Packet::probe;
    ++one.probes;
    ++one.under_way;
    ports_.offer(made, pairs_.link(packet.hop), now);
  }
}

void PacketEngine::leave(MessageId id) {
  messages_[id].has_left = true;
  left_.push_back(id);
}

void PacketEngine::answer(std::uint32_t id, Picoseconds now) {
  const Packet packet = packets_[id];
  packets_.give_back(id);
  Sending& one = messages_[packet.flow];
  --one.under_way;
  if (packet.has(Packet::stop)) one.stopped = true;
  if (packet.has(Packet::probe))
    one.take_bitmap();
  else
    take_acknowledgement(*transport_, one, packet, now);
  one.deadline = now + transport_->patience(one);
  if (!one.stopped) go(packet.flow, now);
  release(packet.flow);
}

void PacketEngine::timer(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  one.has_timer = false;
  if (one.stopped) return release(id);
  if (now >= one.deadline) {
    ++ports_.counts().timeouts;
    transport_->silent(one);
    one.deadline = now + transport_->patience(one);
  }
  go(id, now);
}

}  // namespace foretrace

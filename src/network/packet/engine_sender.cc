#include <algorithm>

#include "base/draws.h"
#include "network/packet/engine.h"

namespace foretrace {

void PacketEngine::join_connection(MessageId id) {
  Sending& one = messages_[id];
  std::shared_ptr<Connection>& known = of_pair_[one.pair].connection;
  if (traits_.by_remaining || !known || known->open.empty())
    known = std::make_shared<Connection>(one.full_window, first_window(one));
  one.connection = known;
  const auto behind = std::ranges::upper_bound(
      known->open, one.queue, {}, [&](MessageId other) { return messages_[other].queue; });
  known->open.insert(behind, id);
}

double PacketEngine::first_window(const Sending& one) const {
  const auto first = static_cast<double>(settings_.first_window);
  return first == 0 || traits_.by_remaining ? one.full_window : std::min(first, one.full_window);
}

std::uint32_t PacketEngine::in_flight(const Sending& one) const {
  std::uint32_t sum = 0;
  for (const MessageId id : one.connection->open) {
    if (messages_[id].queue <= one.queue) sum += messages_[id].in_flight;
  }
  return sum;
}

bool PacketEngine::is_held(const Sending& one) const {
  return one.in_flight == 0 && one.has_more() && in_flight(one) > 0;
}

void PacketEngine::go_on(const Connection& connection, Picoseconds now) {
  if (connection.open.size() == 1) return go_on(connection.open.front(), now);
  const std::vector<MessageId> open = connection.open;
  for (const MessageId id : open) go_on(id, now);
}

void PacketEngine::go_on(MessageId id, Picoseconds now) {
  if (!messages_[id].is_train && !messages_[id].stopped) go(id, now);
}

std::uint32_t PacketEngine::wire_bytes(const Sending& one, std::uint32_t seq) const {
  return one.payload(seq) + static_cast<std::uint32_t>(settings_.header.count);
}

bool PacketEngine::is_unimportant(const Sending& one, std::uint32_t seq) const {
  if (one.unimportant <= 0) return false;
  return Draws(Draws(pair_seed(one)).next() + seq).uniform() < one.unimportant;
}

std::uint64_t PacketEngine::pair_seed(const Sending& one) const {
  const std::uint64_t pair = std::uint64_t{one.from} << 32U | one.to;
  return pair ^ static_cast<std::uint64_t>(settings_.seed) << 1U;
}

std::uint32_t PacketEngine::luck_of(Sending& one, std::uint32_t seq, bool again) {
  const std::uint64_t number = again ? (std::uint64_t{1} << 32U) + one.resent++ : seq;
  return static_cast<std::uint32_t>(Draws(one.luck + number).next() >> 32U);
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
  if (settings_.link_loss > 0) packet.luck = luck_of(one, seq, again);
  if (traits_.is_marked) packet.set(Packet::can_mark);
  if (!one.outstanding.has(seq)) {
    one.outstanding.add(seq);
    ++one.in_flight;
    ++one.connection->sent;
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
    if (one.stopped || !one.has_more() || in_flight(one) + 1 > one.connection->window) break;
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
  if (one.stopped && !one.has_left) leave(packet.flow);
  if (packet.has(Packet::probe))
    one.take_bitmap();
  else
    take_acknowledgement(*transport_, one, packet, now);
  one.deadline = now + transport_->patience(one);
  const std::shared_ptr<Connection> connection = one.connection;
  release(packet.flow);
  go_on(*connection, now);
}

void PacketEngine::timer(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  one.has_timer = false;
  if (one.stopped) return release(id);
  if (now >= one.deadline && is_held(one)) one.deadline = now + transport_->patience(one);
  if (now >= one.deadline) {
    ++ports_.counts().timeouts;
    transport_->silent(one);
    one.deadline = now + transport_->patience(one);
  }
  go(id, now);
}

}  // namespace foretrace

#include <algorithm>

#include "base/random_generator.h"
#include "network/packet/engine.h"

namespace foretrace {

void PacketEngine::join_connection(MessageId id) {
  MessageTransfer& transfer = messages_[id];
  std::shared_ptr<Connection>& connection = pair_states_[transfer.pair].connection;
  if (traits_.by_remaining || !connection || connection->open.empty())
    connection = std::make_shared<Connection>(transfer.full_window, first_window(transfer));
  transfer.connection = connection;
  const auto behind =
      std::ranges::upper_bound(connection->open, transfer.queue, {},
                               [&](MessageId other) { return messages_[other].queue; });
  connection->open.insert(behind, id);
}

double PacketEngine::first_window(const MessageTransfer& transfer) const {
  const auto first = static_cast<double>(settings_.first_window);
  return first == 0 || traits_.by_remaining ? transfer.full_window
                                            : std::min(first, transfer.full_window);
}

std::uint32_t PacketEngine::in_flight(const MessageTransfer& transfer) const {
  std::uint32_t sum = 0;
  for (const MessageId id : transfer.connection->open) {
    if (messages_[id].queue <= transfer.queue) sum += messages_[id].in_flight;
  }
  return sum;
}

bool PacketEngine::is_blocked(const MessageTransfer& transfer) const {
  return transfer.in_flight == 0 && transfer.has_more() && in_flight(transfer) > 0;
}

void PacketEngine::resume(const Connection& connection, Picoseconds now) {
  if (connection.open.size() == 1) return resume(connection.open.front(), now);
  const std::vector<MessageId> open = connection.open;
  for (const MessageId id : open) resume(id, now);
}

void PacketEngine::resume(MessageId id, Picoseconds now) {
  if (!messages_[id].is_train && !messages_[id].stopped) send_and_set_timer(id, now);
}

std::uint32_t PacketEngine::wire_bytes(const MessageTransfer& transfer, std::uint32_t seq) const {
  return transfer.payload(seq) + static_cast<std::uint32_t>(settings_.header.count);
}

bool PacketEngine::is_unimportant(const MessageTransfer& transfer, std::uint32_t seq) const {
  if (transfer.unimportant <= 0) return false;
  return RandomGenerator(RandomGenerator(pair_seed(transfer)).next() + seq).uniform() <
         transfer.unimportant;
}

std::uint64_t PacketEngine::pair_seed(const MessageTransfer& transfer) const {
  const std::uint64_t pair = std::uint64_t{transfer.from} << 32U | transfer.to;
  return pair ^ static_cast<std::uint64_t>(settings_.seed) << 1U;
}

std::uint32_t PacketEngine::loss_draw_of(MessageTransfer& transfer, std::uint32_t seq, bool again) {
  const std::uint64_t number = again ? (std::uint64_t{1} << 32U) + transfer.resent++ : seq;
  return static_cast<std::uint32_t>(RandomGenerator(transfer.loss_seed + number).next() >> 32U);
}

std::uint32_t PacketEngine::make_packet(MessageId id, std::uint32_t seq, bool again) {
  MessageTransfer& transfer = messages_[id];
  const std::uint32_t made = packets_.take();
  Packet& packet = packets_[made];
  packet.flow = id;
  packet.seq = seq;
  packet.bytes = wire_bytes(transfer, seq);
  packet.queue = transfer.queue;
  packet.remaining = transfer.packets - transfer.base;
  packet.path = static_cast<std::uint16_t>(
      (seq + transfer.first_path + (again ? 1 + transfer.timeouts : 0)) % transfer.paths);
  packet.hop = pairs_.begin(transfer.pair, packet.path);
  if (again || !is_unimportant(transfer, seq)) packet.set(Packet::important);
  if (again) packet.set(Packet::again);
  if (settings_.link_loss > 0) packet.loss_draw = loss_draw_of(transfer, seq, again);
  if (traits_.is_marked) packet.set(Packet::can_mark);
  if (!transfer.outstanding.has(seq)) {
    transfer.outstanding.add(seq);
    ++transfer.in_flight;
    ++transfer.connection->sent;
  }
  ++transfer.under_way;
  ++ports_.counts().sent;
  if (again) ports_.counts().sent_again += Bytes{transfer.payload(seq)};
  return made;
}

void PacketEngine::send(MessageId id, std::uint32_t seq, bool again, Picoseconds now) {
  const std::uint32_t packet = make_packet(id, seq, again);
  packets_[packet].sent = now;
  offer(packet, now);
}

void PacketEngine::send_and_set_timer(MessageId id, Picoseconds now) {
  send_allowed(id, now);
  MessageTransfer& transfer = messages_[id];
  if (transfer.stopped || transfer.has_timer) return;
  if (transfer.deadline <= now) transfer.deadline = now + transport_->timeout(transfer);
  transfer.has_timer = true;
  events_.push(transfer.deadline, EventHeap::timer, id);
}

void PacketEngine::send_allowed(MessageId id, Picoseconds now) {
  for (;;) {
    MessageTransfer& transfer = messages_[id];
    if (transfer.stopped || !transfer.has_more() ||
        in_flight(transfer) + 1 > transfer.connection->window)
      break;
    if (transfer.again_at < transfer.again.size()) {
      const std::uint32_t seq = transfer.again[transfer.again_at++];
      if (!transfer.acknowledged.has(seq)) send(id, seq, true, now);
    } else {
      send(id, transfer.next++, false, now);
    }
  }
  MessageTransfer& transfer = messages_[id];
  if (transfer.next == transfer.packets && !transfer.has_left) mark_left(id);
  if (!traits_.bounds_loss || transfer.stopped || transfer.probes > 0) return;
  if (transfer.wants_probe || !transfer.has_more()) probe(id, now);
}

void PacketEngine::probe(MessageId id, Picoseconds now) {
  messages_[id].wants_probe = false;
  messages_[id].probed = messages_[id].next;
  messages_[id].probed_again = messages_[id].again_at;
  for (std::uint32_t path = 0; path < messages_[id].paths; ++path) {
    MessageTransfer& transfer = messages_[id];
    const std::uint32_t made = packets_.take();
    Packet& packet = packets_[made];
    packet.flow = id;
    packet.queue = transfer.queue;
    packet.path = static_cast<std::uint16_t>(path);
    packet.hop = pairs_.begin(transfer.pair, path);
    packet.flags = Packet::important | Packet::probe;
    ++transfer.probes;
    ++transfer.under_way;
    ports_.offer(made, pairs_.link(packet.hop), now);
  }
}

void PacketEngine::mark_left(MessageId id) {
  messages_[id].has_left = true;
  left_.push_back(id);
}

void PacketEngine::take_answer(std::uint32_t id, Picoseconds now) {
  const Packet packet = packets_[id];
  packets_.give_back(id);
  MessageTransfer& transfer = messages_[packet.flow];
  --transfer.under_way;
  if (packet.has(Packet::stop)) transfer.stopped = true;
  if (transfer.stopped && !transfer.has_left) mark_left(packet.flow);
  if (packet.has(Packet::probe))
    transfer.take_bitmap();
  else
    take_acknowledgement(*transport_, transfer, packet, now);
  transfer.deadline = now + transport_->timeout(transfer);
  const std::shared_ptr<Connection> connection = transfer.connection;
  release(packet.flow);
  resume(*connection, now);
}

void PacketEngine::run_timer(MessageId id, Picoseconds now) {
  MessageTransfer& transfer = messages_[id];
  transfer.has_timer = false;
  if (transfer.stopped) return release(id);
  if (now >= transfer.deadline && is_blocked(transfer))
    transfer.deadline = now + transport_->timeout(transfer);
  if (now >= transfer.deadline) {
    ++ports_.counts().timeouts;
    transport_->on_timeout(transfer);
    transfer.deadline = now + transport_->timeout(transfer);
  }
  send_and_set_timer(id, now);
}

}  // namespace foretrace

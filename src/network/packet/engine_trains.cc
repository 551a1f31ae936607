#include <algorithm>

#include "network/packet/engine.h"

namespace foretrace {

void PacketEngine::claim_links(MessageId id, Picoseconds now) {
  messages_[id].uses_links = true;
  joined_.clear();
  each_link(messages_[id], [&](std::uint32_t link) {
    ++link_uses_[link].users;
    if (link_uses_[link].train != kNoMessage) joined_.push_back(link_uses_[link].train);
    if (traits_.by_remaining) ports_.expect(link, messages_[id].round_trip);
  });
  for (const MessageId train : joined_) {
    if (messages_[train].is_train) break_up(train, now);
  }
}

std::vector<std::span<const std::uint32_t>> PacketEngine::all_links(
    const MessageTransfer& transfer) const {
  std::vector<std::span<const std::uint32_t>> all;
  for (std::uint32_t path = 0; path < transfer.paths; ++path)
    all.push_back(pairs_.links(transfer.pair, path));
  return all;
}

Train PacketEngine::train_of(const MessageTransfer& transfer) const {
  return Train(ports_, all_links(transfer),
               {.packets = transfer.packets,
                .whole = wire_bytes(transfer, 0),
                .last = wire_bytes(transfer, transfer.packets - 1),
                .window = static_cast<std::uint32_t>(transfer.full_window),
                .first_path = transfer.first_path},
               transfer.begun);
}

bool PacketEngine::start_train(MessageId id, Picoseconds now) {
  MessageTransfer& transfer = messages_[id];
  if (!settings_.trains || first_window(transfer) < transfer.full_window) return false;
  bool is_alone = true;
  each_link(transfer, [&](std::uint32_t link) {
    is_alone = is_alone && link_uses_[link].users == 1 && ports_.is_idle(link, now) &&
               !ports_.is_bad(link);
  });
  if (!is_alone) return false;
  const Train train = train_of(transfer);
  if (!train.fits()) return false;
  transfer.is_train = true;
  each_link(transfer, [&](std::uint32_t link) { link_uses_[link].train = id; });
  transfer.deadline = train.arrives(needed_packets(transfer) - 1);
  events_.push(train.enters(transfer.packets - 1), EventHeap::train_left, id);
  events_.push(transfer.deadline, EventHeap::train_end, id);
  return true;
}

std::uint32_t PacketEngine::needed_packets(const MessageTransfer& transfer) {
  const std::int64_t count = (transfer.needed + transfer.slice - 1) / transfer.slice;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 1, transfer.packets));
}

void PacketEngine::train_left(MessageId id, Picoseconds now) {
  MessageTransfer& transfer = messages_[id];
  if (transfer.is_train && !transfer.has_left &&
      train_of(transfer).enters(transfer.packets - 1) == now)
    mark_left(id);
}

void PacketEngine::train_end(MessageId id, Picoseconds now) {
  MessageTransfer& transfer = messages_[id];
  if (!transfer.is_train || transfer.deadline != now) return;
  if (needed_packets(transfer) < transfer.packets) return break_up(id, now);
  stop_train(id);
  count_train(transfer, transfer.packets);
  transfer.got_bytes = transfer.bytes;
  transfer.stopped = true;
  if (!transfer.has_left) mark_left(id);
  end(id, now);
  release(id);
}

void PacketEngine::stop_train(MessageId id) {
  messages_[id].is_train = false;
  each_link(messages_[id], [&](std::uint32_t link) { link_uses_[link].train = kNoMessage; });
}

void PacketEngine::count_train(const MessageTransfer& transfer, std::uint32_t count) {
  PacketCounts& counts = ports_.counts();
  counts.sent += count;
  counts.arrived += count;
  counts.in_trains += count;
  counts.hops += std::uint64_t{count} * pairs_.links(transfer.pair, 0).size();
}

void PacketEngine::break_up(MessageId id, Picoseconds now) {
  const Train train = train_of(messages_[id]);
  stop_train(id);
  const std::uint32_t known = train.acknowledged_by(now);
  {
    MessageTransfer& transfer = messages_[id];
    count_train(transfer, known);
    transfer.connection->smoothed = transfer.round_trip;
    for (std::uint32_t seq = 0; seq < known; ++seq) {
      transfer.acknowledged.add(seq);
      transfer.got.add(seq);
      transfer.base = transfer.highest = transfer.looked_at = seq + 1;
      transfer.connection->passed = seq + 1;
      transfer.connection->sent =
          std::min(transfer.packets, seq + static_cast<std::uint32_t>(transfer.full_window));
      transport_->on_acknowledged(transfer, false);
    }
    transfer.got_bytes = std::int64_t{known} * transfer.slice;
    transfer.next = known;
    transfer.connection->sent = transfer.connection->passed = known;
  }
  for (std::uint32_t seq = known; seq < messages_[id].packets && train.enters(seq) <= now; ++seq) {
    messages_[id].next = seq + 1;
    place_in_flight(id, seq, train, now);
  }
  if (messages_[id].next == messages_[id].packets && !messages_[id].has_left) mark_left(id);
  messages_[id].deadline = now + transport_->timeout(messages_[id]);
  send_and_set_timer(id, now);
}

void PacketEngine::place_in_flight(MessageId id, std::uint32_t seq, const Train& train,
                                   Picoseconds now) {
  const std::uint32_t packet = make_packet(id, seq, false);
  packets_[packet].sent = train.enters(seq);
  if (train.arrives(seq) <= now) return receive(packet, train.arrives(seq));
  const std::uint32_t begin = packets_[packet].hop;
  std::uint32_t hop = 0;
  while (hop < train.hops() && train.starts(seq, hop) <= now) ++hop;
  ports_.counts().hops += hop;
  if (hop > 0) {
    const std::uint32_t link = pairs_.link(begin + hop - 1);
    const Picoseconds free = train.leaves(seq, hop - 1), arrival = free + ports_.latency(link);
    ports_.keep_busy(link, free);
    if (arrival > now || hop == train.hops()) {
      packets_[packet].hop = begin + hop - 1;
      return events_.push(arrival, EventHeap::arrival, packet);
    }
  }
  packets_[packet].hop = begin + hop;
  ports_.place(packet, pairs_.link(begin + hop), train.starts(seq, hop));
}

}  // namespace foretrace

#include <algorithm>

#include "network/packet/engine.h"

namespace foretrace {

void PacketEngine::take_links(MessageId id, Picoseconds now) {
  messages_[id].uses_links = true;
  joined_.clear();
  each_link(messages_[id], [&](std::uint32_t link) {
    ++on_link_[link].users;
    if (on_link_[link].train != kNoMessage) joined_.push_back(on_link_[link].train);
    if (traits_.by_remaining) ports_.expect(link, messages_[id].round_trip);
  });
  for (const MessageId train : joined_) {
    if (messages_[train].is_train) break_up(train, now);
  }
}

std::vector<std::span<const std::uint32_t>> PacketEngine::all_links(const Sending& one) const {
  std::vector<std::span<const std::uint32_t>> all;
  for (std::uint32_t path = 0; path < one.paths; ++path)
    all.push_back(pairs_.links(one.pair, path));
  return all;
}

Train PacketEngine::train_of(const Sending& one) const {
  return Train(ports_, all_links(one),
               {.packets = one.packets,
                .whole = wire_bytes(one, 0),
                .last = wire_bytes(one, one.packets - 1),
                .window = static_cast<std::uint32_t>(one.full_window),
                .first_path = one.first_path},
               one.begun);
}

bool PacketEngine::start_train(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  if (!settings_.trains || first_window(one) < one.full_window) return false;
  bool is_alone = true;
  each_link(one, [&](std::uint32_t link) {
    is_alone =
        is_alone && on_link_[link].users == 1 && ports_.is_idle(link, now) && !ports_.is_bad(link);
  });
  if (!is_alone) return false;
  const Train train = train_of(one);
  if (!train.fits()) return false;
  one.is_train = true;
  each_link(one, [&](std::uint32_t link) { on_link_[link].train = id; });
  one.deadline = train.arrives(needed_packets(one) - 1);
  events_.push(train.enters(one.packets - 1), EventHeap::train_left, id);
  events_.push(one.deadline, EventHeap::train_end, id);
  return true;
}

std::uint32_t PacketEngine::needed_packets(const Sending& one) {
  const std::int64_t whole = (one.needed + one.slice - 1) / one.slice;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole, 1, one.packets));
}

void PacketEngine::train_left(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  if (one.is_train && !one.has_left && train_of(one).enters(one.packets - 1) == now) leave(id);
}

void PacketEngine::train_end(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  if (!one.is_train || one.deadline != now) return;
  if (needed_packets(one) < one.packets) return break_up(id, now);
  stop_train(id);
  count_train(one, one.packets);
  one.got_bytes = one.bytes;
  one.stopped = true;
  if (!one.has_left) leave(id);
  end(id, now);
  release(id);
}

void PacketEngine::stop_train(MessageId id) {
  messages_[id].is_train = false;
  each_link(messages_[id], [&](std::uint32_t link) { on_link_[link].train = kNoMessage; });
}

void PacketEngine::count_train(const Sending& one, std::uint32_t count) {
  PacketCounts& counts = ports_.counts();
  counts.sent += count;
  counts.arrived += count;
  counts.in_trains += count;
  counts.hops += std::uint64_t{count} * pairs_.links(one.pair, 0).size();
}

void PacketEngine::break_up(MessageId id, Picoseconds now) {
  const Train train = train_of(messages_[id]);
  stop_train(id);
  const std::uint32_t known = train.acknowledged_by(now);
  {
    Sending& one = messages_[id];
    count_train(one, known);
    one.connection->smoothed = one.round_trip;
    for (std::uint32_t seq = 0; seq < known; ++seq) {
      one.acknowledged.add(seq);
      one.got.add(seq);
      one.base = one.highest = one.looked_at = seq + 1;
      one.connection->passed = seq + 1;
      one.connection->sent =
          std::min(one.packets, seq + static_cast<std::uint32_t>(one.full_window));
      transport_->acknowledged(one, false);
    }
    one.got_bytes = std::int64_t{known} * one.slice;
    one.next = known;
    one.connection->sent = one.connection->passed = known;
  }
  for (std::uint32_t seq = known; seq < messages_[id].packets && train.enters(seq) <= now; ++seq) {
    messages_[id].next = seq + 1;
    put_where_it_is(id, seq, train, now);
  }
  if (messages_[id].next == messages_[id].packets && !messages_[id].has_left) leave(id);
  messages_[id].deadline = now + transport_->patience(messages_[id]);
  go(id, now);
}

void PacketEngine::put_where_it_is(MessageId id, std::uint32_t seq, const Train& train,
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
    const Picoseconds free = train.leaves(seq, hop - 1), there = free + ports_.latency(link);
    ports_.keep_busy(link, free);
    if (there > now || hop == train.hops()) {
      packets_[packet].hop = begin + hop - 1;
      return events_.push(there, EventHeap::arrival, packet);
    }
  }
  packets_[packet].hop = begin + hop;
  ports_.place(packet, pairs_.link(begin + hop), train.starts(seq, hop));
}

}  // namespace foretrace

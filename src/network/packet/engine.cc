#include "network/packet/engine.h"

#include <algorithm>

#include "base/random_generator.h"

namespace foretrace {

namespace {

constexpr Picoseconds kPicoseconds = 1000;  ///< Picoseconds in a nanosecond.

Nanoseconds rounded_up(Picoseconds time) {
  return Nanoseconds((time + kPicoseconds - 1) / kPicoseconds);
}

}  // namespace

PacketEngine::PacketEngine(const PacketPaths& paths, const PacketSettings& settings)
    : settings_(settings),
      transport_(find_transport(settings.transport).make(settings)),
      traits_(transport_->traits()),
      pairs_(paths, settings.spray),
      ports_(paths, settings, traits_.by_remaining, packets_, events_),
      link_uses_(paths.links.size()) {
  settings_.check();
}

std::optional<Nanoseconds> PacketEngine::next(Nanoseconds limit) {
  const Picoseconds most =
      limit.count() > INT64_MAX / kPicoseconds ? INT64_MAX : limit.count() * kPicoseconds;
  while (left_.empty() && arrived_.empty()) {
    if (events_.empty() || events_.top().at > most) return std::nullopt;
    step();
  }
  return rounded_up(last_);
}

void PacketEngine::take(Nanoseconds now, std::vector<MessageId>& left,
                        std::vector<MessageId>& arrived) {
  while (!events_.empty() && events_.top().at <= now.count() * kPicoseconds) step();
  left.insert(left.end(), left_.begin(), left_.end());
  arrived.insert(arrived.end(), arrived_.begin(), arrived_.end());
  left_.clear();
  arrived_.clear();
  // Ids are reused only from here on, because the caller may have referred to them until take().
  unused_.insert(unused_.end(), free_later_.begin(), free_later_.end());
  free_later_.clear();
}

void PacketEngine::finish() {
  while (!events_.empty()) step();
}

MessageId PacketEngine::begin(const PacketMessage& message, Nanoseconds now) {
  MessageId id = static_cast<MessageId>(messages_.size());
  if (unused_.empty()) {
    messages_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
    messages_[id] = MessageTransfer{};
  }
  MessageTransfer& transfer = messages_[id];
  transfer.from = message.from, transfer.to = message.to;
  transfer.bytes = message.bytes.count;
  const std::int64_t slice = settings_.slice.count;
  transfer.packets =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, (transfer.bytes + slice - 1) / slice));
  transfer.slice = static_cast<std::uint32_t>(slice);
  transfer.last = static_cast<std::uint32_t>(transfer.bytes - (transfer.packets - 1) * slice);
  transfer.queue = message.queue;
  transfer.needed = transfer.bytes;
  if (traits_.bounds_loss) {
    transfer.needed -=
        static_cast<std::int64_t>(static_cast<double>(transfer.bytes) * message.loss);
    if (transfer.needed < transfer.bytes) transfer.unimportant = message.unimportant;
  }
  ++active_;
  events_.push(now.count() * kPicoseconds, EventHeap::begin, id);
  return id;
}

void PacketEngine::start(MessageId id, Picoseconds now) {
  const std::uint32_t found = pairs_.between(messages_[id].from, messages_[id].to);
  MessageTransfer& transfer = messages_[id];
  transfer.begun = now;
  transfer.pair = found;
  transfer.paths = pairs_.count(found);
  if (found >= pair_states_.size()) pair_states_.resize(found + 1);
  if (settings_.link_loss > 0)
    transfer.loss_seed = RandomGenerator(RandomGenerator(pair_seed(transfer)).next() +
                                         pair_states_[found].messages++)
                             .next();
  const auto first = pairs_.links(transfer.pair, 0);
  if (first.empty()) {
    transfer.stopped = true;
    mark_left(id);
    end(id, now);
    return release(id);
  }
  transfer.first_path = transfer.paths > 1
                            ? static_cast<std::uint32_t>(
                                  RandomGenerator(std::uint64_t{transfer.from} << 32U | transfer.to)
                                      .below(transfer.paths))
                            : 0;
  measure(transfer, first);
  transfer.acknowledged.reset(transfer.packets);
  transfer.outstanding.reset(transfer.packets);
  transfer.got.reset(transfer.packets);
  claim_links(id, now);
  join_connection(id);
  if (!start_train(id, now)) send_and_set_timer(id, now);
}

void PacketEngine::measure(MessageTransfer& transfer, std::span<const std::uint32_t> links) {
  const std::uint32_t wire = wire_bytes(transfer, 0);
  Picoseconds slowest = 1;
  for (const std::uint32_t link : links) {
    transfer.back += ports_.latency(link);
    transfer.round_trip += ports_.time_on(link, wire) + 2 * ports_.latency(link);
    slowest = std::max(slowest, ports_.time_on(link, wire));
  }
  transfer.full_window = static_cast<double>((transfer.round_trip + slowest - 1) / slowest + 1);
}

void PacketEngine::offer(std::uint32_t id, Picoseconds now) {
  if (!ports_.offer(id, pairs_.link(packets_[id].hop), now)) discard(id);
  for (const std::uint32_t evicted : ports_.evicted()) discard(evicted);
  ports_.evicted().clear();
}

void PacketEngine::discard(std::uint32_t id) {
  const MessageId message = packets_[id].flow;
  packets_.give_back(id);
  --messages_[message].under_way;
  release(message);
}

void PacketEngine::arrive(std::uint32_t id, Picoseconds now) {
  Packet& packet = packets_[id];
  if (!packet.has(Packet::probe) && ports_.loses(pairs_.link(packet.hop), packet)) return lose(id);
  ++packet.hop;
  if (pairs_.ends(packet.hop)) return receive(id, now);
  offer(id, now);
}

void PacketEngine::lose(std::uint32_t id) {
  const Packet& packet = packets_[id];
  PacketCounts& counts = ports_.counts();
  ++counts.lost;
  (packet.has(Packet::important) ? counts.dropped_important : counts.dropped_unimportant) +=
      Bytes{packet.bytes};
  discard(id);
}

void PacketEngine::receive(std::uint32_t id, Picoseconds now) {
  Packet& packet = packets_[id];
  MessageTransfer& transfer = messages_[packet.flow];
  if (!packet.has(Packet::probe)) {
    ++ports_.counts().arrived;
    if (!packet.has(Packet::trimmed) && !transfer.got.has(packet.seq)) {
      transfer.got.add(packet.seq);
      transfer.got_bytes += transfer.payload(packet.seq);
      if (!transfer.has_ended && transfer.got_bytes >= transfer.needed) end(packet.flow, now);
    }
  }
  if (transfer.has_ended) packet.set(Packet::stop);
  events_.push(now + transfer.back,
               packet.has(Packet::probe) ? EventHeap::probe_answer : EventHeap::answer, id);
}

void PacketEngine::end(MessageId id, Picoseconds now) {
  MessageTransfer& transfer = messages_[id];
  transfer.has_ended = true;
  arrived_.push_back(id);
  completions_.push_back(rounded_up(now - transfer.begun));
  --active_;
}

void PacketEngine::release(MessageId id) {
  MessageTransfer& transfer = messages_[id];
  if (!transfer.has_ended || !transfer.stopped || transfer.under_way > 0) return;
  if (transfer.uses_links) {
    transfer.uses_links = false;
    std::erase(transfer.connection->open, id);
    each_link(transfer, [&](std::uint32_t link) { --link_uses_[link].users; });
    count_missing(transfer);
  }
  if (transfer.has_timer) return;
  transfer.has_ended = false;
  free_later_.push_back(id);
}

void PacketEngine::count_missing(const MessageTransfer& transfer) {
  if (transfer.got_bytes == transfer.bytes) return;
  for (std::uint32_t seq = 0; seq < transfer.packets; ++seq) {
    if (transfer.got.has(seq)) continue;
    PacketCounts& counts = ports_.counts();
    (is_unimportant(transfer, seq) ? counts.missing_unimportant : counts.missing_important) +=
        Bytes{transfer.payload(seq)};
  }
}

void PacketEngine::handle(const EventHeap::Event& event) {
  switch (event.kind()) {
    case EventHeap::begin:
      return start(event.id(), event.at);
    case EventHeap::arrival:
    case EventHeap::probe_arrival:
      return arrive(event.id(), event.at);
    case EventHeap::answer:
    case EventHeap::probe_answer:
      return take_answer(event.id(), event.at);
    case EventHeap::port_free:
      return ports_.serve(event.id(), event.at);
    case EventHeap::timer:
      return run_timer(event.id(), event.at);
    case EventHeap::train_left:
      return train_left(event.id(), event.at);
    case EventHeap::train_end:
      return train_end(event.id(), event.at);
  }
}

void PacketEngine::step() {
  const EventHeap::Event event = events_.top();
  events_.pop();
  last_ = event.at;
  handle(event);
}

}  // namespace foretrace

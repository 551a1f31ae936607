#include "network/packet/engine.h"

#include <algorithm>

#include "base/draws.h"

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
      on_link_(paths.links.size()) {
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
    messages_[id] = Sending{};
  }
  Sending& one = messages_[id];
  one.from = message.from, one.to = message.to;
  one.bytes = message.bytes.count;
  const std::int64_t slice = settings_.slice.count;
  one.packets =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, (one.bytes + slice - 1) / slice));
  one.slice = static_cast<std::uint32_t>(slice);
  one.last = static_cast<std::uint32_t>(one.bytes - (one.packets - 1) * slice);
  one.queue = message.queue;
  one.needed = one.bytes;
  if (traits_.bounds_loss) {
    one.needed -= static_cast<std::int64_t>(static_cast<double>(one.bytes) * message.loss);
    if (one.needed < one.bytes) one.unimportant = message.unimportant;
  }
  ++active_;
  events_.push(now.count() * kPicoseconds, EventHeap::begin, id);
  return id;
}

void PacketEngine::start(MessageId id, Picoseconds now) {
  const std::uint32_t found = pairs_.between(messages_[id].from, messages_[id].to);
  Sending& one = messages_[id];
  one.begun = now;
  one.pair = found;
  one.paths = pairs_.count(found);
  if (found >= of_pair_.size()) of_pair_.resize(found + 1);
  if (settings_.link_loss > 0)
    one.luck = Draws(Draws(pair_seed(one)).next() + of_pair_[found].messages++).next();
  const auto first = pairs_.links(one.pair, 0);
  if (first.empty()) {
    one.stopped = true;
    leave(id);
    end(id, now);
    return release(id);
  }
  one.first_path = one.paths > 1
                       ? static_cast<std::uint32_t>(
                             Draws(std::uint64_t{one.from} << 32U | one.to).below(one.paths))
                       : 0;
  measure(one, first);
  one.acknowledged.reset(one.packets);
  one.outstanding.reset(one.packets);
  one.got.reset(one.packets);
  take_links(id, now);
  join_connection(id);
  if (!start_train(id, now)) go(id, now);
}

void PacketEngine::measure(Sending& one, std::span<const std::uint32_t> links) {
  const std::uint32_t wire = wire_bytes(one, 0);
  Picoseconds slowest = 1;
  for (const std::uint32_t link : links) {
    one.back += ports_.latency(link);
    one.round_trip += ports_.time_on(link, wire) + 2 * ports_.latency(link);
    slowest = std::max(slowest, ports_.time_on(link, wire));
  }
  one.full_window = static_cast<double>((one.round_trip + slowest - 1) / slowest + 1);
}

void PacketEngine::offer(std::uint32_t id, Picoseconds now) {
  if (!ports_.offer(id, pairs_.link(packets_[id].hop), now)) vanish(id);
  for (const std::uint32_t evicted : ports_.evicted()) vanish(evicted);
  ports_.evicted().clear();
}

void PacketEngine::vanish(std::uint32_t id) {
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
  vanish(id);
}

void PacketEngine::receive(std::uint32_t id, Picoseconds now) {
  Packet& packet = packets_[id];
  Sending& one = messages_[packet.flow];
  if (!packet.has(Packet::probe)) {
    ++ports_.counts().arrived;
    if (!packet.has(Packet::trimmed) && !one.got.has(packet.seq)) {
      one.got.add(packet.seq);
      one.got_bytes += one.payload(packet.seq);
      if (!one.has_ended && one.got_bytes >= one.needed) end(packet.flow, now);
    }
  }
  if (one.has_ended) packet.set(Packet::stop);
  events_.push(now + one.back,
               packet.has(Packet::probe) ? EventHeap::probe_answer : EventHeap::answer, id);
}

void PacketEngine::end(MessageId id, Picoseconds now) {
  Sending& one = messages_[id];
  one.has_ended = true;
  arrived_.push_back(id);
  completions_.push_back(rounded_up(now - one.begun));
  --active_;
}

void PacketEngine::release(MessageId id) {
  Sending& one = messages_[id];
  if (!one.has_ended || !one.stopped || one.under_way > 0) return;
  if (one.uses_links) {
    one.uses_links = false;
    std::erase(one.connection->open, id);
    each_link(one, [&](std::uint32_t link) { --on_link_[link].users; });
    count_missing(one);
  }
  if (one.has_timer) return;
  one.has_ended = false;
  free_later_.push_back(id);
}

void PacketEngine::count_missing(const Sending& one) {
  if (one.got_bytes == one.bytes) return;
  for (std::uint32_t seq = 0; seq < one.packets; ++seq) {
    if (one.got.has(seq)) continue;
    PacketCounts& counts = ports_.counts();
    (is_unimportant(one, seq) ? counts.missing_unimportant : counts.missing_important) +=
        Bytes{one.payload(seq)};
  }
}

void PacketEngine::happen(const EventHeap::Event& event) {
  switch (event.kind()) {
    case EventHeap::begin:
      return start(event.id(), event.at);
    case EventHeap::arrival:
    case EventHeap::probe_arrival:
      return arrive(event.id(), event.at);
    case EventHeap::answer:
    case EventHeap::probe_answer:
      return answer(event.id(), event.at);
    case EventHeap::port_free:
      return ports_.serve(event.id(), event.at);
    case EventHeap::timer:
      return timer(event.id(), event.at);
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
  happen(event);
}

}  // namespace foretrace

#include "network/packet/packets.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <unordered_map>

#include "base/draws.h"
#include "foretrace/error.h"
#include "network/packet/train.h"
#include "network/packet/transport.h"

namespace foretrace {
namespace {

constexpr std::uint32_t kEndOfPath = ~std::uint32_t{0};
constexpr std::uint32_t kNoMessage = ~std::uint32_t{0};
constexpr double kSmoothing = 0.125;  ///< Of round trips, as in TCP (RFC 6298).

Nanoseconds rounded_up(Picoseconds time) { return Nanoseconds((time + 999) / 1000); }

}  // namespace

struct Packets::Impl {
  Impl(const PacketPaths& with, const PacketSettings& set)
      : paths(with),
        settings(set),
        transport(find_transport(set.transport).make(set)),
        traits(transport->traits()),
        ports(with, set, traits.by_remaining, packets, events),
        on_link(with.links.size()) {
    settings.check();
  }

  // Paths. Those of a pair of endpoints lie one behind the other, each with an end.

  struct Routes {
    std::uint32_t first = 0, count = 0;  ///< Into `path_begin`.
  };

  std::uint32_t routes_between(std::uint32_t from, std::uint32_t to) {
    const auto [found, is_new] = routes_of.try_emplace(std::uint64_t{from} << 32U | to,
                                                       static_cast<std::uint32_t>(routes.size()));
    if (!is_new) return found->second;
    paths.find(from, to, settings.spray, found_paths);
    routes.push_back({static_cast<std::uint32_t>(path_begin.size()),
                      static_cast<std::uint32_t>(found_paths.size())});
    for (const Path& path : found_paths) {
      path_begin.push_back(static_cast<std::uint32_t>(hops.size()));
      hops.insert(hops.end(), path.begin(), path.end());
      hops.push_back(kEndOfPath);
    }
    return found->second;
  }

  std::span<const std::uint32_t> links_of(const Sending& one, std::uint32_t path) const {
    const std::uint32_t begin = path_begin[routes[one.routes].first + path];
    std::uint32_t end = begin;
    while (hops[end] != kEndOfPath) ++end;
    return std::span(hops).subspan(begin, end - begin);
  }

  template <class Visit>
  void each_link(const Sending& one, const Visit& visit) {
    ++visited;
    for (std::uint32_t path = 0; path < one.paths; ++path) {
      for (const std::uint32_t link : links_of(one, path)) {
        if (on_link[link].visited == visited) continue;
        on_link[link].visited = visited;
        visit(link);
      }
    }
  }

  // Messages.

  MessageId begin(const PacketMessage& message, Nanoseconds now) {
    MessageId id = static_cast<MessageId>(messages.size());
    if (unused.empty()) {
      messages.emplace_back();
    } else {
      id = unused.back();
      unused.pop_back();
      messages[id] = Sending{};
    }
    Sending& one = messages[id];
    one.from = message.from, one.to = message.to;
    one.bytes = message.bytes.count;
    const std::int64_t slice = settings.slice.count;
    one.packets =
        static_cast<std::uint32_t>(std::max<std::int64_t>(1, (one.bytes + slice - 1) / slice));
    one.slice = static_cast<std::uint32_t>(slice);
    one.last = static_cast<std::uint32_t>(one.bytes - (one.packets - 1) * slice);
    one.queue = message.queue;
    one.needed = one.bytes;
    if (traits.bounds_loss) {
      one.needed -= static_cast<std::int64_t>(static_cast<double>(one.bytes) * message.loss);
      if (one.needed < one.bytes) one.unimportant = message.unimportant;
    }
    ++active;
    events.push(now.count() * 1000, EventHeap::begin, id);
    return id;
  }

  void start(MessageId id, Picoseconds now) {
    const std::uint32_t found = routes_between(messages[id].from, messages[id].to);
    Sending& one = messages[id];
    one.begun = now;
    one.routes = found;
    one.paths = routes[found].count;
    const auto first = links_of(one, 0);
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
    if (!start_train(id, now)) go(id, now);
  }

  /// Its round trip on idle links, and the window that fills it.
  void measure(Sending& one, std::span<const std::uint32_t> links) {
    const std::uint32_t wire = wire_bytes(one, 0);
    Picoseconds slowest = 1;
    for (const std::uint32_t link : links) {
      one.back += ports.latency(link);
      one.round_trip += ports.time_on(link, wire) + 2 * ports.latency(link);
      slowest = std::max(slowest, ports.time_on(link, wire));
    }
    one.full_window = static_cast<double>((one.round_trip + slowest - 1) / slowest + 1);
    one.window = one.threshold = one.full_window;
  }

  /// Trains that run on one of its links go on as packets.
  void take_links(MessageId id, Picoseconds now) {
    messages[id].uses_links = true;
    joined.clear();
    each_link(messages[id], [&](std::uint32_t link) {
      ++on_link[link].users;
      if (on_link[link].train != kNoMessage) joined.push_back(on_link[link].train);
      if (traits.by_remaining) ports.expect(link, messages[id].round_trip);
    });
    for (const MessageId train : joined) {
      if (messages[train].is_train) break_up(train, now);
    }
  }

  // Trains.

  std::vector<std::span<const std::uint32_t>> all_links(const Sending& one) const {
    std::vector<std::span<const std::uint32_t>> all;
    for (std::uint32_t path = 0; path < one.paths; ++path) all.push_back(links_of(one, path));
    return all;
  }

  Train train_of(const Sending& one) const {
    return Train(ports, all_links(one),
                 {.packets = one.packets,
                  .whole = wire_bytes(one, 0),
                  .last = wire_bytes(one, one.packets - 1),
                  .window = static_cast<std::uint32_t>(one.full_window),
                  .first_path = one.first_path},
                 one.begun);
  }

  bool start_train(MessageId id, Picoseconds now) {
    Sending& one = messages[id];
    if (!settings.trains) return false;
    bool is_alone = true;
    each_link(one, [&](std::uint32_t link) {
      is_alone =
          is_alone && on_link[link].users == 1 && ports.is_idle(link, now) && !ports.is_bad(link);
    });
    if (!is_alone) return false;
    const Train train = train_of(one);
    if (!train.fits()) return false;
    one.is_train = true;
    each_link(one, [&](std::uint32_t link) { on_link[link].train = id; });
    one.deadline = train.arrives(needed_packets(one) - 1);
    events.push(train.enters(one.packets - 1), EventHeap::train_left, id);
    events.push(one.deadline, EventHeap::train_end, id);
    return true;
  }

  static std::uint32_t needed_packets(const Sending& one) {
    const std::int64_t whole = (one.needed + one.slice - 1) / one.slice;
    return static_cast<std::uint32_t>(std::clamp<std::int64_t>(whole, 1, one.packets));
  }

  void train_left(MessageId id, Picoseconds now) {
    Sending& one = messages[id];
    if (one.is_train && !one.has_left && train_of(one).enters(one.packets - 1) == now) leave(id);
  }

  void train_end(MessageId id, Picoseconds now) {
    Sending& one = messages[id];
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

  void stop_train(MessageId id) {
    messages[id].is_train = false;
    each_link(messages[id], [&](std::uint32_t link) { on_link[link].train = kNoMessage; });
  }

  void count_train(const Sending& one, std::uint32_t count) {
    PacketCounts& counts = ports.counts();
    counts.sent += count;
    counts.arrived += count;
    counts.in_trains += count;
    counts.hops += std::uint64_t{count} * links_of(one, 0).size();
  }

  /// Puts every packet of a train where it is by now.
  void break_up(MessageId id, Picoseconds now) {
    const Train train = train_of(messages[id]);
    stop_train(id);
    const std::uint32_t known = train.acknowledged_by(now);
    {
      Sending& one = messages[id];
      count_train(one, known);
      one.smoothed = one.round_trip;
      for (std::uint32_t seq = 0; seq < known; ++seq) {
        one.acknowledged.add(seq);
        one.got.add(seq);
        one.base = one.highest = one.looked_at = seq + 1;
        one.next = std::min(one.packets, seq + static_cast<std::uint32_t>(one.full_window));
        transport->acknowledged(one, false);
      }
      one.got_bytes = std::int64_t{known} * one.slice;
      one.next = known;
    }
    for (std::uint32_t seq = known; seq < messages[id].packets && train.enters(seq) <= now; ++seq) {
      messages[id].next = seq + 1;
      put_where_it_is(id, seq, train, now);
    }
    if (messages[id].next == messages[id].packets && !messages[id].has_left) leave(id);
    messages[id].deadline = now + transport->patience(messages[id]);
    go(id, now);
  }

  void put_where_it_is(MessageId id, std::uint32_t seq, const Train& train, Picoseconds now) {
    const std::uint32_t packet = make_packet(id, seq, false);
    packets[packet].sent = train.enters(seq);
    if (train.arrives(seq) <= now) return receive(packet, train.arrives(seq));
    const std::uint32_t begin = packets[packet].hop;
    std::size_t hop = 0;
    while (hop < train.hops() && train.starts(seq, hop) <= now) ++hop;
    ports.counts().hops += hop;
    if (hop > 0) {
      const std::uint32_t link = hops[begin + hop - 1];
      const Picoseconds free = train.leaves(seq, hop - 1), there = free + ports.latency(link);
      ports.keep_busy(link, free);
      if (there > now || hop == train.hops()) {
        packets[packet].hop = begin + static_cast<std::uint32_t>(hop) - 1;
        return events.push(there, EventHeap::arrival, packet);
      }
    }
    packets[packet].hop = begin + static_cast<std::uint32_t>(hop);
    ports.place(packet, hops[begin + hop], train.starts(seq, hop));
  }

  // The sender.

  std::uint32_t wire_bytes(const Sending& one, std::uint32_t seq) const {
    return one.payload(seq) + static_cast<std::uint32_t>(settings.header.count);
  }

  /// The same packets of a message matter little whenever it is sent.
  bool is_unimportant(const Sending& one, std::uint32_t seq) const {
    if (one.unimportant <= 0) return false;
    const std::uint64_t pair = std::uint64_t{one.from} << 32U | one.to;
    const auto seed = static_cast<std::uint64_t>(settings.seed);
    return Draws(Draws(pair ^ seed << 1U).next() + seq).uniform() < one.unimportant;
  }

  std::uint32_t make_packet(MessageId id, std::uint32_t seq, bool again) {
    Sending& one = messages[id];
    const std::uint32_t made = packets.take();
    Packet& packet = packets[made];
    packet.flow = id;
    packet.seq = seq;
    packet.bytes = wire_bytes(one, seq);
    packet.queue = one.queue;
    packet.remaining = one.packets - one.base;
    packet.path = static_cast<std::uint16_t>(
        (seq + one.first_path + (again ? 1 + one.timeouts : 0)) % one.paths);
    packet.hop = path_begin[routes[one.routes].first + packet.path];
    if (again || !is_unimportant(one, seq)) packet.set(Packet::important);
    if (again) packet.set(Packet::again);
    if (traits.is_marked) packet.set(Packet::can_mark);
    if (!one.outstanding.has(seq)) {
      one.outstanding.add(seq);
      ++one.in_flight;
    }
    ++one.under_way;
    ++ports.counts().sent;
    if (again) ports.counts().sent_again += Bytes{one.payload(seq)};
    return made;
  }

  void send(MessageId id, std::uint32_t seq, bool again, Picoseconds now) {
    const std::uint32_t packet = make_packet(id, seq, again);
    packets[packet].sent = now;
    offer(packet, now);
  }

  /// Sends what the window allows, and sees to the timer.
  void go(MessageId id, Picoseconds now) {
    send_more(id, now);
    Sending& one = messages[id];
    if (one.stopped || one.has_timer) return;
    if (one.deadline <= now) one.deadline = now + transport->patience(one);
    one.has_timer = true;
    events.push(one.deadline, EventHeap::timer, id);
  }

  void send_more(MessageId id, Picoseconds now) {
    for (;;) {
      Sending& one = messages[id];
      if (one.stopped || one.in_flight + 1 > one.window || !one.has_more()) break;
      if (one.again_at < one.again.size()) {
        const std::uint32_t seq = one.again[one.again_at++];
        if (!one.acknowledged.has(seq)) send(id, seq, true, now);
      } else {
        send(id, one.next++, false, now);
      }
    }
    Sending& one = messages[id];
    if (one.next == one.packets && !one.has_left) leave(id);
    if (!traits.bounds_loss || one.stopped || one.probes > 0) return;
    if (one.wants_probe || !one.has_more()) probe(id, now);
  }

  void probe(MessageId id, Picoseconds now) {
    messages[id].wants_probe = false;
    messages[id].probed = messages[id].next;
    messages[id].probed_again = messages[id].again_at;
    for (std::uint32_t path = 0; path < messages[id].paths; ++path) {
      Sending& one = messages[id];
      const std::uint32_t made = packets.take();
      Packet& packet = packets[made];
      packet.flow = id;
      packet.queue = one.queue;
      packet.path = static_cast<std::uint16_t>(path);
      packet.hop = path_begin[routes[one.routes].first + path];
      packet.flags = Packet::important | Packet::probe;
      ++one.probes;
      ++one.under_way;
      ports.offer(made, hops[packet.hop], now);
    }
  }

  void leave(MessageId id) {
    messages[id].has_left = true;
    left.push_back(id);
  }

  // The network.

  void offer(std::uint32_t id, Picoseconds now) {
    if (!ports.offer(id, hops[packets[id].hop], now)) vanish(id);
    for (const std::uint32_t evicted : ports.evicted()) vanish(evicted);
    ports.evicted().clear();
  }

  void vanish(std::uint32_t id) {
    const MessageId message = packets[id].flow;
    packets.give_back(id);
    --messages[message].under_way;
    release(message);
  }

  void arrive(std::uint32_t id, Picoseconds now) {
    Packet& packet = packets[id];
    if (!packet.has(Packet::probe) && ports.loses(hops[packet.hop])) return lose(id);
    ++packet.hop;
    if (hops[packet.hop] == kEndOfPath) return receive(id, now);
    offer(id, now);
  }

  void lose(std::uint32_t id) {
    const Packet& packet = packets[id];
    PacketCounts& counts = ports.counts();
    ++counts.lost;
    (packet.has(Packet::important) ? counts.dropped_important : counts.dropped_unimportant) +=
        Bytes{packet.bytes};
    vanish(id);
  }

  // The receiver.

  void receive(std::uint32_t id, Picoseconds now) {
    Packet& packet = packets[id];
    Sending& one = messages[packet.flow];
    if (!packet.has(Packet::probe)) {
      ++ports.counts().arrived;
      if (!packet.has(Packet::trimmed) && !one.got.has(packet.seq)) {
        one.got.add(packet.seq);
        one.got_bytes += one.payload(packet.seq);
        if (!one.has_ended && one.got_bytes >= one.needed) end(packet.flow, now);
      }
    }
    if (one.has_ended) packet.set(Packet::stop);
    events.push(now + one.back,
                packet.has(Packet::probe) ? EventHeap::probe_answer : EventHeap::answer, id);
  }

  void end(MessageId id, Picoseconds now) {
    Sending& one = messages[id];
    one.has_ended = true;
    arrived.push_back(id);
    completions.push_back(rounded_up(now - one.begun));
    --active;
  }

  // The sender again.

  void answer(std::uint32_t id, Picoseconds now) {
    const Packet packet = packets[id];
    packets.give_back(id);
    Sending& one = messages[packet.flow];
    --one.under_way;
    if (packet.has(Packet::stop)) one.stopped = true;
    if (packet.has(Packet::probe))
      take_bitmap(one);
    else
      take_acknowledgement(one, packet, now);
    one.deadline = now + transport->patience(one);
    if (!one.stopped) go(packet.flow, now);
    release(packet.flow);
  }

  /// Packets sent before the probe that are not acknowledged are lost. While there are packets that
  /// were never sent, those go first.
  static void take_bitmap(Sending& one) {
    if (--one.probes > 0) return;
    PacketSet later;
    later.reset(one.packets);
    for (std::uint32_t i = one.probed_again; i < one.again.size(); ++i) later.add(one.again[i]);
    for (std::uint32_t seq = one.base; seq < one.probed; ++seq) {
      if (one.acknowledged.has(seq) || later.has(seq)) continue;
      one.settle(seq);
      if (one.next == one.packets) one.again.push_back(seq);
    }
  }

  void take_acknowledgement(Sending& one, const Packet& packet, Picoseconds now) {
    const std::uint32_t seq = packet.seq;
    one.settle(seq);
    if (packet.has(Packet::trimmed)) {
      if (!one.acknowledged.has(seq)) transport->came_cut(one, seq);
      return;
    }
    if (one.acknowledged.has(seq)) return;
    one.acknowledged.add(seq);
    one.highest = std::max(one.highest, seq + 1);
    while (one.base < one.packets && one.acknowledged.has(one.base)) ++one.base;
    if (!packet.has(Packet::again)) {
      const Picoseconds took = now - packet.sent;
      const auto change = static_cast<double>(took - one.smoothed) * kSmoothing;
      one.smoothed = one.smoothed == 0 ? took : one.smoothed + std::llround(change);
    }
    transport->acknowledged(one, packet.has(Packet::marked));
  }

  void timer(MessageId id, Picoseconds now) {
    Sending& one = messages[id];
    one.has_timer = false;
    if (one.stopped) return release(id);
    if (now >= one.deadline) {
      ++ports.counts().timeouts;
      transport->silent(one);
      one.deadline = now + transport->patience(one);
    }
    go(id, now);
  }

  /// A message that is done, and of which nothing is under way, gives back its links and its id.
  void release(MessageId id) {
    Sending& one = messages[id];
    if (!one.has_ended || !one.stopped || one.under_way > 0) return;
    if (one.uses_links) {
      one.uses_links = false;
      each_link(one, [&](std::uint32_t link) { --on_link[link].users; });
      count_missing(one);
    }
    if (one.has_timer) return;
    one.has_ended = false;
    free_later.push_back(id);
  }

  void count_missing(const Sending& one) {
    if (one.got_bytes == one.bytes) return;
    for (std::uint32_t seq = 0; seq < one.packets; ++seq) {
      if (one.got.has(seq)) continue;
      PacketCounts& counts = ports.counts();
      (is_unimportant(one, seq) ? counts.missing_unimportant : counts.missing_important) +=
          Bytes{one.payload(seq)};
    }
  }

  // The clock.

  void happen(const EventHeap::Event& event) {
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
        return ports.serve(event.id(), event.at);
      case EventHeap::timer:
        return timer(event.id(), event.at);
      case EventHeap::train_left:
        return train_left(event.id(), event.at);
      case EventHeap::train_end:
        return train_end(event.id(), event.at);
    }
  }

  void step() {
    const EventHeap::Event event = events.top();
    events.pop();
    last = event.at;
    happen(event);
  }

  struct OnLink {
    std::uint32_t users = 0, train = kNoMessage, visited = 0;
  };

  const PacketPaths& paths;
  PacketSettings settings;
  std::unique_ptr<Transport> transport;
  Transport::Traits traits;
  PacketPool packets;
  EventHeap events;
  Ports ports;
  std::vector<OnLink> on_link;
  std::uint32_t visited = 0;
  std::vector<Sending> messages;
  std::vector<MessageId> unused, free_later, joined;
  std::unordered_map<std::uint64_t, std::uint32_t> routes_of;
  std::vector<Routes> routes;
  std::vector<std::uint32_t> path_begin, hops;
  std::vector<Path> found_paths;
  std::vector<MessageId> left, arrived;
  std::vector<Nanoseconds> completions;
  std::size_t active = 0;
  Picoseconds last = 0;
};

Packets::Packets(const PacketPaths& paths, const PacketSettings& settings)
    : impl_(std::make_unique<Impl>(paths, settings)) {}
Packets::Packets(Packets&&) noexcept = default;
Packets::~Packets() = default;

MessageId Packets::begin(const PacketMessage& message, Nanoseconds now) {
  return impl_->begin(message, now);
}

std::optional<Nanoseconds> Packets::next(Nanoseconds limit) {
  Impl& impl = *impl_;
  const Picoseconds most = limit.count() > INT64_MAX / 1000 ? INT64_MAX : limit.count() * 1000;
  while (impl.left.empty() && impl.arrived.empty()) {
    if (impl.events.empty() || impl.events.top().at > most) return std::nullopt;
    impl.step();
  }
  return rounded_up(impl.last);
}

void Packets::take(Nanoseconds now, std::vector<MessageId>& left, std::vector<MessageId>& arrived) {
  Impl& impl = *impl_;
  while (!impl.events.empty() && impl.events.top().at <= now.count() * 1000) impl.step();
  left.insert(left.end(), impl.left.begin(), impl.left.end());
  arrived.insert(arrived.end(), impl.arrived.begin(), impl.arrived.end());
  impl.left.clear();
  impl.arrived.clear();
  // Only now nobody asks for them any more.
  impl.unused.insert(impl.unused.end(), impl.free_later.begin(), impl.free_later.end());
  impl.free_later.clear();
}

void Packets::finish() {
  while (!impl_->events.empty()) impl_->step();
}

const PacketCounts& Packets::counts() const { return impl_->ports.counts(); }
const std::vector<Nanoseconds>& Packets::completions() const { return impl_->completions; }
std::size_t Packets::active() const { return impl_->active; }

}  // namespace foretrace

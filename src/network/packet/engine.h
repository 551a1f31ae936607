#pragma once

// The work of Packets; see there. Three files: messages, links and the clock (engine.cc), trains
// (engine_trains.cc), and what senders do (engine_sender.cc).

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "network/packet/packets.h"
#include "network/packet/pair_paths.h"
#include "network/packet/sending.h"
#include "network/packet/train.h"
#include "network/packet/transport.h"

namespace foretrace {

class PacketEngine {
 public:
  PacketEngine(const PacketPaths& paths, const PacketSettings& settings);

  MessageId begin(const PacketMessage& message, Nanoseconds now);
  std::optional<Nanoseconds> next(Nanoseconds limit);
  void take(Nanoseconds now, std::vector<MessageId>& left, std::vector<MessageId>& arrived);
  void finish();

  const PacketCounts& counts() const { return ports_.counts(); }
  const std::vector<Nanoseconds>& completions() const { return completions_; }
  std::size_t active() const { return active_; }

 private:
  static constexpr std::uint32_t kNoMessage = ~std::uint32_t{0};

  /// Messages that use a link, and the one of them that is a train.
  struct OnLink {
    std::uint32_t users = 0, train = kNoMessage, visited = 0;
  };

  // Messages.
  void start(MessageId id, Picoseconds now);
  /// Its round trip on idle links, and the window that fills it.
  void measure(Sending& one, std::span<const std::uint32_t> links);
  void end(MessageId id, Picoseconds now);
  /// A message that is done, and of which nothing is under way, gives back its links and its id.
  void release(MessageId id);
  void count_missing(const Sending& one);

  // The network, and the receiver.
  void offer(std::uint32_t id, Picoseconds now);
  void vanish(std::uint32_t id);
  void arrive(std::uint32_t id, Picoseconds now);
  void lose(std::uint32_t id);
  void receive(std::uint32_t id, Picoseconds now);

  // The clock.
  void happen(const EventHeap::Event& event);
  void step();

  // Trains.
  /// Trains that run on one of its links go on as packets.
  void take_links(MessageId id, Picoseconds now);
  std::vector<std::span<const std::uint32_t>> all_links(const Sending& one) const;
  Train train_of(const Sending& one) const;
  bool start_train(MessageId id, Picoseconds now);
  static std::uint32_t needed_packets(const Sending& one);
  void train_left(MessageId id, Picoseconds now);
  void train_end(MessageId id, Picoseconds now);
  void stop_train(MessageId id);
  void count_train(const Sending& one, std::uint32_t count);
  /// Puts every packet of a train where it is by now.
  void break_up(MessageId id, Picoseconds now);
  void put_where_it_is(MessageId id, std::uint32_t seq, const Train& train, Picoseconds now);

  // Connections.
  /// Behind those that are as urgent. pFabric's messages are connections each.
  void join_connection(MessageId id);
  double first_window(const Sending& one) const;
  /// Packets in flight that count against its window: less urgent ones may wait long in a switch.
  std::uint32_t in_flight(const Sending& one) const;
  /// Whether only others of its connection keep it from sending.
  bool is_held(const Sending& one) const;
  /// The most urgent messages of a connection take what is left of the window.
  void go_on(const Connection& connection, Picoseconds now);
  void go_on(MessageId id, Picoseconds now);

  // The sender.
  std::uint32_t wire_bytes(const Sending& one, std::uint32_t seq) const;
  /// The same packets of a message matter little whenever it is sent.
  bool is_unimportant(const Sending& one, std::uint32_t seq) const;
  std::uint64_t pair_seed(const Sending& one) const;
  /// The same for the same packet of a message whatever else happens, so that transports and shares
  /// of loss are compared on like losses.
  static std::uint32_t luck_of(Sending& one, std::uint32_t seq, bool again);
  std::uint32_t make_packet(MessageId id, std::uint32_t seq, bool again);
  void send(MessageId id, std::uint32_t seq, bool again, Picoseconds now);
  /// Sends what the window allows, and sees to the timer.
  void go(MessageId id, Picoseconds now);
  void send_more(MessageId id, Picoseconds now);
  void probe(MessageId id, Picoseconds now);
  void leave(MessageId id);
  void answer(std::uint32_t id, Picoseconds now);
  void timer(MessageId id, Picoseconds now);

  template <class Visit>
  void each_link(const Sending& one, const Visit& visit) {
    ++visited_;
    for (std::uint32_t path = 0; path < one.paths; ++path) {
      for (const std::uint32_t link : pairs_.links(one.pair, path)) {
        if (on_link_[link].visited == visited_) continue;
        on_link_[link].visited = visited_;
        visit(link);
      }
    }
  }

  PacketSettings settings_;
  std::unique_ptr<Transport> transport_;
  Transport::Traits traits_;
  PairPaths pairs_;
  PacketPool packets_;
  EventHeap events_;
  Ports ports_;
  std::vector<OnLink> on_link_;
  std::uint32_t visited_ = 0;
  struct PairState {
    std::uint32_t messages = 0;              ///< That have begun.
    std::shared_ptr<Connection> connection;  ///< Of their messages now, or before.
  };
  std::vector<PairState> of_pair_;
  std::vector<Sending> messages_;
  std::vector<MessageId> unused_, free_later_, joined_;
  std::vector<MessageId> left_, arrived_;
  std::vector<Nanoseconds> completions_;
  std::size_t active_ = 0;
  Picoseconds last_ = 0;
};

}  // namespace foretrace

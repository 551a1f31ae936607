#pragma once

// The implementation of Packets (packets.h). It has three files: messages, links and the clock
// (engine.cc), trains (engine_trains.cc), and the senders (engine_sender.cc).

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "network/packet/message_transfer.h"
#include "network/packet/packets.h"
#include "network/packet/paths.h"
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

  /// Number of messages that use a link, and the message that runs on it as a train, if any.
  struct LinkUse {
    std::uint32_t users = 0, train = kNoMessage, visited = 0;
  };

  // Messages.
  void start(MessageId id, Picoseconds now);
  /// Computes the round trip on idle links, and the window that fills it.
  void measure(MessageTransfer& transfer, std::span<const std::uint32_t> links);
  void end(MessageId id, Picoseconds now);
  /// Releases the links and the id of a message that has ended and has nothing in flight.
  void release(MessageId id);
  void count_missing(const MessageTransfer& transfer);

  // The network, and the receiver.
  void offer(std::uint32_t id, Picoseconds now);
  void discard(std::uint32_t id);
  void arrive(std::uint32_t id, Picoseconds now);
  void lose(std::uint32_t id);
  void receive(std::uint32_t id, Picoseconds now);

  // The clock.
  void handle(const EventHeap::Event& event);
  void step();

  // Trains.
  /// Breaks up the trains on the message's links into packets.
  void claim_links(MessageId id, Picoseconds now);
  std::vector<std::span<const std::uint32_t>> all_links(const MessageTransfer& transfer) const;
  Train train_of(const MessageTransfer& transfer) const;
  bool start_train(MessageId id, Picoseconds now);
  static std::uint32_t needed_packets(const MessageTransfer& transfer);
  void train_left(MessageId id, Picoseconds now);
  void train_end(MessageId id, Picoseconds now);
  void stop_train(MessageId id);
  void count_train(const MessageTransfer& transfer, std::uint32_t count);
  /// Turns a train into packets, each placed where it is at `now`.
  void break_up(MessageId id, Picoseconds now);
  void place_in_flight(MessageId id, std::uint32_t seq, const Train& train, Picoseconds now);

  // Connections.
  /// Inserts the message behind those of the same priority. With pFabric every message has its own
  /// connection.
  void join_connection(MessageId id);
  double first_window(const MessageTransfer& transfer) const;
  /// Returns the packets in flight that count against the message's window. Less urgent packets do
  /// not count, as they may wait long in a switch.
  std::uint32_t in_flight(const MessageTransfer& transfer) const;
  /// Returns whether only other messages of its connection keep it from sending.
  bool is_blocked(const MessageTransfer& transfer) const;
  /// Lets the messages of a connection send, the most urgent first, as far as the window allows.
  void resume(const Connection& connection, Picoseconds now);
  void resume(MessageId id, Picoseconds now);

  // The sender.
  std::uint32_t wire_bytes(const MessageTransfer& transfer, std::uint32_t seq) const;
  /// Marks the same packets of a message as unimportant whenever it is sent.
  bool is_unimportant(const MessageTransfer& transfer, std::uint32_t seq) const;
  std::uint64_t pair_seed(const MessageTransfer& transfer) const;
  /// Returns a random number that depends only on the message and the packet, so that transports
  /// and loss rates are compared on the same losses.
  static std::uint32_t loss_draw_of(MessageTransfer& transfer, std::uint32_t seq, bool again);
  std::uint32_t make_packet(MessageId id, std::uint32_t seq, bool again);
  void send(MessageId id, std::uint32_t seq, bool again, Picoseconds now);
  /// Sends packets as far as the window allows, and sets the timer.
  void send_and_set_timer(MessageId id, Picoseconds now);
  void send_allowed(MessageId id, Picoseconds now);
  void probe(MessageId id, Picoseconds now);
  void mark_left(MessageId id);
  void take_answer(std::uint32_t id, Picoseconds now);
  void run_timer(MessageId id, Picoseconds now);

  template <class Visit>
  void each_link(const MessageTransfer& transfer, const Visit& visit) {
    ++visited_;
    for (std::uint32_t path = 0; path < transfer.paths; ++path) {
      for (const std::uint32_t link : pairs_.links(transfer.pair, path)) {
        if (link_uses_[link].visited == visited_) continue;
        link_uses_[link].visited = visited_;
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
  std::vector<LinkUse> link_uses_;
  std::uint32_t visited_ = 0;
  struct PairState {
    std::uint32_t messages = 0;  ///< Messages that have begun.
    /// Connection of the current messages, or of earlier ones.
    std::shared_ptr<Connection> connection;
  };
  std::vector<PairState> pair_states_;
  std::vector<MessageTransfer> messages_;
  std::vector<MessageId> unused_, free_later_, joined_;
  std::vector<MessageId> left_, arrived_;
  std::vector<Nanoseconds> completions_;
  std::size_t active_ = 0;
  Picoseconds last_ = 0;
};

}  // namespace foretrace

#pragma once

// A packet in flight, and the clock that moves it. Times are whole picoseconds: a packet of 1,500
// bytes takes 1.7 ns over NVLink, which nanoseconds would round by a fifth.

#include <cstdint>
#include <vector>

namespace foretrace {

using Picoseconds = std::int64_t;

constexpr std::uint32_t kNoPacket = ~std::uint32_t{0};

struct Packet {
  enum Flag : std::uint8_t {
    important = 1,
    marked = 2,   ///< It met a long queue.
    trimmed = 4,  ///< Its payload was cut.
    stop = 8,     ///< The receiver has enough data.
    again = 16,   ///< It is a retransmission.
    probe = 32,   ///< It asks which packets are missing.
    can_mark = 64,
  };

  std::uint32_t next = kNoPacket;  ///< The next packet in its queue, or in the list of unused ones.
  std::uint32_t flow = 0, seq = 0;
  /// Index into the hops of all paths: the link that it waits for or is on.
  std::uint32_t hop = 0;
  std::uint32_t bytes = 0;      ///< On the wire.
  std::uint32_t remaining = 0;  ///< Packets that its flow still had to send, including this one.
  /// Random; a bad link loses packets with values below a threshold.
  std::uint32_t loss_draw = ~std::uint32_t{0};
  Picoseconds sent = 0;
  std::uint8_t queue = 0;  ///< 0 is served first.
  std::uint8_t flags = 0;
  std::uint16_t path = 0;

  bool has(Flag flag) const { return (flags & flag) != 0; }
  void set(Flag flag) { flags |= flag; }
};

/// Reuses the ids of packets that have arrived, the last released first.
class PacketPool {
 public:
  std::uint32_t take() {
    if (unused_ == kNoPacket) {
      packets_.emplace_back();
      return static_cast<std::uint32_t>(packets_.size() - 1);
    }
    const std::uint32_t id = unused_;
    unused_ = packets_[id].next;
    packets_[id] = Packet{};
    return id;
  }
  void give_back(std::uint32_t id) {
    packets_[id].next = unused_;
    unused_ = id;
  }
  Packet& operator[](std::uint32_t id) { return packets_[id]; }

 private:
  std::vector<Packet> packets_;
  std::uint32_t unused_ = kNoPacket;
};

/// Events ordered by time, then by kind, then by id.
class EventHeap {
 public:
  /// A probe comes after data that arrives at the same time.
  enum Kind : std::uint64_t {
    begin,
    arrival,
    probe_arrival,
    answer,
    probe_answer,
    port_free,
    timer,
    train_left,
    train_end
  };

  struct Event {
    Picoseconds at;
    std::uint64_t tag;
    Kind kind() const { return static_cast<Kind>(tag >> 32U); }
    std::uint32_t id() const { return static_cast<std::uint32_t>(tag); }
    bool operator<(const Event& other) const {
      return at != other.at ? at < other.at : tag < other.tag;
    }
  };

  bool empty() const { return heap_.empty(); }
  const Event& top() const { return heap_.front(); }

  void push(Picoseconds at, Kind kind, std::uint32_t id) {
    const Event event{at, kind << 32U | id};
    std::size_t place = heap_.size();
    heap_.push_back(event);
    while (place > 0) {
      const std::size_t parent = (place - 1) / kChildren;
      if (!(event < heap_[parent])) break;
      heap_[place] = heap_[parent];
      place = parent;
    }
    heap_[place] = event;
  }

  void pop() {
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t place = 0;
    for (;;) {
      const std::size_t first = place * kChildren + 1;
      if (first >= heap_.size()) break;
      const std::size_t end = first + kChildren < heap_.size() ? first + kChildren : heap_.size();
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child] < heap_[least]) least = child;
      }
      if (!(heap_[least] < last)) break;
      heap_[place] = heap_[least];
      place = least;
    }
    heap_[place] = last;
  }

 private:
  static constexpr std::size_t kChildren = 4;  ///< As wide as a cache line.
  std::vector<Event> heap_;
};

}  // namespace foretrace

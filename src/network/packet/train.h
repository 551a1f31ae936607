#pragma once

// The packets of a message that is alone on its links: the position of each packet at any time,
// without an event for each. Packets of one size pass through empty links in sequence: packet k
// starts on link h at
//
//     max(begun + k M_h, entered(k)) + P_h
//
//     P_h         transmission and latency of the links before h
//     M_h         the longest transmission up to h, so that each is M_h behind the one before
//     entered(k)  with W packets in the window: when packet k - W is acknowledged
//
// The last packet may be shorter; it leaves each link no earlier than the packet before it.

#include <cstdint>
#include <span>
#include <vector>

#include "network/packet/packet.h"
#include "network/packet/ports.h"

namespace foretrace {

class Train {
 public:
  struct Shape {
    std::uint32_t packets = 0, whole = 0, last = 0;  ///< Bytes on the wire.
    std::uint32_t window = 0, first_path = 0;
  };
  /// REQUIRES: fits(), before any other function is used. All paths take equally long.
  Train(const Ports& ports, std::span<const std::span<const std::uint32_t>> paths,
        const Shape& shape, Picoseconds begun);

  /// Returns whether the window is wide enough and no packet of a sprayed message has to wait for
  /// another of its packets.
  bool fits() const { return fits_; }

  Picoseconds enters(std::uint32_t k) const;
  Picoseconds starts(std::uint32_t k, std::size_t hop) const;
  /// When its last bit leaves the link.
  Picoseconds leaves(std::uint32_t k, std::size_t hop) const;
  Picoseconds arrives(std::uint32_t k) const;
  /// Returns how many packets have been acknowledged by `now`; the last packet is not counted.
  std::uint32_t acknowledged_by(Picoseconds now) const;

  std::size_t hops() const { return hops_; }
  Picoseconds round_trip() const { return whole_time_ + back_; }

 private:
  struct Hop {
    std::uint32_t link;
    Picoseconds time, last_time, latency;
    Picoseconds before, last_before;  ///< P_h
    Picoseconds slowest;              ///< M_h
  };
  const Hop& hop_of(std::uint32_t k, std::size_t hop) const {
    return hops_of_[(k + shape_.first_path) % paths_ * hops_ + hop];
  }
  Picoseconds last_starts(std::size_t hop) const;

  Shape shape_;
  std::uint32_t paths_;
  std::size_t hops_;
  Picoseconds begun_, back_ = 0, whole_time_ = 0, slowest_ = 0;
  bool fits_ = true;
  std::vector<Hop> hops_of_;  ///< Indexed path by path.
};

}  // namespace foretrace

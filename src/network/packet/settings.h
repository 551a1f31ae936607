#pragma once

// The settings of a packet network: what its switches do, and how hosts send.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// Priorities of a port; queue 0 is served first.
inline constexpr std::size_t kPortQueues = 8;

struct PacketSettings {
  std::string transport = "reliable";
  std::string queue = "drop_tail";  ///< Or "red", "trim".
  Bytes slice{9000}, header{0};
  Bytes buffer{16'000'000};  ///< Of a switch; 0: without limit, and then nothing is dropped.
  Bytes port_buffer{0};      ///< Of one port of it; 0: as much as the switch has.
  Bytes mark_at{0};          ///< 0: by the rate of the link, see mark_at_of().
  Bytes drop_at{0};          ///< For unimportant packets; 0: kDropPackets slices.
  bool spray = false;
  double link_loss = 0;  ///< On network cables of the first host.
  Nanoseconds timeout{10'000'000};
  std::int64_t first_window = 0;  ///< Packets; 0: a round trip of them.
  double loss = 0;       ///< The share of a message that may be missing, where a transport has it.
  double pull_loss = 0;  ///< The same for messages that the receiver does not add up.
  double unimportant = kUnimportant;  ///< The share of packets that are.
  std::int64_t seed = 0;
  bool switch_priorities = true;  ///< Off, the queues of messages count in hosts only.
  bool trains = true;             ///< Off, every packet has its events: for tests.

  /// Gradients below the median of their tensor: an assumed rule, as no source tells the share.
  static constexpr double kUnimportant = .5;
  static constexpr std::int64_t kDropPackets = 20;

  void describe(Fields& fields);
  /// Throws Error on thresholds above the buffer.
  void check() const;

  Bytes drop_threshold() const {
    return drop_at.count > 0 ? drop_at : Bytes{kDropPackets * slice.count};
  }
  /// DCTCP's 65 packets of 1,500 bytes at 10 Gb/s, in proportion to the rate, and well below the
  /// buffer.
  Bytes mark_threshold(Bandwidth rate) const;
  /// For one port.
  Bytes port_limit() const {
    return port_buffer.count > 0 ? std::min(port_buffer, buffer) : buffer;
  }
};

/// The settings of a collective by itself: with the loss that its messages may have.
struct PacketOptions final : Described {
  PacketSettings settings;
  void describe(Fields& fields) override;
  void check() const override { settings.check(); }
};

/// Loss that models tolerated with the same number of epochs and the same accuracy: from the most
/// sensitive to the least of more than ten (DLCP; MLT, Table 1), and with more epochs.
constexpr double kLeastTolerated = 0.006, kMostTolerated = 0.035;

}  // namespace foretrace

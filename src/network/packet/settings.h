#pragma once

// The settings of a packet network: how its switches treat packets, and how hosts send.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/units.h"

namespace foretrace {

/// Number of priorities of a port; queue 0 is served first.
inline constexpr std::size_t kPortQueues = 8;

struct PacketSettings {
  std::string transport = "reliable";
  std::string queue = "drop_tail";  ///< Or "red", "trim".
  Bytes slice{9000}, header{0};
  Bytes buffer{16'000'000};  ///< Of a switch; 0: unlimited, so that nothing is dropped.
  Bytes port_buffer{0};      ///< Limit for one port; 0: the whole buffer of the switch.
  Bytes mark_at{0};          ///< 0: follows the rate of the link, see mark_threshold().
  Bytes drop_at{0};          ///< For unimportant packets; 0: kDropPackets slices.
  bool spray = false;
  double link_loss = 0;  ///< On network cables of the first host.
  Nanoseconds timeout{10'000'000};
  std::int64_t first_window = 0;  ///< In packets; 0: as many as fill a round trip.
  double loss = 0;       ///< Share of a message that may be missing, if the transport bounds loss.
  double pull_loss = 0;  ///< The same for messages that the receiver does not reduce.
  double unimportant = kUnimportant;  ///< Share of packets that are unimportant.
  std::int64_t seed = 0;
  bool switch_priorities = true;  ///< If false, message priorities count only in hosts.
  bool trains = true;             ///< If false, every packet has its own events; for tests.

  /// Gradients below the median of their tensor; an assumed rule, as no source states the share.
  static constexpr double kUnimportant = .5;
  static constexpr std::int64_t kDropPackets = 20;

  void describe(Fields& fields);
  /// Throws Error if a threshold is above the buffer.
  void check() const;

  Bytes drop_threshold() const {
    return drop_at.count > 0 ? drop_at : Bytes{kDropPackets * slice.count};
  }
  /// Returns `mark_at`, or by default DCTCP's 65 packets of 1,500 bytes at 10 Gb/s in proportion to
  /// the rate, but well below the buffer.
  Bytes mark_threshold(Bandwidth rate) const;
  /// Returns the memory that one port may use.
  Bytes port_limit() const {
    return port_buffer.count > 0 ? std::min(port_buffer, buffer) : buffer;
  }
};

/// The settings of a single collective, including the loss that its messages may have.
struct PacketOptions final : Described {
  PacketSettings settings;
  void describe(Fields& fields) override;
  void check() const override { settings.check(); }
};

/// The loss that models tolerate with the same number of epochs and the same accuracy: of the most
/// and of the least sensitive of more than ten models (DLCP; MLT, Table 1). More epochs allow more.
constexpr double kMinTolerated = 0.006, kMaxTolerated = 0.035;

}  // namespace foretrace

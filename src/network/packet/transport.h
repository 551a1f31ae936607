#pragma once

// How a host sends: when its window grows and shrinks, which packets count as lost, and which are
// retransmitted. Each transport is one file in transports/; the list is transports.def.

#include <memory>
#include <string_view>
#include <vector>

#include "network/packet/message_transfer.h"
#include "network/packet/settings.h"

namespace foretrace {

/// Stateless, except for the settings.
class Transport {
 public:
  virtual ~Transport() = default;

  struct Traits {
    bool is_marked = false;  ///< Switches mark its packets in long queues.
    /// Switches serve the message with the least remaining first (pFabric).
    bool by_remaining = false;
    bool bounds_loss = false;  ///< A part of a message may be missing.
  };
  virtual Traits traits() const = 0;

  /// Called when a packet is acknowledged for the first time. `marked`: it met a long queue.
  virtual void on_acknowledged(MessageTransfer& transfer, bool marked) const = 0;
  /// Called when a packet arrived without its payload.
  virtual void on_trimmed(MessageTransfer& transfer, std::uint32_t seq) const = 0;
  /// Called when nothing was heard for timeout(). By default all missing packets are
  /// retransmitted, starting with a window of one packet.
  virtual void on_timeout(MessageTransfer& transfer) const;
  virtual Picoseconds timeout(const MessageTransfer& transfer) const = 0;
};

/// Waits as TCP does: at least the timeout of the settings, doubled after each timeout.
class TimedTransport : public Transport {
 public:
  explicit TimedTransport(const PacketSettings& settings)
      : timeout_(settings.timeout.count() * 1000) {}
  Picoseconds timeout(const MessageTransfer& transfer) const override;

 private:
  Picoseconds timeout_;
};

struct TransportEntry {
  std::string_view name, summary;
  std::unique_ptr<Transport> (*make)(const PacketSettings& settings);
};
/// One entry per line of transports.def, sorted.
const std::vector<TransportEntry>& transports();
/// Throws Error with the list and the nearest name.
const TransportEntry& find_transport(std::string_view name);

/// Handles an acknowledgement at the sender: counts the packet, updates the round trip, and lets
/// the transport react.
void take_acknowledgement(const Transport& transport, MessageTransfer& transfer,
                          const Packet& packet, Picoseconds now);

/// Additive increase (Reno), which several transports build on.
void grow_window(MessageTransfer& transfer);
/// Multiplies the window by `factor`, at most once for all packets in flight when the first loss of
/// a window was noticed.
void shrink_window(MessageTransfer& transfer, double factor);
/// DCTCP (Alizadeh et al., SIGCOMM 2010): the window shrinks by half the share of marked packets.
void follow_marks(MessageTransfer& transfer, bool marked);
/// Starts over with a window of one packet, because nothing is heard of any packet.
void restart_window(MessageTransfer& transfer);
/// Returns `least`, doubled with each consecutive timeout.
Picoseconds backed_off(const MessageTransfer& transfer, Picoseconds least);

/// As in TCP, a packet is retransmitted once three later ones have arrived, or after a timeout.
constexpr std::uint32_t kDuplicates = 3;
void repair_gaps(MessageTransfer& transfer);

#define TRANSPORT(name, summary) \
  std::unique_ptr<Transport> make_##name##_transport(const PacketSettings& settings);
#include "network/packet/transports/transports.def"
#undef TRANSPORT

}  // namespace foretrace

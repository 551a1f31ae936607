#pragma once

// How a host sends: when its window grows and shrinks, what counts as lost, what is sent again. One
// file for each in transports/; the list is transports.def.

#include <memory>
#include <string_view>
#include <vector>

#include "network/packet/sending.h"
#include "network/packet/settings.h"

namespace foretrace {

/// Stateless, but for the settings.
class Transport {
 public:
  virtual ~Transport() = default;

  struct Traits {
    bool is_marked = false;     ///< Long queues mark its packets.
    bool by_remaining = false;  ///< Switches serve the shortest message first (pFabric).
    bool bounds_loss = false;   ///< A part of a message may be missing.
  };
  virtual Traits traits() const = 0;

  /// A packet is acknowledged for the first time. `marked`: it met a long queue.
  virtual void acknowledged(Sending& sending, bool marked) const = 0;
  /// A packet came without payload.
  virtual void came_cut(Sending& sending, std::uint32_t seq) const = 0;
  /// Nothing was heard for patience(): by default all that is missing is sent again, with one
  /// packet at first.
  virtual void silent(Sending& sending) const;
  virtual Picoseconds patience(const Sending& sending) const = 0;
};

/// Waits as TCP does: the timeout of the settings at least, doubled each time.
class TimedTransport : public Transport {
 public:
  explicit TimedTransport(const PacketSettings& settings)
      : timeout_(settings.timeout.count() * 1000) {}
  Picoseconds patience(const Sending& sending) const override;

 private:
  Picoseconds timeout_;
};

struct TransportEntry {
  std::string_view name, summary;
  std::unique_ptr<Transport> (*make)(const PacketSettings& settings);
};
/// One per line of transports.def, sorted.
const std::vector<TransportEntry>& transports();
/// Throws Error with the list and the nearest.
const TransportEntry& find_transport(std::string_view name);

/// The sender hears of a packet: counts it, learns the round trip, and asks the transport what
/// follows.
void take_acknowledgement(const Transport& transport, Sending& sending, const Packet& packet,
                          Picoseconds now);

/// Additive increase, and halving when packets are lost (Reno), which several transports build on.
void grow_window(Sending& sending);
/// At most once for the packets that were in flight when the first loss of a window was noticed.
void shrink_window(Sending& sending, double factor);
/// DCTCP (Alizadeh et al., SIGCOMM 2010): the window shrinks by half the share of marked packets.
void follow_marks(Sending& sending, bool marked);
/// Begins again with one packet, as nothing is heard of any.
void restart_window(Sending& sending);
/// At least `least`, doubled with each timeout in a row.
Picoseconds backed_off(const Sending& sending, Picoseconds least);

/// As TCP: gaps of three packets, and timeouts, have packets sent again.
constexpr std::uint32_t kDuplicates = 3;
void repair_gaps(Sending& sending);

#define TRANSPORT(name, summary) \
  std::unique_ptr<Transport> make_##name##_transport(const PacketSettings& settings);
#include "network/packet/transports/transports.def"
#undef TRANSPORT

}  // namespace foretrace

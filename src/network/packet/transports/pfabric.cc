// pFabric (Alizadeh et al., SIGCOMM 2013): switches have small buffers of twice the bandwidth-delay
// product, and serve the message with the least remaining first; a full buffer drops a packet of
// the message with the most remaining. Hosts send a full window from the start, and repair losses
// only by timeouts of three round trips, after which they restart with one packet.
//
// Not modelled: the probes that replace data after five consecutive timeouts; a window of one
// packet takes their place.

#include <algorithm>

#include "network/packet/transport.h"

namespace foretrace {
namespace {

constexpr Picoseconds kTimeout = 3;  ///< Round trips.

class Pfabric final : public Transport {
 public:
  Traits traits() const override { return {.by_remaining = true}; }

  void on_acknowledged(MessageTransfer& transfer, bool) const override {
    transfer.timeouts = 0;
    double& window = transfer.connection->window;
    window = std::min(window + 1, transfer.full_window);
  }
  void on_trimmed(MessageTransfer& transfer, std::uint32_t seq) const override {
    transfer.send_again(seq);
  }
  Picoseconds timeout(const MessageTransfer& transfer) const override {
    return kTimeout * transfer.round_trip;
  }
};

}  // namespace

std::unique_ptr<Transport> make_pfabric_transport(const PacketSettings&) {
  return std::make_unique<Pfabric>();
}

}  // namespace foretrace

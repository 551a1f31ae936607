// Like TCP with selective acknowledgements (RFC 5681, 6675): additive increase; the window is
// halved when a packet is lost, which three later packets reveal, or a timeout of at least 10 ms,
// doubled each time.
//
// Assumed: connections are open and warm, so that a message begins with a full window (the packets
// that fill a round trip); acknowledgements use no bandwidth and are not lost.

#include "network/packet/transport.h"

namespace foretrace {
namespace {

class Reliable final : public TimedTransport {
 public:
  using TimedTransport::TimedTransport;

  Traits traits() const override { return {}; }

  void on_acknowledged(MessageTransfer& transfer, bool) const override {
    transfer.timeouts = 0;
    grow_window(transfer);
    repair_gaps(transfer);
  }
  void on_trimmed(MessageTransfer& transfer, std::uint32_t seq) const override {
    shrink_window(transfer, .5);
    transfer.send_again(seq);
  }
};

}  // namespace

std::unique_ptr<Transport> make_reliable_transport(const PacketSettings& settings) {
  return std::make_unique<Reliable>(settings);
}

}  // namespace foretrace

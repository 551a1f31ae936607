// DCTCP (Alizadeh et al., SIGCOMM 2010): queues longer than K mark packets, and a sender shrinks
// its window by half the share of marked packets, smoothed with g = 1/16. Losses are handled as in
// `reliable`.

#include "network/packet/transport.h"

namespace foretrace {
namespace {

class Dctcp final : public TimedTransport {
 public:
  using TimedTransport::TimedTransport;

  Traits traits() const override { return {.is_marked = true}; }

  void on_acknowledged(MessageTransfer& transfer, bool marked) const override {
    transfer.timeouts = 0;
    follow_marks(transfer, marked);
    repair_gaps(transfer);
  }
  void on_trimmed(MessageTransfer& transfer, std::uint32_t seq) const override {
    follow_marks(transfer, true);
    transfer.send_again(seq);
  }
};

}  // namespace

std::unique_ptr<Transport> make_dctcp_transport(const PacketSettings& settings) {
  return std::make_unique<Dctcp>(settings);
}

}  // namespace foretrace

// Bounded loss (DLCP; MLT): the receiver says STOP once 1 - p of the bytes have arrived. The sender
// sends every packet once, and then a PROBE. Unless STOP comes back, the answer is a BITMAP of the
// missing packets, which are retransmitted as important, followed by the next PROBE. Packets may
// arrive in any order, so that spraying costs nothing. Windows follow marks as in DCTCP. Losses of
// unimportant packets do not shrink the window, because the switch drops them on purpose.
//
//     sender    1 2 3 4 5 6 PROBE          3 PROBE
//     receiver    1 2 . 4 . 6 BITMAP           3 STOP      p = 1/6: 5 may be missing
//
// Our own rules, as no source that we could read states them: a PROBE takes each path and waits in
// the queues of the data, so that nothing it asks about is still in flight. Like all
// acknowledgements, its answer uses no bandwidth and is not lost. A PROBE is also sent when nothing
// is heard for two round trips. A packet leaves the window when more later packets than there are
// paths, and at least three, have overtaken it.

#include <algorithm>

#include "network/packet/transport.h"

namespace foretrace {
namespace {

constexpr Picoseconds kSilence = 2;  ///< Round trips.

class Bounded final : public Transport {
 public:
  Traits traits() const override { return {.is_marked = true, .bounds_loss = true}; }

  void on_acknowledged(MessageTransfer& transfer, bool marked) const override {
    transfer.timeouts = 0;
    transfer.find_gaps(std::max(kDuplicates, transfer.paths),
                       [&](std::uint32_t seq) { transfer.settle(seq); });
    follow_marks(transfer, marked);
  }

  /// The packet is retransmitted only if the message would be incomplete without it.
  void on_trimmed(MessageTransfer& transfer, std::uint32_t seq) const override {
    transfer.settle(seq);
    ++transfer.cut;
    const std::int64_t missing = std::int64_t{transfer.cut} * transfer.slice;
    if (missing > transfer.bytes - transfer.needed) transfer.send_again(seq);
  }

  void on_timeout(MessageTransfer& transfer) const override {
    ++transfer.timeouts;
    transfer.wants_probe = true;
  }
  Picoseconds timeout(const MessageTransfer& transfer) const override {
    return backed_off(transfer, kSilence * transfer.round_trip);
  }
};

}  // namespace

std::unique_ptr<Transport> make_bounded_transport(const PacketSettings&) {
  return std::make_unique<Bounded>();
}

}  // namespace foretrace

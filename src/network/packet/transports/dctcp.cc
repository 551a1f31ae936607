// DCTCP (Alizadeh et al., SIGCOMM 2010): queues longer than K mark packets, and a sender shrinks
// its window by half the share of marked ones, smoothed with g = 1/16. Losses as `reliable`.

#include "network/packet/transport.h"

namespace foretrace {
namespace {

class Dctcp final : public Transport {
 public:
  explicit Dctcp(const PacketSettings& settings) : timeout_(settings.timeout.count() * 1000) {}

  Traits traits() const override { return {.is_marked = true}; }

  void acknowledged(Sending& sending, bool marked) const override {
    sending.timeouts = 0;
    follow_marks(sending, marked);
    repair_gaps(sending);
  }
  void came_cut(Sending& sending, std::uint32_t seq) const override {
    follow_marks(sending, true);
    sending.send_again(seq);
  }
  void silent(Sending& sending) const override {
    restart_window(sending);
    sending.send_all_again();
  }
  Picoseconds patience(const Sending& sending) const override {
    return backed_off(sending, timeout_);
  }

 private:
  Picoseconds timeout_;
};

}  // namespace

std::unique_ptr<Transport> make_dctcp_transport(const PacketSettings& settings) {
  return std::make_unique<Dctcp>(settings);
}

}  // namespace foretrace

#include "network/packet/packets.h"

#include "network/packet/engine.h"

namespace foretrace {

Packets::Packets(const PacketPaths& paths, const PacketSettings& settings)
    : engine_(std::make_unique<PacketEngine>(paths, settings)) {}
Packets::Packets(Packets&&) noexcept = default;
Packets::~Packets() = default;

MessageId Packets::begin(const PacketMessage& message, Nanoseconds now) {
  return engine_->begin(message, now);
}
std::optional<Nanoseconds> Packets::next(Nanoseconds limit) { return engine_->next(limit); }
void Packets::take(Nanoseconds now, std::vector<MessageId>& left, std::vector<MessageId>& arrived) {
  engine_->take(now, left, arrived);
}
void Packets::finish() { engine_->finish(); }

const PacketCounts& Packets::counts() const { return engine_->counts(); }
const std::vector<Nanoseconds>& Packets::completions() const { return engine_->completions(); }
std::size_t Packets::active() const { return engine_->active(); }

}  // namespace foretrace

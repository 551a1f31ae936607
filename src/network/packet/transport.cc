#include "network/packet/transport.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kDctcpGain = 1.0 / 16;  ///< g, as in the paper.
constexpr double kSmoothing = 0.125;     ///< Weight of a new round trip, as in TCP (RFC 6298).
constexpr double kLeastWindow = 1;
constexpr std::uint32_t kMostDoublings = 6;  ///< Assumed.

}  // namespace

const std::vector<TransportEntry>& transports() {
  static const std::vector<TransportEntry> entries = {
#define TRANSPORT(name, summary) {#name, summary, make_##name##_transport},
#include "network/packet/transports/transports.def"
#undef TRANSPORT
  };
  return entries;
}

const TransportEntry& find_transport(std::string_view name) {
  std::vector<std::string_view> names;
  for (const TransportEntry& entry : transports()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  throw Error(fmt::format("transport: must be one of {}, got '{}'{}", joined(names), name,
                          did_you_mean(name, names)));
}

void Transport::silent(Sending& sending) const {
  restart_window(sending);
  sending.send_all_again();
}

Picoseconds TimedTransport::patience(const Sending& sending) const {
  return backed_off(sending, timeout_);
}

void take_acknowledgement(const Transport& transport, Sending& sending, const Packet& packet,
                          Picoseconds now) {
  const std::uint32_t seq = packet.seq;
  sending.settle(seq);
  if (packet.has(Packet::trimmed)) {
    if (!sending.acknowledged.has(seq)) transport.came_cut(sending, seq);
    return;
  }
  if (sending.acknowledged.has(seq)) return;
  sending.acknowledged.add(seq);
  sending.highest = std::max(sending.highest, seq + 1);
  while (sending.base < sending.packets && sending.acknowledged.has(sending.base)) ++sending.base;
  if (!packet.has(Packet::again)) {
    const Picoseconds took = now - packet.sent;
    Picoseconds& smoothed = sending.connection->smoothed;
    const auto change = static_cast<double>(took - smoothed) * kSmoothing;
    smoothed = smoothed == 0 ? took : smoothed + std::llround(change);
  }
  transport.acknowledged(sending, packet.has(Packet::marked));
}

void grow_window(Sending& sending) {
  Connection& all = *sending.connection;
  all.window += all.window < all.threshold ? 1 : 1 / all.window;
}

void shrink_window(Sending& sending, double factor) {
  Connection& all = *sending.connection;
  if (all.passed < all.recover) return;
  all.recover = all.sent;
  all.window = std::max(kLeastWindow, all.window * factor);
  all.threshold = all.window;
}

void follow_marks(Sending& sending, bool marked) {
  Connection& all = *sending.connection;
  all.answers += 1;
  if (marked) all.marks += 1;
  if (all.passed >= all.window_end) {
    const double share = all.marks / all.answers;
    all.congestion += kDctcpGain * (share - all.congestion);
    if (all.marks > 0) shrink_window(sending, 1 - all.congestion / 2);
    all.answers = all.marks = 0;
    all.window_end = all.sent;
  }
  if (!marked) grow_window(sending);
}

void restart_window(Sending& sending) {
  Connection& all = *sending.connection;
  all.threshold = std::max(2.0, all.window / 2);
  all.window = kLeastWindow;
  ++sending.timeouts;
}

Picoseconds backed_off(const Sending& sending, Picoseconds least) {
  const Picoseconds base = std::max(least, 2 * sending.connection->smoothed);
  return base << std::min(sending.timeouts, kMostDoublings);
}

void repair_gaps(Sending& sending) {
  sending.find_gaps(kDuplicates, [&](std::uint32_t seq) {
    shrink_window(sending, .5);
    sending.send_again(seq);
  });
}

}  // namespace foretrace

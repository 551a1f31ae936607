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
constexpr double kMinWindow = 1;
constexpr std::uint32_t kMaxDoublings = 6;  ///< Assumed.

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

void Transport::on_timeout(MessageTransfer& transfer) const {
  restart_window(transfer);
  transfer.send_all_again();
}

Picoseconds TimedTransport::timeout(const MessageTransfer& transfer) const {
  return backed_off(transfer, timeout_);
}

void take_acknowledgement(const Transport& transport, MessageTransfer& transfer,
                          const Packet& packet, Picoseconds now) {
  const std::uint32_t seq = packet.seq;
  transfer.settle(seq);
  if (packet.has(Packet::trimmed)) {
    if (!transfer.acknowledged.has(seq)) transport.on_trimmed(transfer, seq);
    return;
  }
  if (transfer.acknowledged.has(seq)) return;
  transfer.acknowledged.add(seq);
  transfer.highest = std::max(transfer.highest, seq + 1);
  while (transfer.base < transfer.packets && transfer.acknowledged.has(transfer.base))
    ++transfer.base;
  if (!packet.has(Packet::again)) {
    const Picoseconds took = now - packet.sent;
    Picoseconds& smoothed = transfer.connection->smoothed;
    const auto change = static_cast<double>(took - smoothed) * kSmoothing;
    smoothed = smoothed == 0 ? took : smoothed + std::llround(change);
  }
  transport.on_acknowledged(transfer, packet.has(Packet::marked));
}

void grow_window(MessageTransfer& transfer) {
  Connection& connection = *transfer.connection;
  connection.window += connection.window < connection.threshold ? 1 : 1 / connection.window;
}

void shrink_window(MessageTransfer& transfer, double factor) {
  Connection& connection = *transfer.connection;
  if (connection.passed < connection.recover) return;
  connection.recover = connection.sent;
  connection.window = std::max(kMinWindow, connection.window * factor);
  connection.threshold = connection.window;
}

void follow_marks(MessageTransfer& transfer, bool marked) {
  Connection& connection = *transfer.connection;
  connection.answers += 1;
  if (marked) connection.marks += 1;
  if (connection.passed >= connection.window_end) {
    const double share = connection.marks / connection.answers;
    connection.congestion += kDctcpGain * (share - connection.congestion);
    if (connection.marks > 0) shrink_window(transfer, 1 - connection.congestion / 2);
    connection.answers = connection.marks = 0;
    connection.window_end = connection.sent;
  }
  if (!marked) grow_window(transfer);
}

void restart_window(MessageTransfer& transfer) {
  Connection& connection = *transfer.connection;
  connection.threshold = std::max(2.0, connection.window / 2);
  connection.window = kMinWindow;
  ++transfer.timeouts;
}

Picoseconds backed_off(const MessageTransfer& transfer, Picoseconds least) {
  const Picoseconds base = std::max(least, 2 * transfer.connection->smoothed);
  return base << std::min(transfer.timeouts, kMaxDoublings);
}

void repair_gaps(MessageTransfer& transfer) {
  transfer.find_gaps(kDuplicates, [&](std::uint32_t seq) {
    shrink_window(transfer, .5);
    transfer.send_again(seq);
  });
}

}  // namespace foretrace

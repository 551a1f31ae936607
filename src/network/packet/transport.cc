#include "network/packet/transport.h"

#include <algorithm>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kDctcpGain = 1.0 / 16;  ///< g, as in the paper.
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
  throw Error("transport: must be one of " + joined(names) + ", got '" + std::string(name) + "'" +
              did_you_mean(name, names));
}

void grow_window(Sending& sending) {
  sending.window += sending.window < sending.threshold ? 1 : 1 / sending.window;
}

void shrink_window(Sending& sending, double factor) {
  if (sending.base < sending.recover) return;
  sending.recover = sending.next;
  sending.window = std::max(kLeastWindow, sending.window * factor);
  sending.threshold = sending.window;
}

void follow_marks(Sending& sending, bool marked) {
  sending.answers += 1;
  if (marked) sending.marks += 1;
  if (sending.base >= sending.window_end) {
    const double share = sending.marks / sending.answers;
    sending.congestion += kDctcpGain * (share - sending.congestion);
    if (sending.marks > 0) shrink_window(sending, 1 - sending.congestion / 2);
    sending.answers = sending.marks = 0;
    sending.window_end = sending.next;
  }
  if (!marked) grow_window(sending);
}

void restart_window(Sending& sending) {
  sending.threshold = std::max(2.0, sending.window / 2);
  sending.window = kLeastWindow;
  ++sending.timeouts;
}

Picoseconds backed_off(const Sending& sending, Picoseconds least) {
  const Picoseconds base = std::max(least, 2 * sending.smoothed);
  return base << std::min(sending.timeouts, kMostDoublings);
}

void repair_gaps(Sending& sending) {
  sending.find_gaps(kDuplicates, [&](std::uint32_t seq) {
    shrink_window(sending, .5);
    sending.send_again(seq);
  });
}

}  // namespace foretrace

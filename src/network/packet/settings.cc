#include "network/packet/settings.h"

#include <algorithm>
#include <fmt/core.h>

#include "foretrace/error.h"
#include "network/packet/transport.h"

namespace foretrace {
namespace {

constexpr Bytes kDctcpThreshold{65 * 1500};
constexpr Bandwidth kDctcpRate{1.25e9};
/// Marks must come before drops: at a quarter of the buffer at most. Assumed.
constexpr std::int64_t kMinRoom = 4;

}  // namespace

void PacketSettings::describe(Fields& fields) {
  std::vector<std::string_view> names;
  for (const TransportEntry& entry : transports()) names.push_back(entry.name);
  fields.choice(
      "transport", transport, names,
      "How hosts send: reliable (like TCP), dctcp, pfabric, or bounded (a part may be lost)");
  fields.choice("queue", queue, {"drop_tail", "red", "trim"},
                "What a full queue does: drop_tail; red: drops early, at random; trim: cuts the "
                "payload and forwards the header first");
  fields.bytes("slice", slice, "Payload of a packet: 1500B, 9000B, at most 64KiB", Bytes{256});
  fields.bytes("header", header,
               "Bytes of headers that each packet adds on the wire; 0B if bandwidths are payload "
               "rates, as those of the built-in machines are");
  fields.bytes("buffer", buffer,
               "Memory of a switch, shared by its ports; 0B: without limit, and then nothing is "
               "dropped or marked (16 MB: Mellanox SN2100)");
  fields.bytes("port_buffer", port_buffer, "Limit of that memory for one port; 0B: all of it");
  fields.bytes(
      "mark_at", mark_at,
      "Queue length from which packets are marked (DCTCP's K); 0B: 65 packets of 1,500 bytes "
      "at 10 Gb/s, in proportion to the rate, but at most a quarter of the buffer (assumed)");
  fields.bytes("drop_at", drop_at,
               "Queue length from which unimportant packets are dropped; 0B: 20 packets (assumed)");
  fields.flag("spray", spray, "Packets of a message take all equal paths in turn instead of one");
  fields.number("link_loss", link_loss,
                "Share of packets that network cables of the first host lose at random", 0, .5);
  fields.time("timeout", timeout, "Shortest time before a reliable transport sends again", 1us);
  fields.integer(
      "first_window", first_window,
      "Window of a new connection in packets, doubled in each round trip: 10 for "
      "TCP (RFC 6928); 0: as many as fill a round trip, which pfabric always begins with",
      0, 1'000'000);
  fields.number("unimportant", unimportant,
                "Share of packets that may be dropped early: small gradients (assumed)", 0, 1);
  fields.integer("seed", seed, "Seed of the choice among equal paths and of random losses", 0);
}

void PacketOptions::describe(Fields& fields) {
  settings.describe(fields);
  fields.number("loss", settings.loss,
                "With bounded: the share of a tensor that may be missing when gradients are added "
                "up",
                0, 1);
  fields.number("pull_loss", settings.pull_loss,
                "The same on the way back from where they are added", 0, 1);
}

void PacketSettings::check() const {
  find_transport(transport);
  if (slice.count < 256 || slice.count > 65'536)
    throw Error("slice: must be from 256B to 64KiB, got " + to_exact_text(slice));
  if (buffer.count == 0) return;
  const Bytes limit = port_limit();
  const auto below = [&](const char* name, Bytes threshold) {
    if (threshold > limit)
      throw Error(fmt::format("{}: must be at most the buffer of a port, {}, got {}", name,
                              to_exact_text(limit), to_exact_text(threshold)));
  };
  below("mark_at", mark_at);
  below("drop_at", drop_at);
  below("slice", slice + header);
}

Bytes PacketSettings::mark_threshold(Bandwidth rate) const {
  if (mark_at.count > 0) return mark_at;
  const Bytes scaled_up =
      scaled(kDctcpThreshold, rate.bytes_per_second / kDctcpRate.bytes_per_second);
  return buffer.count == 0 ? scaled_up : std::min(scaled_up, Bytes{port_limit().count / kMinRoom});
}

}  // namespace foretrace

#include "export/perfetto/perfetto_packets.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kSequence = 1;
constexpr std::uint64_t kStateCleared = 1;  // TracePacket.SequenceFlags
constexpr std::uint64_t kNeedsState = 2;
constexpr std::uint64_t kRealTime = 1;  // BuiltinClock
constexpr std::uint64_t kBootTime = 6;  // The clock of times that name no clock.
constexpr std::int64_t kYear2001 = 1'000'000'000'000'000'000;

ProtoWriter clock(std::uint64_t id, std::int64_t time_ns) {
  ProtoWriter message;
  message.add(1, id);
  message.add_signed(2, time_ns);
  return message;
}

}  // namespace

void PerfettoPackets::begin(std::int64_t origin_ns) {
  ProtoWriter snapshot;
  snapshot.add(1, clock(kBootTime, origin_ns));
  // So large an origin counts from 1970, so it is also the time of day.
  if (origin_ns > kYear2001) snapshot.add(1, clock(kRealTime, origin_ns));
  ProtoWriter packet;
  packet.add(6, snapshot);
  packet.add(10, kSequence);
  packet.add(13, kStateCleared);
  packet.add(87, 1);  // The first packet of its sequence.
  write_packet(packet);
}

void PerfettoPackets::group(std::uint64_t uuid, std::string_view name, std::uint64_t parent,
                            std::int32_t rank) {
  ProtoWriter descriptor;
  descriptor.add(1, uuid);
  descriptor.add(2, name);
  if (parent != 0) descriptor.add(5, parent);
  descriptor.add(11, 3);  // Children are ordered by their rank.
  descriptor.add_signed(12, rank);
  write_descriptor(descriptor);
}

void PerfettoPackets::process(std::uint64_t uuid, std::int64_t process, std::string_view name) {
  ProtoWriter described;
  described.add_signed(1, process);
  described.add(6, name);
  ProtoWriter descriptor;
  descriptor.add(1, uuid);
  descriptor.add(3, described);
  write_descriptor(descriptor);
}

void PerfettoPackets::thread(std::uint64_t uuid, std::int64_t process, std::int64_t thread,
                             std::string_view name) {
  ProtoWriter described;
  described.add_signed(1, process);
  described.add_signed(2, thread);
  if (!name.empty()) described.add(5, name);
  ProtoWriter descriptor;
  descriptor.add(1, uuid);
  descriptor.add(4, described);
  write_descriptor(descriptor);
}

void PerfettoPackets::bytes_counter(std::uint64_t uuid, std::string_view name,
                                    std::uint64_t parent) {
  ProtoWriter counter;
  counter.add(3, 3);  // SIZE_BYTES
  ProtoWriter descriptor;
  descriptor.add(1, uuid);
  descriptor.add(2, name);
  descriptor.add(5, parent);
  descriptor.add(8, counter);
  write_descriptor(descriptor);
}

void PerfettoPackets::write_descriptor(const ProtoWriter& descriptor) {
  ProtoWriter packet;
  packet.add(60, descriptor);
  packet.add(10, kSequence);
  write_packet(packet);
}

void PerfettoPackets::event(TrackEventType type, std::uint64_t track) {
  event_.clear();
  event_.add(9, static_cast<std::uint64_t>(type));
  event_.add(11, track);
}

std::uint64_t PerfettoPackets::intern(Interned& table, std::string_view text) {
  const auto [known, added] = table.ids.try_emplace(std::string(text), table.ids.size() + 1);
  if (added) {
    ProtoWriter entry;
    entry.add(1, known->second);
    entry.add(2, text);
    interned_.add(table.table, entry);
  }
  return known->second;
}

void PerfettoPackets::name(std::string_view text) { event_.add(10, intern(names_, text)); }
void PerfettoPackets::category(std::string_view text) { event_.add(3, intern(categories_, text)); }
void PerfettoPackets::flow(std::uint64_t id, bool ends) { event_.add_fixed64(ends ? 48 : 47, id); }

void PerfettoPackets::argument(std::string_view key, std::int64_t value) {
  ProtoWriter annotation;
  annotation.add(1, intern(keys_, key));
  annotation.add_signed(4, value);
  event_.add(4, annotation);
}

void PerfettoPackets::argument_unsigned(std::string_view key, std::uint64_t value) {
  ProtoWriter annotation;
  annotation.add(1, intern(keys_, key));
  annotation.add(3, value);
  event_.add(4, annotation);
}

void PerfettoPackets::argument(std::string_view key, std::string_view text) {
  ProtoWriter annotation;
  annotation.add(1, intern(keys_, key));
  annotation.add(17, intern(texts_, text));
  event_.add(4, annotation);
}

void PerfettoPackets::write_event(std::int64_t time_ns) {
  ProtoWriter packet;
  packet.add_signed(8, time_ns);
  packet.add(10, kSequence);
  if (!interned_.empty()) packet.add(12, interned_);
  packet.add(13, kNeedsState);
  packet.add(11, event_);
  write_packet(packet);
  interned_.clear();
}

void PerfettoPackets::write_packet(const ProtoWriter& packet) {
  ProtoWriter trace;
  trace.add(1, packet);
  file_.write(trace.bytes());
}

}  // namespace foretrace

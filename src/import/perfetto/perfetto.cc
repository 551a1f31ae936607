// Reads Perfetto traces: a stream of packets (protos/perfetto/trace/trace_packet.proto). The
// packets of a sequence share a table of texts, a default track and clocks. Only TrackEvents are
// read; packets of other sources, such as the scheduler or system counters, are skipped.

#include "import/perfetto/perfetto.h"

#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "import/common/times.h"
#include "import/files/registered.h"
#include "import/files/source.h"
#include "import/perfetto/perfetto_records.h"

namespace foretrace {
namespace {

/// A clock that a sequence defines. It counts in units of `unit_ns`.
struct SequenceClock {
  std::int64_t base_ns = 0;  ///< Time of the trace's clock when this clock shows `value`.
  std::int64_t value = 0;
  std::int64_t unit_ns = 1;
  bool counts_on = false;  ///< Whether each time is relative to the one before it.
};

struct Sequence {
  PerfettoTexts texts;
  std::map<std::uint64_t, SequenceClock> clocks;
  std::uint64_t default_clock = 0;
  std::uint64_t default_track = 0;
};

class PerfettoDocument {
 public:
  explicit PerfettoDocument(PeekedSource& bytes)
      : source_(bytes), stream_(bytes), records_(trace_) {}

  Trace read() {
    trace_.format = "perfetto";
    while (const auto key = stream_.varint()) {
      if (*key != (1U << 3U | 2U))
        throw TraceError("must be packets of a Perfetto trace, but is something else at byte " +
                         std::to_string(stream_.offset()));
      const auto packet = stream_.delimited();
      if (!packet) break;
      read_packet(*packet);
    }
    if (stream_.is_cut() || !source_.damage().empty())
      note_cut(trace_.notes, "", "", stream_.offset());
    if (records_.useful() == 0)
      throw TraceError(fmt::format(
          "must contain track events, but none of its {} packets has a slice", packets_));
    records_.finish();
    write_notes();
    return std::move(trace_);
  }

 private:
  struct Packet {
    std::string_view snapshot, event, interned, defaults, track;
    std::uint64_t time = 0, sequence = 0, flags = 0, clock = 0;
    bool has_event = false;
  };

  static Packet fields_of(std::string_view message, std::int64_t& damaged) {
    Packet packet;
    ProtoReader fields(message);
    while (fields.next()) {
      switch (fields.number()) {
        case 6:
          packet.snapshot = fields.bytes();
          break;
        case 8:
          packet.time = fields.unsigned_value();
          break;
        case 10:
          packet.sequence = fields.unsigned_value();
          break;
        case 11:
          packet.event = fields.bytes(), packet.has_event = true;
          break;
        case 12:
          packet.interned = fields.bytes();
          break;
        case 13:
          packet.flags = fields.unsigned_value();
          break;
        case 58:
          packet.clock = fields.unsigned_value();
          break;
        case 59:
          packet.defaults = fields.bytes();
          break;
        case 60:
          packet.track = fields.bytes();
          break;
        default:
          break;
      }
    }
    if (fields.damaged()) ++damaged;
    return packet;
  }

  void read_packet(std::string_view message) {
    ++packets_;
    const Packet packet = fields_of(message, damaged_);
    Sequence& sequence = sequences_[packet.sequence];
    if ((packet.flags & 1U) != 0) sequence = {};
    if (!packet.interned.empty()) sequence.texts.add(packet.interned);
    if (!packet.defaults.empty()) read_defaults(packet.defaults, sequence);
    if (!packet.snapshot.empty()) read_snapshot(packet.snapshot, sequence);
    if (!packet.track.empty()) records_.add_track(packet.track);
    if (packet.has_event) read_event(packet, sequence);
  }

  static void read_defaults(std::string_view message, Sequence& sequence) {
    ProtoReader fields(message);
    while (fields.next()) {
      if (fields.number() == 58) sequence.default_clock = fields.unsigned_value();
      if (fields.number() != 11) continue;
      ProtoReader of_events(fields.bytes());
      while (of_events.next()) {
        if (of_events.number() == 11) sequence.default_track = of_events.unsigned_value();
      }
    }
  }

  static SequenceClock read_clock(std::string_view message, std::uint64_t& id) {
    constexpr std::uint64_t kMaxUnit = 1'000'000;
    SequenceClock clock;
    std::uint64_t unit = 0;
    ProtoReader parts(message);
    while (parts.next()) {
      if (parts.number() == 1) id = parts.unsigned_value();
      if (parts.number() == 2) clock.value = parts.signed_value();
      if (parts.number() == 3) clock.counts_on = parts.unsigned_value() != 0;
      if (parts.number() == 4) unit = parts.unsigned_value();
    }
    if (unit > 0 && unit <= kMaxUnit) clock.unit_ns = static_cast<std::int64_t>(unit);
    return clock;
  }

  /// Reads a snapshot: the same moment on several clocks. Clocks with ids from 64 on belong to the
  /// sequence; the boot time is preferred among the others.
  static void read_snapshot(std::string_view message, Sequence& sequence) {
    constexpr std::uint64_t kFirstOwn = 64, kBootTime = 6;
    std::map<std::uint64_t, SequenceClock> clocks;
    std::int64_t now = 0;
    bool is_boot_time = false;
    ProtoReader fields(message);
    while (fields.next()) {
      if (fields.number() != 1) continue;
      std::uint64_t id = 0;
      const SequenceClock clock = read_clock(fields.bytes(), id);
      if (id >= kFirstOwn) {
        clocks[id] = clock;
      } else if (!is_boot_time) {
        now = clock.value;
        is_boot_time = id == kBootTime;
      }
    }
    for (auto& [id, clock] : clocks) {
      clock.base_ns = now;
      sequence.clocks[id] = clock;
    }
  }

  void read_event(const Packet& packet, Sequence& sequence) {
    event_.read(packet.event, sequence.texts);
    if (!event_.has_track) event_.track = sequence.default_track;
    if (event_.is_legacy && event_.type == PerfettoEvent::Type::unknown) {
      ++legacy_;
      return;
    }
    std::int64_t time_ns = 0;
    if (!time_of(packet, sequence, time_ns)) {
      ++untimed_;
      return;
    }
    records_.add(event_, time_ns);
  }

  static bool time_of(const Packet& packet, Sequence& sequence, std::int64_t& time_ns) {
    const std::uint64_t id = packet.clock != 0 ? packet.clock : sequence.default_clock;
    const auto found = sequence.clocks.find(id);
    const auto time = static_cast<std::int64_t>(packet.time);
    if (found == sequence.clocks.end()) {
      time_ns = time;
    } else {
      SequenceClock& clock = found->second;
      std::int64_t step = 0;
      const bool too_far = clock.counts_on ? __builtin_mul_overflow(time, clock.unit_ns, &step)
                                           : __builtin_sub_overflow(time, clock.value, &step) ||
                                                 __builtin_mul_overflow(step, clock.unit_ns, &step);
      if (too_far || __builtin_add_overflow(clock.base_ns, step, &time_ns)) return false;
      if (clock.counts_on && time_ns >= 0 && time_ns <= kMaxTime) clock.base_ns = time_ns;
    }
    return time_ns >= 0 && time_ns <= kMaxTime;
  }

  void write_notes() {
    const auto note = [&](std::string_view text, std::int64_t count) {
      if (count > 0) trace_.notes.add(Severity::warning, text, {}, count);
    };
    note("packets that are damaged, read as far as possible", damaged_);
    note("events older than TrackEvents, left out", legacy_);
    note("events whose time is impossible, left out", untimed_);
  }

  PeekedSource& source_;
  ProtoStream stream_;
  Trace trace_;
  PerfettoRecords records_;
  std::map<std::uint64_t, Sequence> sequences_;
  PerfettoEvent event_;
  std::int64_t packets_ = 0, damaged_ = 0, legacy_ = 0, untimed_ = 0;
};

}  // namespace

/// Whether the first packet begins with a field number that only packets have. This distinguishes
/// the file from Chakra's messages, which have their texts in fields 1 and 2.
bool recognizes_perfetto(const Sniffed& file) {
  std::string_view rest = file.head;
  if (rest.empty() || rest[0] != '\n') return false;
  rest.remove_prefix(1);
  const auto size = take_varint(rest);
  if (!size || *size == 0 || *size > ProtoStream::kLongest) return false;
  ProtoReader fields(rest.substr(0, static_cast<std::size_t>(*size)));
  if (!fields.next()) return false;
  const std::uint32_t first = fields.number();
  const bool next_is_packet = *size >= rest.size() || rest[static_cast<std::size_t>(*size)] == '\n';
  return next_is_packet && first > 5 && first < 1000;
}

Trace read_perfetto(PeekedSource& bytes) { return PerfettoDocument(bytes).read(); }

Trace read_perfetto(const TraceFile& input) {
  const auto bytes = input.open();
  return within(input.path(), [&] { return read_perfetto(*bytes); });
}

}  // namespace foretrace

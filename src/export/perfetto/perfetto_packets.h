#pragma once

// Writes the packets of a Perfetto trace (protos/perfetto/trace of that project). All packets
// belong to one sequence, whose texts are interned, so each text is written once. Field numbers are
// those of the .proto files.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/files/packed_file.h"

namespace foretrace {

/// Writes protocol buffers without a schema: fields by their numbers, one after the other. To nest
/// a message, write it with a writer of its own and add that writer as a field.
class ProtoWriter {
 public:
  void clear() { bytes_.clear(); }
  std::string_view bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

  void add(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U);
    varint(value);
  }
  /// Adds an int32 or int64. Negative values take ten bytes.
  void add_signed(std::uint32_t field, std::int64_t value) {
    add(field, static_cast<std::uint64_t>(value));
  }
  void add_fixed64(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3U | 1U);
    for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }
  void add(std::uint32_t field, std::string_view text) {
    varint(std::uint64_t{field} << 3U | 2U);
    varint(text.size());
    bytes_ += text;
  }
  void add(std::uint32_t field, const ProtoWriter& message) { add(field, message.bytes()); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

enum class TrackEventType : std::uint8_t {
  slice_begin = 1,
  slice_end = 2,
  instant = 3,
  counter = 4
};

class PerfettoPackets {
 public:
  explicit PerfettoPackets(const std::string& path) : file_(path) {}

  /// Writes the first packet: it defines the clock of all times and starts the interning of texts.
  /// REQUIRES: nothing has been written before.
  void begin(std::int64_t origin_ns);

  // The following describe a track. `parent` is the id of another track, or 0 for none; siblings
  // are ordered by `rank`; `process` and `thread` are the system's ids.
  void group(std::uint64_t uuid, std::string_view name, std::uint64_t parent, std::int32_t rank);
  void process(std::uint64_t uuid, std::int64_t process, std::string_view name);
  void thread(std::uint64_t uuid, std::int64_t process, std::int64_t thread, std::string_view name);
  void bytes_counter(std::uint64_t uuid, std::string_view name, std::uint64_t parent);

  // event() begins an event, the members after it add to the event, and write_event() writes it.
  void event(TrackEventType type, std::uint64_t track);
  void name(std::string_view text);
  void category(std::string_view text);
  void flow(std::uint64_t id, bool ends);
  void counter_value(std::int64_t value) { event_.add_signed(30, value); }
  void argument(std::string_view key, std::int64_t value);
  void argument_unsigned(std::string_view key, std::uint64_t value);
  void argument(std::string_view key, std::string_view text);
  void write_event(std::int64_t time_ns);

  void close() { file_.close(); }

 private:
  struct Interned {
    std::uint32_t table;  ///< Its field in InternedData.
    std::unordered_map<std::string, std::uint64_t> ids{};
  };
  std::uint64_t intern(Interned& table, std::string_view text);
  void write_descriptor(const ProtoWriter& descriptor);
  void write_packet(const ProtoWriter& packet);

  PackedFile file_;
  Interned categories_{1}, names_{2}, keys_{3}, texts_{29};
  ProtoWriter event_, interned_;
};

}  // namespace foretrace

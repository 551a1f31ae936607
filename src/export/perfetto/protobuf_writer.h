#pragma once

// Writes protocol buffers without a schema: fields by their numbers, one after the other. To nest a
// message, write it with a writer of its own and add that writer as a field.

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

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

}  // namespace foretrace

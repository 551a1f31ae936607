#pragma once

// Protocol buffers for tests, written byte by byte from the wire format, independent of the reader.

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

inline std::string proto_varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>(value | 0x80U);
  return bytes += static_cast<char>(value);
}
inline std::string proto_key(int number, int wire) {
  return proto_varint(static_cast<std::uint64_t>(number) << 3U | static_cast<unsigned>(wire));
}
inline std::string proto_number(int number, std::uint64_t value) {
  return proto_key(number, 0) + proto_varint(value);
}
inline std::string proto_text(int number, std::string_view text) {
  return proto_key(number, 2) + proto_varint(text.size()) + std::string(text);
}
/// A message preceded by its length.
inline std::string proto_delimited(std::string_view message) {
  return proto_varint(message.size()) + std::string(message);
}

}  // namespace foretrace

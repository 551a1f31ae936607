#pragma once

// Variable-length integers: 7 bits a byte, lowest first, the top bit set in all but the last byte.
// Signed integers are folded first (0, -1, 1, -2 ... become 0, 1, 2, 3 ...).

#include <bit>
#include <cstdint>
#include <string>

namespace foretrace::ftrace {

inline std::uint64_t fold(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63);
}

inline std::int64_t unfold(std::uint64_t folded) {
  return static_cast<std::int64_t>(folded >> 1U) ^ -static_cast<std::int64_t>(folded & 1U);
}

/// a - b and a + b modulo 2^64.
inline std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
inline std::int64_t wrapped_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

inline std::size_t varint_size(std::uint64_t value) {
  return value == 0 ? 1 : static_cast<std::size_t>(std::bit_width(value) + 6) / 7;
}

inline void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

/// Reads one varint at `at` and moves `at` behind it. Returns false if the bytes end within it or
/// it is longer than 64 bits.
inline bool take_varint(const char*& at, const char* end, std::uint64_t& value) {
  if (at < end && static_cast<unsigned char>(*at) < 0x80) {
    value = static_cast<unsigned char>(*at++);
    return true;
  }
  value = 0;
  for (unsigned shift = 0; at < end && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at++);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return shift < 63 || byte <= 1;
  }
  return false;
}

}  // namespace foretrace::ftrace

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

/// FNV-1a, 64 bits (Fowler, Noll, Vo), in 16 hex digits: finds differences, not malice.
inline std::string hash_digits(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15U];
  return digits;
}

}  // namespace foretrace

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

/// FNV-1a with 64 bits (Fowler, Noll, Vo), which detects differences but not malice. Pass a hash as
/// `seed` to continue from it.
constexpr std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325U) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return seed;
}

/// Returns the hash of a text as 16 hex digits.
inline std::string hash_digits(std::string_view text) {
  const std::uint64_t hash = hash_of(text);
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15U];
  return digits;
}

}  // namespace foretrace

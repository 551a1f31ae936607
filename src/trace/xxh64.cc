#include "trace/xxh64.h"

#include <bit>
#include <cstddef>

namespace foretrace {

namespace {

constexpr std::uint64_t kPrime1 = 0x9e3779b185ebca87;
constexpr std::uint64_t kPrime2 = 0xc2b2ae3d27d4eb4f;
constexpr std::uint64_t kPrime3 = 0x165667b19e3779f9;
constexpr std::uint64_t kPrime4 = 0x85ebca77c2b2ae63;
constexpr std::uint64_t kPrime5 = 0x27d4eb2f165667c5;

std::uint64_t load(const char* at, int size) {
  std::uint64_t word = 0;
  for (int i = 0; i < size; ++i)
    word |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round(0, lane)) * kPrime1 + kPrime4;
}

/// Hashes the 32-byte stripes at `at`, and moves `at` past them.
std::uint64_t hash_stripes(const char*& at, const char* end) {
  std::uint64_t a = kPrime1 + kPrime2;
  std::uint64_t b = kPrime2;
  std::uint64_t c = 0;
  std::uint64_t d = 0 - kPrime1;
  for (; end - at >= 32; at += 32) {
    a = round(a, load(at, 8));
    b = round(b, load(at + 8, 8));
    c = round(c, load(at + 16, 8));
    d = round(d, load(at + 24, 8));
  }
  const std::uint64_t hash =
      std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
  return merge(merge(merge(merge(hash, a), b), c), d);
}

}  // namespace

std::uint64_t xxh64(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  std::uint64_t hash = bytes.size() >= 32 ? hash_stripes(at, end) : kPrime5;
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round(0, load(at, 8)), 27) * kPrime1 + kPrime4;
  if (end - at >= 4) {
    hash = std::rotl(hash ^ load(at, 4) * kPrime1, 23) * kPrime2 + kPrime3;
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ load(at, 1) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33U) * kPrime2;
  hash = (hash ^ hash >> 29U) * kPrime3;
  return hash ^ hash >> 32U;
}

}  // namespace foretrace

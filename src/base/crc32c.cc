#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace foretrace {

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // Reflected.

/// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8U) ^ tables[0][crc & 0xffU];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

std::uint32_t by_tables(const unsigned char* bytes, std::size_t size, std::uint32_t crc) {
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][(word >> (8 * k)) & 0xffU];
  }
  for (; size > 0; --size, ++bytes) crc = (crc >> 8U) ^ kTables[0][(crc ^ *bytes) & 0xffU];
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const unsigned char* bytes,
                                                               std::size_t size,
                                                               std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++bytes) crc = _mm_crc32_u8(crc, *bytes);
  return crc;
}
#endif

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc) {
  const auto* bytes = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(bytes, size, ~crc);
#endif
  return ~by_tables(bytes, size, ~crc);
}

}  // namespace foretrace

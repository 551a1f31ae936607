#pragma once

// SHA-256 as in FIPS 180-4: says which file a result came from, and which scripts a page may run.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretrace {

/// Hashes bytes that come in pieces.
class Sha256 {
 public:
  void add(std::string_view bytes);
  /// The 32 bytes. Call it once, behind the last add().
  std::string digest();

 private:
  void digest_block();

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

/// The 32 bytes.
std::string sha256_of(std::string_view bytes);

/// Lower-case hex, two digits a byte.
std::string hex_of(std::string_view bytes);

}  // namespace foretrace

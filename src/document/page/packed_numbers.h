#pragma once

// Packs numbers for the script of a page into few bytes, as base64. Each byte holds 7 bits, lowest
// first, and the top bit is set in all but the last byte of a number. Signed numbers are mapped to
// unsigned ones (0, -1, 1, -2 ... become 0, 1, 2, 3 ...). page.numbers() in page/shell.js reads
// them.

#include <cstdint>
#include <string>

namespace foretrace {

class PackedNumbers {
 public:
  void add(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }
  void add_signed(std::int64_t value) {
    add(static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string base64_of(const std::string& bytes);

}  // namespace foretrace

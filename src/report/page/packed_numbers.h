#pragma once

// Numbers for the script of a page, in few bytes: 7 bits a byte, lowest first, the top bit set in
// all but the last byte of a number; as base64. Signed ones are folded (0, -1, 1, -2 ... become 0,
// 1, 2, 3 ...). page.packed() in page/shell.js reads them.

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

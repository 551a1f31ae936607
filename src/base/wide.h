#pragma once

// Integers of other widths: 128 bits, for products of two 64-bit quantities that must not lose a
// digit, and 32 bits, for numbers of files in small records.

#include <algorithm>
#include <cstdint>
#include <limits>

namespace foretrace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

/// The closest number of 32 bits.
inline std::int32_t to_int32(std::int64_t value) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(
      value, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
}

}  // namespace foretrace

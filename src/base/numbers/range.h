#pragma once

// Ranges of values as texts, with one grammar wherever a range can be given:
//
//     8..64/+8     8, 16, 24 ... 64
//     8..64/x2     8, 16, 32, 64
//     0..1/20      in 20 equal parts: 0, 0.05 ... 1
//     1..16        as the setting usually goes: by ones, doubling, in ten parts

#include <cstdint>
#include <optional>
#include <string_view>

namespace foretrace {

enum class RangeStep : std::uint8_t { usual, add, times, parts };

struct RangeText {
  std::string_view first, last;
  RangeStep step = RangeStep::usual;
  std::string_view amount;  ///< "8", or "8MB" where sizes are added.
};

/// Returns nullopt if there is no "..". What follows a slash belongs to the range only if it begins
/// with +, x or a digit: 1GB/s..8GB/s/7 has seven parts.
std::optional<RangeText> split_range(std::string_view text);

}  // namespace foretrace

#pragma once

// The sizes used by the caching allocator of PyTorch (native back end). The numbers and names are
// those of its sources, the same since version 1.0, so that they can be found.

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "foretrace/allocator.h"

namespace foretrace {

constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = std::int64_t{1} << 20;       ///< The largest small request.
constexpr std::int64_t kSmallBuffer = std::int64_t{2} << 20;     ///< A segment of small blocks.
constexpr std::int64_t kLargeBuffer = std::int64_t{20} << 20;    ///< One for medium requests.
constexpr std::int64_t kMinLargeAlloc = std::int64_t{10} << 20;  ///< From here on a segment each.
constexpr std::int64_t kRoundLarge = std::int64_t{2} << 20;
/// No device has this much; PyTorch refuses such requests, too. The sum of all blocks of an
/// allocator is kept below it, so that no sum overflows 64 bits.
constexpr std::int64_t kOneExabyte = std::int64_t{1} << 60;

/// AllocatorSettings, checked and as numbers that need no special cases.
class CachingRules {
 public:
  /// Throws Error on divisions that make no sense.
  explicit CachingRules(const AllocatorSettings& settings);

  /// The bytes counted for a request of `bytes`.
  std::int64_t rounded(std::int64_t bytes) const;
  /// The size requested from the driver if no block is free for a (rounded) request.
  static std::int64_t segment_size(std::int64_t rounded);
  static bool is_small(std::int64_t rounded) { return rounded <= kSmallSize; }
  /// Whether the `rest` of a block after a request becomes a block of its own.
  bool splits(std::int64_t rounded, std::int64_t rest, bool small) const;
  /// Whether the best fitting block is not too good for a request.
  bool suits(std::int64_t rounded, std::int64_t block) const;

  bool is_limited() const { return limit_ < kOneExabyte; }
  std::int64_t limit() const { return limit_; }      ///< Limit of the driver.
  std::int64_t allowed() const { return allowed_; }  ///< Limit of the process; limit() or less.
  /// Above so much in reserve unused segments are given back first; the largest number: never.
  std::int64_t collects_above() const { return collects_above_; }
  std::int64_t max_split_size() const { return max_split_size_; }
  bool expandable() const { return expandable_; }

 private:
  static constexpr std::size_t kIntervals = 16;  ///< From 1 MiB; 32 GiB and more share the last.
  void read_divisions(std::string_view text);
  void read_intervals(std::string_view text);
  std::int64_t divisions_of(std::int64_t bytes) const;

  std::array<std::int64_t, kIntervals> divisions_{};
  std::int64_t limit_ = kOneExabyte;
  std::int64_t allowed_ = kOneExabyte;
  std::int64_t collects_above_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_split_size_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t max_non_split_rounding_ = 0;
  bool expandable_ = false;
};

}  // namespace foretrace

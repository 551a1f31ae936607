#pragma once

// The sizes used by PyTorch's caching allocator (native back end). Numbers and names are those of
// its sources, unchanged since version 1.0, so that they can be looked up there.

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "foretrace/allocator.h"

namespace foretrace {

constexpr std::int64_t kMinBlockSize = 512;
constexpr std::int64_t kSmallSize = std::int64_t{1} << 20;     ///< The largest small request.
constexpr std::int64_t kSmallBuffer = std::int64_t{2} << 20;   ///< A segment of small blocks.
constexpr std::int64_t kLargeBuffer = std::int64_t{20} << 20;  ///< A segment for medium requests.
/// Larger requests get a segment each.
constexpr std::int64_t kMinLargeAlloc = std::int64_t{10} << 20;
constexpr std::int64_t kRoundLarge = std::int64_t{2} << 20;
/// More than any device has; PyTorch refuses such requests too. The sum of all blocks of an
/// allocator is kept below it, so that no sum overflows 64 bits.
constexpr std::int64_t kOneExabyte = std::int64_t{1} << 60;

/// AllocatorSettings, checked and converted to numbers that need no special cases.
class CachingRules {
 public:
  /// Throws Error if the divisions are invalid.
  explicit CachingRules(const AllocatorSettings& settings);

  /// The bytes counted for a request of `bytes`.
  std::int64_t rounded(std::int64_t bytes) const;
  /// The size requested from the driver if no block is free for a (rounded) request.
  static std::int64_t segment_size(std::int64_t rounded);
  static bool is_small(std::int64_t rounded) { return rounded <= kSmallSize; }
  /// Whether the `rest` of a block that serves a request becomes a block of its own.
  bool splits(std::int64_t rounded, std::int64_t rest, bool small) const;
  /// Whether the best fitting block may serve a request; an oversize block may not serve a small
  /// one.
  bool may_serve(std::int64_t rounded, std::int64_t block) const;

  bool is_limited() const { return limit_ < kOneExabyte; }
  std::int64_t limit() const { return limit_; }      ///< Limit of the driver.
  std::int64_t allowed() const { return allowed_; }  ///< Limit of the process; limit() or less.
  /// Reserved bytes above which unused segments are freed first; the largest number: never.
  std::int64_t collects_above() const { return collects_above_; }
  std::int64_t max_split_size() const { return max_split_size_; }
  bool expandable() const { return expandable_; }

 private:
  /// Powers of two from 1 MiB; 32 GiB and more share the last.
  static constexpr std::size_t kIntervals = 16;
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

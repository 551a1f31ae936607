#pragma once

// The state of the caching allocator: segments cut into blocks, and which blocks are free.
//
//     segment  [ used | free | pending | free ]     blocks in order of address, linked
//     free     by (stream, size, address)           the first that is large enough fits best
//     whole    free blocks that fill a segment      segments that can be freed, linked
//
// Two free blocks are never neighbours: they are joined at once. In expandable segments, which are
// address space, some memory is unmapped; unmapped blocks are joined likewise.

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "foretrace/allocator.h"
#include "foretrace/error.h"

namespace foretrace {

constexpr std::uint32_t kNoBlock = 0xffffffff;

enum class BlockUse : std::uint8_t { free, used, pending, unmapped };

struct CacheBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested = 0;
  std::int64_t handle = -1;
  std::int64_t free_since = 0;  ///< Counted in searches of its pool.
  Nanoseconds busy_until = Nanoseconds::min();
  std::uint32_t previous = kNoBlock, next = kNoBlock;  ///< Neighbours in the segment.
  std::uint32_t whole_previous = kNoBlock, whole_next = kNoBlock;
  std::uint32_t segment = 0;
  BlockUse use = BlockUse::free;
  bool is_recorded = false;  ///< Another stream uses it.

  std::uint64_t end() const { return address + static_cast<std::uint64_t>(bytes); }
};

struct CacheSegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< For an expandable segment, the size of its address space.
  std::int64_t stream = 0;
  std::uint32_t first = kNoBlock;
  bool is_small = false;
  bool is_expandable = false;
  bool is_removed = false;
};

/// Free blocks of one size class, on all streams.
struct CachePool {
  struct Free {
    std::int64_t stream;
    std::int64_t bytes;
    std::uint64_t address;
    std::uint32_t block;
    friend bool operator<(const Free& a, const Free& b) {
      return std::tie(a.stream, a.bytes, a.address, a.block) <
             std::tie(b.stream, b.bytes, b.address, b.block);
    }
  };
  struct Unmapped {
    std::int64_t stream;
    std::uint64_t address;
    std::uint32_t block;
    friend bool operator<(const Unmapped& a, const Unmapped& b) {
      return std::tie(a.stream, a.address) < std::tie(b.stream, b.address);
    }
  };
  std::set<Free> free;
  std::set<Unmapped> unmapped;
  std::uint32_t first_whole = kNoBlock;
  std::int64_t searches = 0;
};

/// The addresses that a driver returns: always the lowest that are free. Real devices return
/// others, but the address only decides between blocks of the same size.
class AddressSpace {
 public:
  AddressSpace();
  /// Returns the start of the lowest hole of this size, or 0 if there is none.
  std::uint64_t take(std::int64_t bytes);
  /// Takes exactly this range, even if it is in use.
  void reserve(std::uint64_t address, std::int64_t bytes);
  void give_back(std::uint64_t address, std::int64_t bytes);

 private:
  std::map<std::uint64_t, std::uint64_t> holes_;  ///< End of each hole, by its begin.
};

/// Keeps blocks, pools and levels consistent. Knows none of the allocator's rules.
class BlockTable {
 public:
  CacheBlock& operator[](std::uint32_t block) { return blocks_[block]; }
  const CacheBlock& operator[](std::uint32_t block) const { return blocks_[block]; }
  CacheSegment& segment_of(std::uint32_t block) { return segments_[blocks_[block].segment]; }
  const CacheSegment& segment_of(std::uint32_t block) const {
    return segments_[blocks_[block].segment];
  }
  CachePool& pool(bool small) { return pools_[small ? 0 : 1]; }
  const CachePool& pool(bool small) const { return pools_[small ? 0 : 1]; }
  CachePool& pool_of(std::uint32_t block) { return pool(segment_of(block).is_small); }
  const std::vector<CacheSegment>& segments() const { return segments_; }
  const AllocatorLevels& levels() const { return levels_; }
  const AllocatorLevels& peaks() const { return peaks_; }

  bool is_whole(std::uint32_t block) const {
    return blocks_[block].previous == kNoBlock && blocks_[block].next == kNoBlock;
  }
  bool has_use(std::uint32_t block, BlockUse use) const {
    return block != kNoBlock && blocks_[block].use == use;
  }

  /// Adds a segment of one block, which is in no list yet.
  std::uint32_t add_segment(const CacheSegment& segment, BlockUse use);
  void remove_segment(std::uint32_t block);

  /// Splits off everything after the first `bytes`; the new block has the same use and is in no
  /// list.
  std::uint32_t split(std::uint32_t block, std::int64_t bytes);
  /// Joins a block that is in no list with neighbours of the same use; returns the resulting block.
  std::uint32_t join(std::uint32_t block);
  void put_free(std::uint32_t block);
  void take_free(std::uint32_t block);
  void put_unmapped(std::uint32_t block);
  void take_unmapped(std::uint32_t block);

  void add(std::int64_t AllocatorLevels::*level, std::int64_t bytes) {
    levels_.*level += bytes;
    if (levels_.*level > peaks_.*level) peaks_.*level = levels_.*level;
  }

 private:
  std::uint32_t new_block();
  void absorb_next(std::uint32_t block);
  void take(std::uint32_t block);

  std::vector<CacheBlock> blocks_;
  std::vector<std::uint32_t> unused_;  ///< Free places in blocks_.
  std::vector<CacheSegment> segments_;
  CachePool pools_[2];
  AllocatorLevels levels_, peaks_;
};

}  // namespace foretrace

#include "allocator/allocator_blocks.h"

#include <algorithm>
#include <iterator>

namespace foretrace {
namespace {

constexpr std::uint64_t kFirstAddress = std::uint64_t{1} << 32;
constexpr std::uint64_t kLastAddress = std::uint64_t{1} << 63;

}  // namespace

AddressSpace::AddressSpace() { holes_[kFirstAddress] = kLastAddress; }

std::uint64_t AddressSpace::take(std::int64_t bytes) {
  const auto size = static_cast<std::uint64_t>(bytes);
  const auto hole = std::find_if(holes_.begin(), holes_.end(), [&](const auto& range) {
    return range.second - range.first >= size;
  });
  if (hole == holes_.end()) return 0;
  const std::uint64_t address = hole->first;
  reserve(address, bytes);
  return address;
}

void AddressSpace::reserve(std::uint64_t address, std::int64_t bytes) {
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  auto hole = holes_.upper_bound(address);
  if (hole != holes_.begin()) --hole;
  while (hole != holes_.end() && hole->first < end) {
    const auto [first, last] = *hole;
    if (last <= address) {
      ++hole;
      continue;
    }
    hole = holes_.erase(hole);
    if (first < address) holes_[first] = address;
    if (end < last) holes_[end] = last;
  }
}

void AddressSpace::give_back(std::uint64_t address, std::int64_t bytes) {
  std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  const auto behind = holes_.lower_bound(address);
  if (behind != holes_.end() && behind->first == end) {
    end = behind->second;
    holes_.erase(behind);
  }
  const auto next = holes_.lower_bound(address);
  if (next != holes_.begin() && std::prev(next)->second == address) {
    std::prev(next)->second = end;
  } else {
    holes_[address] = end;
  }
}

std::uint32_t BlockTable::new_block() {
  if (unused_.empty()) {
    blocks_.emplace_back();
    return static_cast<std::uint32_t>(blocks_.size() - 1);
  }
  const std::uint32_t block = unused_.back();
  unused_.pop_back();
  blocks_[block] = {};
  return block;
}

std::uint32_t BlockTable::add_segment(const CacheSegment& segment, BlockUse use) {
  const std::uint32_t block = new_block();
  blocks_[block].address = segment.address;
  blocks_[block].bytes = segment.bytes;
  blocks_[block].segment = static_cast<std::uint32_t>(segments_.size());
  blocks_[block].use = use;
  segments_.push_back(segment);
  segments_.back().first = block;
  return block;
}

void BlockTable::remove_segment(std::uint32_t block) {
  CHECK(is_whole(block));
  segment_of(block).is_removed = true;
  unused_.push_back(block);
}

std::uint32_t BlockTable::split(std::uint32_t block, std::int64_t bytes) {
  CHECK(bytes > 0 && bytes < blocks_[block].bytes);
  const std::uint32_t rest = new_block();
  CacheBlock& front = blocks_[block];
  CacheBlock& back = blocks_[rest];
  back.address = front.address + static_cast<std::uint64_t>(bytes);
  back.bytes = front.bytes - bytes;
  back.segment = front.segment;
  back.use = front.use;
  back.previous = block;
  back.next = front.next;
  front.bytes = bytes;
  front.next = rest;
  if (back.next != kNoBlock) blocks_[back.next].previous = rest;
  return rest;
}

/// Keeps the front block, so that the first block of a segment never changes.
void BlockTable::absorb_next(std::uint32_t block) {
  const std::uint32_t absorbed = blocks_[block].next;
  blocks_[block].bytes += blocks_[absorbed].bytes;
  blocks_[block].next = blocks_[absorbed].next;
  if (blocks_[block].next != kNoBlock) blocks_[blocks_[block].next].previous = block;
  unused_.push_back(absorbed);
}

void BlockTable::take(std::uint32_t block) {
  if (blocks_[block].use == BlockUse::unmapped) {
    take_unmapped(block);
  } else {
    take_free(block);
  }
}

std::uint32_t BlockTable::join(std::uint32_t block) {
  const BlockUse use = blocks_[block].use;
  if (has_use(blocks_[block].next, use)) {
    take(blocks_[block].next);
    absorb_next(block);
  }
  const std::uint32_t previous = blocks_[block].previous;
  if (!has_use(previous, use)) return block;
  take(previous);
  absorb_next(previous);
  return previous;
}

void BlockTable::put_free(std::uint32_t block) {
  CacheBlock& freed = blocks_[block];
  const CacheSegment& segment = segment_of(block);
  CachePool& pool = pool_of(block);
  freed.use = BlockUse::free;
  freed.handle = -1;
  freed.requested = 0;
  freed.is_recorded = false;
  freed.busy_until = Nanoseconds::min();
  freed.free_since = pool.searches;
  pool.free.insert({segment.stream, freed.bytes, freed.address, block});
  if (segment.is_expandable) return;
  if (!is_whole(block)) return add(&AllocatorLevels::inactive_split, freed.bytes);
  freed.whole_previous = kNoBlock;
  freed.whole_next = pool.first_whole;
  if (pool.first_whole != kNoBlock) blocks_[pool.first_whole].whole_previous = block;
  pool.first_whole = block;
}

void BlockTable::take_free(std::uint32_t block) {
  const CacheBlock& taken = blocks_[block];
  const CacheSegment& segment = segment_of(block);
  CachePool& pool = pool_of(block);
  pool.free.erase({segment.stream, taken.bytes, taken.address, block});
  if (segment.is_expandable) return;
  if (!is_whole(block)) return add(&AllocatorLevels::inactive_split, -taken.bytes);
  if (taken.whole_next != kNoBlock) {
    blocks_[taken.whole_next].whole_previous = taken.whole_previous;
  }
  if (taken.whole_previous != kNoBlock) {
    blocks_[taken.whole_previous].whole_next = taken.whole_next;
  } else {
    pool.first_whole = taken.whole_next;
  }
}

void BlockTable::put_unmapped(std::uint32_t block) {
  blocks_[block].use = BlockUse::unmapped;
  pool_of(block).unmapped.insert({segment_of(block).stream, blocks_[block].address, block});
}

void BlockTable::take_unmapped(std::uint32_t block) {
  pool_of(block).unmapped.erase({segment_of(block).stream, blocks_[block].address, block});
}

}  // namespace foretrace

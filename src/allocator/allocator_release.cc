// Returns memory to the driver: segments unused for long, oversize ones, or all that can be freed.
// Also takes over segments of another allocator.

#include <algorithm>
#include <limits>

#include "allocator/allocator_impl.h"

namespace foretrace {
namespace {

constexpr std::uint64_t kMaxAddress = std::uint64_t{1} << 63;

bool fits(const AllocatorBlock& block, const CacheBlock& room) {
  return block.bytes > 0 && block.address >= room.address && block.address < room.end() &&
         static_cast<std::uint64_t>(block.bytes) <= room.end() - block.address;
}

}  // namespace

void CachingAllocator::Impl::release_whole(std::uint32_t block) {
  const std::int64_t bytes = table[block].bytes;
  table.take_free(block);
  table.add(&AllocatorLevels::reserved, -bytes);
  addresses.give_back(table[block].address, bytes);
  table.remove_segment(block);
  ++driver_frees;
}

/// Frees large segments that are entirely unused, if they have been so for at least the average
/// number of searches; repeats until the part above the threshold is reclaimed. Each round is
/// completed even if less would suffice, so that the next collection is not needed soon.
void CachingAllocator::Impl::collect_garbage() {
  const std::int64_t excess = table.levels().reserved - rules.collects_above();
  if (excess <= 0) return;
  CachePool& pool = table.pool(false);
  const auto age = [&](std::uint32_t block) { return pool.searches - table[block].free_since; };
  std::int64_t count = 0, total_age = 0, reclaimed = 0;
  for (std::uint32_t at = pool.first_whole; at != kNoBlock; at = table[at].whole_next) {
    ++count;
    total_age += age(at);
  }
  while (reclaimed < excess && count > 0) {
    const double average = static_cast<double>(total_age) / static_cast<double>(count);
    for (std::uint32_t at = pool.first_whole; at != kNoBlock;) {
      const std::uint32_t block = at;
      at = table[at].whole_next;
      if (static_cast<double>(age(block)) < average) continue;
      reclaimed += table[block].bytes;
      total_age -= age(block);
      --count;
      release_whole(block);
    }
  }
}

/// If a max_split_size is set, frees the smallest unused oversize block that is large enough; if
/// there is none, as many of the largest as needed. Returns whether that was enough.
bool CachingAllocator::Impl::release_oversize(const CacheRequest& request) {
  const std::int64_t least = rules.max_split_size();
  if (least == std::numeric_limits<std::int64_t>::max()) return false;
  const std::int64_t enough = std::max(least, request.rounded);
  auto& free = table.pool(request.is_small).free;
  const auto can_go = [&](const CachePool::Free& block) {
    return table.is_whole(block.block) && !table.segment_of(block.block).is_expandable;
  };
  auto at = free.lower_bound({request.stream, enough, 0, 0});
  if (at != free.end() && at->stream == request.stream && can_go(*at)) {
    release_whole(at->block);
    return true;
  }
  std::int64_t released = 0;
  while (released < enough && at != free.begin()) {
    const CachePool::Free block = *std::prev(at);
    if (block.stream != request.stream || block.bytes < least) break;
    if (can_go(block)) {
      released += block.bytes;
      release_whole(block.block);
    } else {
      --at;
    }
  }
  return released >= enough;
}

/// Waits for all streams first. A segment with a block in use stays.
void CachingAllocator::Impl::release_all() {
  finish_pending(Nanoseconds::max());
  for (const bool small : {false, true}) {
    unmap_all(small);
    while (table.pool(small).first_whole != kNoBlock) release_whole(table.pool(small).first_whole);
  }
}

/// Only free blocks of at least a page are considered, because smaller ones contain no whole page.
void CachingAllocator::Impl::unmap_all(bool small) {
  const auto& free = table.pool(small).free;
  const std::int64_t page = small ? kSmallBuffer : kLargeBuffer;
  std::vector<std::uint32_t> blocks;
  for (auto at = free.begin(); at != free.end();) {
    const std::int64_t stream = at->stream;
    at = free.lower_bound({stream, page, 0, 0});
    for (; at != free.end() && at->stream == stream; ++at) {
      if (table.segment_of(at->block).is_expandable) blocks.push_back(at->block);
    }
  }
  for (const std::uint32_t block : blocks) unmap(block);
}

void CachingAllocator::Impl::unmap(std::uint32_t block) {
  const CacheSegment segment = table.segment_of(block);
  const auto page = static_cast<std::uint64_t>(segment.is_small ? kSmallBuffer : kLargeBuffer);
  const std::uint64_t from = (table[block].address - segment.address + page - 1) / page * page;
  const std::uint64_t to = (table[block].end() - segment.address) / page * page;
  if (from >= to) return;
  table.take_free(block);
  const auto before = static_cast<std::int64_t>(segment.address + from - table[block].address);
  const auto bytes = static_cast<std::int64_t>(to - from);
  std::uint32_t pages = block;
  if (before > 0) pages = table.split(block, before);
  if (bytes < table[pages].bytes) {
    const std::uint32_t behind = table.split(pages, bytes);
    table[pages].use = BlockUse::unmapped;
    table.put_free(behind);
  }
  table[pages].use = BlockUse::unmapped;
  if (before > 0) table.put_free(block);
  pages = table.join(pages);
  table.add(&AllocatorLevels::reserved, -bytes);
  ++driver_frees;
  if (!table.is_whole(pages)) return table.put_unmapped(pages);
  addresses.give_back(segment.address, segment.bytes);
  table.remove_segment(pages);
}

/// Gaps between the listed blocks are free. Overlapping blocks and segments of impossible size are
/// left out. An expandable segment is treated as one that cannot grow, because the size of its
/// address space is unknown; growth happens in new segments.
void CachingAllocator::Impl::adopt(const AllocatorSegment& segment) {
  const bool has_room = segment.bytes > 0 && segment.address < kMaxAddress &&
                        segment.bytes <= kOneExabyte - table.levels().reserved;
  if (!has_room) return;
  addresses.reserve(segment.address, segment.bytes);
  table.add(&AllocatorLevels::reserved, segment.bytes);
  std::uint32_t rest = table.add_segment({.address = segment.address,
                                          .bytes = segment.bytes,
                                          .stream = segment.stream,
                                          .is_small = segment.is_small,
                                          .is_expandable = segment.is_expandable},
                                         BlockUse::used);
  std::vector<std::uint32_t> free;
  for (const AllocatorBlock& block : segment.blocks) {
    if (block.handle < 0 || handles.contains(block.handle) || !fits(block, table[rest])) continue;
    const auto lead = static_cast<std::int64_t>(block.address - table[rest].address);
    if (lead > 0) {
      free.push_back(rest);
      rest = table.split(rest, lead);
    }
    const std::uint32_t taken = rest;
    rest = block.bytes < table[taken].bytes ? table.split(taken, block.bytes) : kNoBlock;
    table[taken].requested = std::clamp<std::int64_t>(block.requested, 0, block.bytes);
    table[taken].handle = block.handle;
    handles.emplace(block.handle, taken);
    table.add(&AllocatorLevels::allocated, block.bytes);
    table.add(&AllocatorLevels::active, block.bytes);
    table.add(&AllocatorLevels::requested, table[taken].requested);
    if (rest == kNoBlock) break;
  }
  if (rest != kNoBlock) free.push_back(rest);
  for (const std::uint32_t block : free) table.put_free(block);
}

}  // namespace foretrace

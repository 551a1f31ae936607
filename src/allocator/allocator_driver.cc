// Gets memory from the driver: segments of a fixed size, or expandable ones.
//
// An expandable segment is address space, one for each stream and pool, large enough for all memory
// of a device. Pages (2 MiB for small blocks, 20 MiB for large ones) are mapped at the lowest
// address that has room for a request. A free block in front of unmapped space is part of that
// room:
//
//     | used | free |  unmapped ...       a request larger than the free block maps only the rest
//     | used | request   |r| unmapped
//
// Ignored: the driver's own granularity, its context, and the memory of other processes.

#include <algorithm>
#include <utility>

#include "allocator/allocator_impl.h"

namespace foretrace {
namespace {

constexpr std::int64_t kUnlimitedSpace = std::int64_t{1} << 40;

std::int64_t page_size(bool small) { return small ? kSmallBuffer : kLargeBuffer; }

std::int64_t whole_pages(std::int64_t bytes, bool small) {
  const std::int64_t page = page_size(small);
  return (bytes + page - 1) / page * page;
}

}  // namespace

std::uint32_t CachingAllocator::Impl::ask_driver(const CacheRequest& request) {
  const auto grow = [&] {
    // PyTorch checks the size of a whole segment here, even if it would map less.
    if (allowed < limit && table.levels().reserved + request.segment > allowed) return kNoBlock;
    return rules.expandable() ? expand(request) : new_segment(request);
  };
  collect_garbage();
  std::uint32_t block = grow();
  if (block == kNoBlock && release_oversize(request)) block = grow();
  if (block != kNoBlock) return block;
  release_all();
  ++retries;
  return grow();
}

std::uint32_t CachingAllocator::Impl::new_segment(const CacheRequest& request) {
  if (table.levels().reserved + request.segment > limit) return kNoBlock;
  const std::uint64_t recorded_address = std::exchange(next_address, 0);
  if (recorded_address != 0) addresses.reserve(recorded_address, request.segment);
  const std::uint64_t address =
      recorded_address != 0 ? recorded_address : addresses.take(request.segment);
  if (address == 0) return kNoBlock;
  ++driver_mallocs;
  table.add(&AllocatorLevels::reserved, request.segment);
  return table.add_segment({.address = address,
                            .bytes = request.segment,
                            .stream = request.stream,
                            .is_small = request.is_small},
                           BlockUse::free);
}

bool CachingAllocator::Impl::has_room(std::uint32_t block, std::int64_t bytes) const {
  std::int64_t room = 0;
  while (room < bytes &&
         (table.has_use(block, BlockUse::free) || table.has_use(block, BlockUse::unmapped))) {
    room += table[block].bytes;
    block = table[block].next;
  }
  return room >= bytes;
}

std::uint32_t CachingAllocator::Impl::room_to_expand(const CacheRequest& request) {
  const auto& unmapped = table.pool(request.is_small).unmapped;
  for (auto at = unmapped.lower_bound({request.stream, 0, 0});
       at != unmapped.end() && at->stream == request.stream; ++at) {
    const std::uint32_t previous = table[at->block].previous;
    const std::uint32_t first = table.has_use(previous, BlockUse::free) ? previous : at->block;
    if (has_room(first, request.rounded)) return first;
  }
  return new_address_space(request);
}

/// Reserves an eighth more than the device has, so that pages can be unmapped at the front and
/// mapped at the end.
std::uint32_t CachingAllocator::Impl::new_address_space(const CacheRequest& request) {
  if (request.rounded > limit) return kNoBlock;
  const std::int64_t most =
      rules.is_limited() ? rules.limit() + rules.limit() / 8 : kUnlimitedSpace;
  const std::int64_t bytes = whole_pages(std::max(most, request.rounded), request.is_small);
  const std::uint64_t address = addresses.take(bytes);
  if (address == 0) return kNoBlock;
  const std::uint32_t block = table.add_segment({.address = address,
                                                 .bytes = bytes,
                                                 .stream = request.stream,
                                                 .is_small = request.is_small,
                                                 .is_expandable = true},
                                                BlockUse::unmapped);
  table.put_unmapped(block);
  return block;
}

/// Maps the first `bytes` of an unmapped block, in whole pages. Returns the free block that
/// contains them, or kNoBlock if the limit does not allow it.
std::uint32_t CachingAllocator::Impl::map(std::uint32_t block, std::int64_t bytes) {
  const std::int64_t mapped = whole_pages(bytes, table.segment_of(block).is_small);
  if (table.levels().reserved + mapped > limit) return kNoBlock;
  table.take_unmapped(block);
  if (mapped < table[block].bytes) table.put_unmapped(table.split(block, mapped));
  table[block].use = BlockUse::free;
  const std::uint32_t joined = table.join(block);
  table.put_free(joined);
  ++driver_mallocs;
  table.add(&AllocatorLevels::reserved, mapped);
  return joined;
}

std::uint32_t CachingAllocator::Impl::expand(const CacheRequest& request) {
  std::uint32_t block = room_to_expand(request);
  if (block == kNoBlock) return kNoBlock;
  if (table[block].use == BlockUse::unmapped) {
    block = map(block, std::min(table[block].bytes, request.rounded));
  }
  while (block != kNoBlock && table[block].bytes < request.rounded) {
    const std::uint32_t next = table[block].next;
    block = map(next, std::min(table[next].bytes, request.rounded - table[block].bytes));
  }
  if (block != kNoBlock) table.take_free(block);
  return block;
}

}  // namespace foretrace

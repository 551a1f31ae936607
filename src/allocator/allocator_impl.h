#pragma once

// The parts of a CachingAllocator: serving requests (allocator.cc), getting memory from the driver
// (allocator_driver.cc) and returning it (allocator_release.cc).

#include <queue>
#include <unordered_map>
#include <vector>

#include "allocator/allocator_blocks.h"
#include "allocator/allocator_rules.h"
#include "foretrace/allocator.h"

namespace foretrace {

/// A request, with the sizes that the rules derive from it.
struct CacheRequest {
  std::int64_t handle = -1;
  std::int64_t requested = 0;
  std::int64_t rounded = 0;
  std::int64_t segment = 0;  ///< Size to request from the driver.
  std::int64_t stream = 0;
  bool is_small = false;
};

struct CachingAllocator::Impl {
  explicit Impl(const AllocatorSettings& settings)
      : rules(settings), limit(rules.limit()), allowed(rules.allowed()) {}

  CacheRequest request_for(std::int64_t handle, std::int64_t bytes, std::int64_t stream) const;
  bool serve(const CacheRequest& request);
  void serve_beyond(const CacheRequest& request);
  OutOfMemory refusal_of(const CacheRequest& request) const;
  std::uint32_t search(const CacheRequest& request);
  void hand_out(std::uint32_t block, const CacheRequest& request);
  void free(std::int64_t handle, Nanoseconds now);
  void release(std::uint32_t block);  ///< Returns the block to its pool.
  void finish_pending(Nanoseconds now);

  /// Returns a block that is large enough and in no pool, or kNoBlock.
  std::uint32_t ask_driver(const CacheRequest& request);
  std::uint32_t new_segment(const CacheRequest& request);
  std::uint32_t expand(const CacheRequest& request);
  std::uint32_t room_to_expand(const CacheRequest& request);
  bool has_room(std::uint32_t block, std::int64_t bytes) const;
  std::uint32_t new_address_space(const CacheRequest& request);
  std::uint32_t map(std::uint32_t block, std::int64_t bytes);

  void collect_garbage();
  bool release_oversize(const CacheRequest& request);
  void release_all();
  void release_whole(std::uint32_t block);
  void unmap_all(bool small);
  void unmap(std::uint32_t block);
  void adopt(const AllocatorSegment& segment);

  struct Pending {
    Nanoseconds until{};
    std::uint32_t block = 0;
    friend bool operator>(const Pending& a, const Pending& b) {
      return std::tie(a.until, a.block) > std::tie(b.until, b.block);
    }
  };

  CachingRules rules;
  std::int64_t limit;  ///< The limit of the rules, except in serve_beyond().
  std::int64_t allowed;
  BlockTable table;
  AddressSpace addresses;
  std::uint64_t next_address = 0;  ///< Address of the next segment, if not 0.
  std::unordered_map<std::int64_t, std::uint32_t> handles;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending;
  std::int64_t driver_mallocs = 0, driver_frees = 0, retries = 0;
};

}  // namespace foretrace

// Serves requests from free blocks: best fit, splitting, joining, and blocks that other streams
// still use.

#include "foretrace/allocator.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "allocator/allocator_impl.h"

namespace foretrace {

CacheRequest CachingAllocator::Impl::request_for(std::int64_t handle, std::int64_t bytes,
                                                 std::int64_t stream) const {
  CacheRequest request{.handle = handle, .requested = bytes, .rounded = bytes, .stream = stream};
  // An impossible size is not rounded, which could overflow 64 bits.
  if (bytes < kOneExabyte) request.rounded = rules.rounded(bytes);
  request.is_small = CachingRules::is_small(request.rounded);
  request.segment = request.rounded;
  if (request.rounded < kOneExabyte) request.segment = CachingRules::segment_size(request.rounded);
  return request;
}

/// Finds the smallest block that is large enough. In expandable segments the block that could grow
/// least is better, so that the end of a segment stays free for requests that fit only there.
std::uint32_t CachingAllocator::Impl::search(const CacheRequest& request) {
  CachePool& pool = table.pool(request.is_small);
  ++pool.searches;
  auto best = pool.free.lower_bound({request.stream, request.rounded, 0, 0});
  const auto is_candidate = [&](auto found) {
    return found != pool.free.end() && found->stream == request.stream;
  };
  const auto is_expandable = [&](auto found) {
    return table.segment_of(found->block).is_expandable;
  };
  const auto reach = [&](auto found) {
    const std::uint32_t next = table[found->block].next;
    return found->bytes + (table.has_use(next, BlockUse::unmapped) ? table[next].bytes : 0);
  };
  if (!is_candidate(best)) return kNoBlock;
  if (rules.expandable()) {
    for (auto next = std::next(best);
         is_expandable(best) && is_candidate(next) && reach(next) < reach(best); ++next) {
      best = next;
    }
  } else {
    while (is_candidate(best) && is_expandable(best)) ++best;
    if (!is_candidate(best)) return kNoBlock;
  }
  if (!rules.may_serve(request.rounded, best->bytes)) return kNoBlock;
  const std::uint32_t block = best->block;
  table.take_free(block);
  return block;
}

void CachingAllocator::Impl::hand_out(std::uint32_t block, const CacheRequest& request) {
  const std::int64_t rest = table[block].bytes - request.rounded;
  if (rest > 0 && rules.splits(request.rounded, rest, request.is_small)) {
    const std::uint32_t behind = table.split(block, request.rounded);
    table[block].use = BlockUse::used;
    table.put_free(behind);
  }
  CacheBlock& given = table[block];
  given.use = BlockUse::used;
  given.requested = request.requested;
  given.handle = request.handle;
  handles[request.handle] = block;
  table.add(&AllocatorLevels::allocated, given.bytes);
  table.add(&AllocatorLevels::active, given.bytes);
  table.add(&AllocatorLevels::requested, given.requested);
}

/// Returns whether the request could be served within the limit.
bool CachingAllocator::Impl::serve(const CacheRequest& request) {
  std::uint32_t block = kNoBlock;
  if (request.rounded < kOneExabyte) {
    block = search(request);
    if (block == kNoBlock) block = ask_driver(request);
  }
  if (block != kNoBlock) hand_out(block, request);
  return block != kNoBlock;
}

OutOfMemory CachingAllocator::Impl::refusal_of(const CacheRequest& request) const {
  OutOfMemory refusal{.handle = request.handle,
                      .requested = request.requested,
                      .segment = request.segment,
                      .levels = table.levels(),
                      .largest_free = 0};
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const bool small : {true, false}) {
    const auto& free = table.pool(small).free;
    for (auto at = free.begin(); at != free.end();) {
      // Goes to the next stream; the block before that is the largest of this stream.
      at = free.upper_bound({at->stream, kMax, 0, 0});
      refusal.largest_free = std::max(refusal.largest_free, std::prev(at)->bytes);
    }
  }
  return refusal;
}

/// Serves a request beyond the limit. Does nothing if no address space is large enough.
void CachingAllocator::Impl::serve_beyond(const CacheRequest& request) {
  limit = allowed = kOneExabyte;
  serve(request);
  limit = rules.limit();
  allowed = rules.allowed();
}

void CachingAllocator::Impl::free(std::int64_t handle, Nanoseconds now) {
  const auto found = handles.find(handle);
  if (found == handles.end()) return;
  const std::uint32_t block = found->second;
  handles.erase(found);
  table.add(&AllocatorLevels::allocated, -table[block].bytes);
  if (!table[block].is_recorded) return release(block);
  // The block stays in place until a later request finds that the other streams are done.
  table[block].use = BlockUse::pending;
  pending.push({std::max(table[block].busy_until, now), block});
}

void CachingAllocator::Impl::release(std::uint32_t block) {
  table.add(&AllocatorLevels::active, -table[block].bytes);
  table.add(&AllocatorLevels::requested, -table[block].requested);
  table[block].use = BlockUse::free;
  table.put_free(table.join(block));
}

void CachingAllocator::Impl::finish_pending(Nanoseconds now) {
  while (!pending.empty() && pending.top().until <= now) {
    const std::uint32_t block = pending.top().block;
    pending.pop();
    release(block);
  }
}

CachingAllocator::CachingAllocator(const AllocatorSettings& settings)
    : impl_(std::make_unique<Impl>(settings)) {}
CachingAllocator::CachingAllocator(CachingAllocator&&) noexcept = default;
CachingAllocator& CachingAllocator::operator=(CachingAllocator&&) noexcept = default;
CachingAllocator::~CachingAllocator() = default;

std::optional<OutOfMemory> CachingAllocator::malloc(std::int64_t handle, Bytes bytes,
                                                    std::int64_t stream, Nanoseconds now) {
  CHECK(!holds(handle));
  impl_->finish_pending(now);
  if (bytes.count <= 0) return {};
  const CacheRequest request = impl_->request_for(handle, bytes.count, stream);
  if (impl_->serve(request)) return {};
  return impl_->refusal_of(request);
}

std::optional<OutOfMemory> CachingAllocator::malloc_beyond(std::int64_t handle, Bytes bytes,
                                                           std::int64_t stream, Nanoseconds now) {
  const std::optional<OutOfMemory> refusal = malloc(handle, bytes, stream, now);
  if (refusal) impl_->serve_beyond(impl_->request_for(handle, bytes.count, stream));
  return refusal;
}

void CachingAllocator::free(std::int64_t handle, Nanoseconds now) { impl_->free(handle, now); }

void CachingAllocator::record_stream(std::int64_t handle, std::int64_t stream, Nanoseconds done) {
  const auto found = impl_->handles.find(handle);
  if (found == impl_->handles.end()) return;
  if (stream == impl_->table.segment_of(found->second).stream) return;
  CacheBlock& block = impl_->table[found->second];
  block.is_recorded = true;
  block.busy_until = std::max(block.busy_until, done);
}

void CachingAllocator::empty_cache() { impl_->release_all(); }

void CachingAllocator::adopt(const AllocatorSegment& segment) { impl_->adopt(segment); }

void CachingAllocator::place_next_segment(std::uint64_t address) { impl_->next_address = address; }

bool CachingAllocator::holds(std::int64_t handle) const { return impl_->handles.contains(handle); }

std::uint64_t CachingAllocator::address(std::int64_t handle) const {
  const auto found = impl_->handles.find(handle);
  return found == impl_->handles.end() ? 0 : impl_->table[found->second].address;
}

const AllocatorLevels& CachingAllocator::levels() const { return impl_->table.levels(); }
const AllocatorLevels& CachingAllocator::peaks() const { return impl_->table.peaks(); }
std::int64_t CachingAllocator::driver_mallocs() const { return impl_->driver_mallocs; }
std::int64_t CachingAllocator::driver_frees() const { return impl_->driver_frees; }
std::int64_t CachingAllocator::retries() const { return impl_->retries; }

std::vector<AllocatorSegment> CachingAllocator::segments() const {
  std::vector<AllocatorSegment> all;
  const BlockTable& table = impl_->table;
  for (const CacheSegment& segment : table.segments()) {
    if (segment.is_removed) continue;
    bool is_open = false;
    for (std::uint32_t at = segment.first; at != kNoBlock; at = table[at].next) {
      const CacheBlock& block = table[at];
      if (block.use == BlockUse::unmapped) {
        is_open = false;
        continue;
      }
      if (!is_open) {
        all.push_back(
            {block.address, 0, segment.stream, segment.is_small, segment.is_expandable, {}});
        is_open = true;
      }
      all.back().bytes += block.bytes;
      all.back().blocks.push_back({block.address, block.bytes, block.requested, block.handle,
                                   block.use == BlockUse::pending});
    }
  }
  return all;
}

}  // namespace foretrace

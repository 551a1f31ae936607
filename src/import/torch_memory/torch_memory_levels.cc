// Computes the allocated and reserved bytes after each event of a history.
//
// Events have the requested sizes, but the allocator counts blocks: it rounds sizes, and if
// splitting a free block would leave a useless rest, it hands out the whole block. So this replay
// tracks the free blocks of each segment through the history and gives each request a block by the
// allocator's rules (native back end):
//
//     round   to 512 bytes, or to a division between powers of two if that is set
//     split   up to 1 MiB: if 512 bytes are left; above: if more than 1 MiB is left and the request
//             is below max_split_size
//     merge   a freed block with free neighbours in its segment
//
// In expandable segments any rest of 512 bytes is split off, so only rounding matters there.
//
// The state before the first event follows from the state at the end: a block or segment existed
// from the beginning if no event mentions its address, or if the first event that does frees it.
// compare() checks the blocks at the end of the history against those of the snapshot.

#include <algorithm>
#include <bit>
#include <map>

#include "import/torch_memory/torch_memory.h"

namespace foretrace {

namespace {

constexpr std::int64_t kSmallestBlock = 512;
constexpr std::int64_t kLargestSmall = std::int64_t{1} << 20;
constexpr unsigned kFirstDivision = 20;  ///< Exponent of the size that divisions[0] is for.

/// A block of a segment, used or free.
struct PoolBlock {
  std::int64_t bytes = 0;
  std::size_t segment = 0;
  bool used = false;
};

using PoolBlocks = std::map<std::uint64_t, PoolBlock>;

std::uint64_t end_of(PoolBlocks::const_iterator block) {
  return block->first + static_cast<std::uint64_t>(block->second.bytes);
}

class AllocatorReplay {
 public:
  AllocatorReplay(const DeviceHistory& history, const AllocatorRules& rules, Trace& trace)
      : history_(history), rules_(rules), trace_(trace) {}

  HistoryFit run() {
    choose_free_events();
    restore_segments();
    restore_blocks();
    fit_.start_allocated = allocated_;
    fit_.start_reserved = reserved_;
    for (std::size_t i = history_.first; i < history_.last; ++i) {
      MemoryRecord& record = trace_.memory[i];
      apply(record);
      record.total_allocated = allocated_;
      if (record.action != MemoryAction::out_of_memory) record.total_reserved = reserved_;
    }
    compare();
    return fit_;
  }

 private:
  template <class Visit>
  void each_event(Visit&& visit) const {
    for (std::size_t i = history_.first; i < history_.last; ++i) visit(trace_.memory[i]);
  }

  /// Decides which events free memory. PyTorch can be set to skip some actions in the history: if
  /// no event completes a free, the requests count instead.
  void choose_free_events() {
    bool completed = false, requested = false;
    each_event([&](const MemoryRecord& record) {
      completed |= record.action == MemoryAction::block && record.bytes < 0;
      requested |= record.action == MemoryAction::free_requested;
    });
    requests_complete_ = requested && !completed;
  }
  bool is_alloc(const MemoryRecord& record) const {
    return record.action == MemoryAction::block && record.bytes >= 0;
  }
  bool is_free(const MemoryRecord& record) const {
    return (record.action == MemoryAction::block && record.bytes < 0) ||
           (requests_complete_ && record.action == MemoryAction::free_requested);
  }

  void restore_segments();
  void restore_blocks();
  void apply(const MemoryRecord& record);
  void add_segment(std::uint64_t address, std::int64_t bytes);
  void remove_segment(std::uint64_t address, std::int64_t bytes);
  void occupy(std::uint64_t address, std::int64_t charge);
  std::int64_t take_block(std::uint64_t address, std::int64_t requested_bytes);
  void allocate(const MemoryRecord& record);
  void release(const MemoryRecord& record);
  void merge(PoolBlocks::iterator block);
  PoolBlocks::iterator pool_block_at(std::uint64_t address);
  void compare();

  const DeviceHistory& history_;
  const AllocatorRules& rules_;
  Trace& trace_;
  PoolBlocks pool_;
  std::map<std::uint64_t, std::int64_t> live_;  ///< Address -> counted size of each block in use.
  std::size_t segments_ = 0;
  std::int64_t allocated_ = 0, reserved_ = 0;
  bool requests_complete_ = false;
  HistoryFit fit_;
};

void AllocatorReplay::add_segment(std::uint64_t address, std::int64_t bytes) {
  reserved_ += bytes;
  const auto [block, is_new] = pool_.try_emplace(address, PoolBlock{bytes, segments_++, false});
  if (!is_new) ++fit_.entries_missing;
}

void AllocatorReplay::remove_segment(std::uint64_t address, std::int64_t bytes) {
  reserved_ -= bytes;
  const auto found = pool_.find(address);
  if (found == pool_.end()) return;
  const std::size_t segment = found->second.segment;
  auto end = found;
  while (end != pool_.end() && end->second.segment == segment) ++end;
  pool_.erase(found, end);
}

/// Restores the segments that existed before the first event: those that no event mentions, and
/// those whose first event frees them.
void AllocatorReplay::restore_segments() {
  std::map<std::uint64_t, bool> mentioned;
  std::int64_t mapped = 0;
  each_event([&](const MemoryRecord& record) {
    const bool is_mapping =
        record.action == MemoryAction::segment_map || record.action == MemoryAction::segment_unmap;
    if (is_mapping) mapped += record.bytes;
    const bool frees = record.action == MemoryAction::segment_free;
    if (!frees && record.action != MemoryAction::segment_alloc) return;
    const bool is_first = mentioned.try_emplace(record.address, true).second;
    if (is_first && frees) add_segment(record.address, -record.bytes);
  });
  std::int64_t expandable = 0;
  for (const MemorySegment& segment : trace_.segments) {
    if (segment.device != history_.device) continue;
    if (segment.is_expandable) {
      expandable += segment.bytes;
    } else if (!mentioned.contains(segment.address)) {
      add_segment(segment.address, segment.bytes);
    }
  }
  if (expandable < mapped) ++fit_.entries_missing;
  reserved_ += std::max<std::int64_t>(expandable - mapped, 0);
}

void AllocatorReplay::restore_blocks() {
  std::map<std::uint64_t, bool> mentioned;
  each_event([&](const MemoryRecord& record) {
    const bool frees = is_free(record);
    if (!frees && !is_alloc(record)) return;
    if (mentioned.try_emplace(record.address, true).second && frees)
      occupy(record.address, rules_.rounded(-record.bytes));
  });
  for (const MemoryBlock& block : trace_.blocks) {
    if (trace_.segments[block.segment].device != history_.device) continue;
    if (block.state == BlockState::inactive || mentioned.contains(block.address)) continue;
    occupy(block.address, block.bytes);
  }
}

PoolBlocks::iterator AllocatorReplay::pool_block_at(std::uint64_t address) {
  auto block = pool_.upper_bound(address);
  if (block == pool_.begin()) return pool_.end();
  --block;
  return address < end_of(block) ? block : pool_.end();
}

/// Restores a block that was in use before the first event, by splitting the free block around it.
void AllocatorReplay::occupy(std::uint64_t address, std::int64_t charge) {
  live_[address] = charge;
  allocated_ += charge;
  auto block = pool_block_at(address);
  if (block == pool_.end() || block->second.used) return;
  const auto lead = static_cast<std::int64_t>(address - block->first);
  const std::int64_t rest = block->second.bytes - lead - charge;
  if (rest < 0) return;
  const std::size_t segment = block->second.segment;
  if (lead > 0) block->second.bytes = lead;
  pool_[address] = {charge, segment, true};
  if (rest > 0) pool_[address + static_cast<std::uint64_t>(charge)] = {rest, segment, false};
}

void AllocatorReplay::apply(const MemoryRecord& record) {
  switch (record.action) {
    case MemoryAction::segment_alloc:
      return add_segment(record.address, record.bytes);
    case MemoryAction::segment_free:
      return remove_segment(record.address, -record.bytes);
    case MemoryAction::segment_map:
    case MemoryAction::segment_unmap:
      reserved_ += record.bytes;
      return;
    default:
      if (is_alloc(record)) allocate(record);
      if (is_free(record)) release(record);
  }
}

/// Marks the block for a request as used, splitting it if the rules say so. Returns its size.
std::int64_t AllocatorReplay::take_block(std::uint64_t address, std::int64_t requested_bytes) {
  const std::int64_t size = rules_.rounded(requested_bytes);
  auto block = pool_block_at(address);
  if (block == pool_.end()) return size;
  if (block->second.used) return ++fit_.entries_missing, size;
  if (block->first != address) {
    // Memory that was free before the first event may have consisted of several blocks.
    const auto lead = static_cast<std::int64_t>(address - block->first);
    const PoolBlock upper_part{block->second.bytes - lead, block->second.segment, false};
    block->second.bytes = lead;
    block = pool_.emplace(address, upper_part).first;
  }
  const std::int64_t rest = block->second.bytes - size;
  if (rest < 0) return ++fit_.entries_missing, size;
  block->second.used = true;
  if (!rules_.splits(size, rest)) return block->second.bytes;
  pool_[address + static_cast<std::uint64_t>(size)] = {rest, block->second.segment, false};
  block->second.bytes = size;
  return size;
}

void AllocatorReplay::allocate(const MemoryRecord& record) {
  const auto before = live_.find(record.address);
  if (before != live_.end()) {
    // The history lacks the event that freed the block at this address.
    ++fit_.entries_missing;
    allocated_ -= before->second;
    live_.erase(before);
    const auto block = pool_.find(record.address);
    if (block != pool_.end()) merge(block);
  }
  const std::int64_t charge = take_block(record.address, record.bytes);
  live_[record.address] = charge;
  allocated_ += charge;
}

void AllocatorReplay::release(const MemoryRecord& record) {
  const auto live = live_.find(record.address);
  if (live == live_.end()) {
    ++fit_.entries_missing;
    return;
  }
  allocated_ -= live->second;
  live_.erase(live);
  const auto block = pool_.find(record.address);
  if (block != pool_.end()) merge(block);
}

void AllocatorReplay::merge(PoolBlocks::iterator block) {
  block->second.used = false;
  const auto joins = [](PoolBlocks::iterator a, PoolBlocks::iterator b) {
    return a->second.segment == b->second.segment && !a->second.used && !b->second.used &&
           end_of(a) == b->first;
  };
  const auto next = std::next(block);
  if (next != pool_.end() && joins(block, next)) {
    block->second.bytes += next->second.bytes;
    pool_.erase(next);
  }
  if (block == pool_.begin()) return;
  const auto previous = std::prev(block);
  if (!joins(previous, block)) return;
  previous->second.bytes += block->second.bytes;
  pool_.erase(block);
}

/// Compares the blocks in use with those of the snapshot, by address, because the size of a block
/// that was never freed may be unknown.
void AllocatorReplay::compare() {
  std::map<std::uint64_t, std::int64_t> gone = live_;
  bool has_segments = false;
  for (const MemorySegment& segment : trace_.segments)
    has_segments |= segment.device == history_.device;
  for (const MemoryBlock& block : trace_.blocks) {
    if (trace_.segments[block.segment].device != history_.device) continue;
    if (block.state == BlockState::inactive) continue;
    const auto found = live_.find(block.address);
    if (found == live_.end()) {
      fit_.mismatched_bytes += block.bytes;
      continue;
    }
    if (found->second != block.bytes) ++fit_.other_sizes;
    gone.erase(block.address);
  }
  // Without segments there is no state to compare with.
  if (!has_segments) return;
  for (const auto& [address, bytes] : gone) fit_.mismatched_bytes += bytes;
}

/// The divisions for a size; 0 if none are set. The index is the base-2 logarithm of the size,
/// clamped to the range of the settings.
std::int64_t divisions_of(const std::vector<std::int64_t>& divisions, std::int64_t bytes) {
  if (divisions.empty()) return 0;
  const auto power =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  const std::size_t at = power < kFirstDivision ? 0 : power - kFirstDivision;
  return divisions[std::min(at, divisions.size() - 1)];
}

}  // namespace

std::int64_t AllocatorRules::rounded(std::int64_t bytes) const {
  if (bytes < kSmallestBlock) return kSmallestBlock;
  const std::int64_t parts = divisions_of(divisions, bytes);
  if (parts > 1 && bytes > kSmallestBlock * parts) {
    const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
    const std::int64_t part = std::max<std::int64_t>(below / parts, 1);
    return (bytes + part - 1) / part * part;
  }
  return (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock;
}

bool AllocatorRules::splits(std::int64_t bytes, std::int64_t rest) const {
  if (bytes <= kLargestSmall) return rest >= kSmallestBlock;
  const bool may_split = max_split_bytes < 0 || bytes < max_split_bytes;
  return may_split && rest > kLargestSmall;
}

AllocatorRules read_rules(const PlainData& data, PlainValue settings) {
  AllocatorRules rules;
  rules.max_split_bytes = data.integer(data.find(settings, "max_split_size")).value_or(-1);
  const PlainValue divisions = data.find(settings, "roundup_power2_divisions");
  if (const auto all = data.integer(divisions)) rules.divisions = {*all};
  // The keys of the dict are the sizes in MiB from which a setting applies.
  for (std::int64_t size = 1; divisions.is_dict() && size <= (1 << 15); size *= 2) {
    const auto parts = data.integer(data.find(divisions, std::to_string(size)));
    if (!parts) break;
    rules.divisions.push_back(*parts);
  }
  return rules;
}

HistoryFit fill_levels(const DeviceHistory& history, const AllocatorRules& rules, Trace& trace) {
  return AllocatorReplay(history, rules, trace).run();
}

}  // namespace foretrace

#include "analysis/memory/memory_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace foretrace {
namespace {

constexpr std::uint64_t kSegmentGrain = std::uint64_t{2} << 20;
constexpr std::int64_t kMaxSegment = std::int64_t{1} << 50;
constexpr std::uint64_t kMaxAddress = std::uint64_t{1} << 62;
constexpr std::int64_t kLargestSmallBlock = std::int64_t{1} << 20;

struct AddressRange {
  std::uint64_t begin = 0, end = 0;
};

/// A set of address ranges [begin, end); ranges that touch are joined.
class AddressRanges {
 public:
  void add(AddressRange range) {
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin() && std::prev(at)->second >= range.begin) --at;
    while (at != ranges_.end() && at->first <= range.end) {
      range.begin = std::min(range.begin, at->first);
      range.end = std::max(range.end, at->second);
      at = ranges_.erase(at);
    }
    ranges_[range.begin] = range.end;
  }
  void remove(AddressRange range) {
    auto at = ranges_.upper_bound(range.begin);
    if (at != ranges_.begin()) --at;
    while (at != ranges_.end() && at->first < range.end) {
      const AddressRange old{at->first, at->second};
      if (old.end <= range.begin) {
        ++at;
        continue;
      }
      at = ranges_.erase(at);
      if (old.begin < range.begin) ranges_[old.begin] = range.begin;
      if (range.end < old.end) at = ranges_.emplace(range.end, old.end).first;
    }
  }
  bool has(std::uint64_t address) const {
    const auto at = ranges_.upper_bound(address);
    return at != ranges_.begin() && address < std::prev(at)->second;
  }
  auto begin() const { return ranges_.begin(); }
  auto end() const { return ranges_.end(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;
};

AddressRange range_of(std::uint64_t address, std::int64_t bytes) {
  return {address, address + static_cast<std::uint64_t>(std::abs(bytes))};
}

/// Derives segments from the addresses of blocks.
class TouchedLayout {
 public:
  explicit TouchedLayout(const RecordedMemory& memory)
      : memory_(memory), early_(blocks_from_before(memory)) {
    collect_touched();
    find_cuts();
  }

  std::vector<AllocatorSegment> segments() {
    std::vector<AllocatorSegment> found;
    for (const bool small : {true, false}) {
      for (const auto& [begin, end] : touched_[small ? 0 : 1]) add(begin, end, small, found);
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tie(a.address, a.bytes) < std::tie(b.address, b.bytes);
    });
    place_early_blocks(found);
    extend(found);
    add_untouched(found);
    return found;
  }

 private:
  static bool is_small(std::int64_t bytes) { return std::abs(bytes) <= kLargestSmallBlock; }

  void touch(std::uint64_t address, std::int64_t bytes) {
    touched_[is_small(bytes) ? 0 : 1].add(range_of(address, bytes));
  }

  /// Collects the addresses that blocks touch, except in segments that were allocated during the
  /// recording.
  void collect_touched() {
    for (const EarlyBlock& block : early_) touch(block.address, block.bytes);
    AddressRanges fresh;
    std::int64_t reserved = memory_.reserved;
    for (const MemoryRecord* record : memory_.records) {
      const std::int64_t growth = record->total_reserved - reserved;
      if (record->total_reserved >= 0) reserved = record->total_reserved;
      if (!memory_.makes(*record)) continue;
      if (growth > 0) fresh.add(range_of(record->address, std::max(growth, record->bytes)));
      if (fresh.has(record->address)) continue;
      touch(record->address, record->bytes);
      old_.push_back(record);
    }
  }

  void find_cuts() {
    AddressRanges used;
    std::set<const MemoryRecord*> old(old_.begin(), old_.end());
    for (const EarlyBlock& block : early_) used.add(range_of(block.address, block.bytes));
    for (const MemoryRecord* record : memory_.records) {
      if (memory_.frees(*record)) used.remove(range_of(record->address, record->bytes));
      if (!memory_.makes(*record)) continue;
      if (old.contains(record) && !used.has(record->address - 1)) cuts_.insert(record->address);
      used.add(range_of(record->address, record->bytes));
    }
    for (const EarlyBlock& block : early_) remove_cuts_inside(range_of(block.address, block.bytes));
    for (const MemoryRecord* record : old_)
      remove_cuts_inside(range_of(record->address, record->bytes));
  }

  /// Removes cuts inside a block, because no block lies in two segments.
  void remove_cuts_inside(AddressRange block) {
    cuts_.erase(cuts_.upper_bound(block.begin), cuts_.lower_bound(block.end));
  }

  void add(std::uint64_t begin, std::uint64_t end, bool small,
           std::vector<AllocatorSegment>& found) const {
    while (begin < end) {
      std::uint64_t to = end;
      const auto cut = cuts_.upper_bound(begin);
      if (cut != cuts_.end()) to = std::min(to, *cut);
      if (small) to = std::min(to, begin / kSegmentGrain * kSegmentGrain + kSegmentGrain);
      AllocatorSegment segment;
      segment.address = begin;
      segment.bytes = static_cast<std::int64_t>(to - begin);
      segment.stream = stream_of(kNone);
      segment.is_small = small;
      found.push_back(segment);
      begin = to;
    }
  }

  void place_early_blocks(std::vector<AllocatorSegment>& found) const {
    for (std::size_t i = 0; i < early_.size(); ++i) {
      const EarlyBlock& block = early_[i];
      for (auto at = std::upper_bound(
               found.begin(), found.end(), block.address,
               [](std::uint64_t address, const auto&segment) { return address < segment.address; });
           at != found.begin();) {
        --at;
        if (at->is_small != is_small(block.bytes)) continue;
        if (block.address + static_cast<std::uint64_t>(block.bytes) <=
            at->address + static_cast<std::uint64_t>(at->bytes)) {
          at->blocks.push_back(
              {block.address, block.bytes, block.bytes, static_cast<std::int64_t>(i), false});
        }
        break;
      }
    }
    for (AllocatorSegment& segment : found) {
      std::sort(segment.blocks.begin(), segment.blocks.end(),
                [](const auto& a, const auto& b) { return a.address < b.address; });
    }
  }

  /// Extends large segments to the next multiple of 2 MiB, where segments end. The extra bytes show
  /// that the last block was split off something larger.
  void extend(std::vector<AllocatorSegment>& found) const {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].is_small) continue;
      const std::uint64_t end = found[i].address + static_cast<std::uint64_t>(found[i].bytes);
      std::uint64_t to = (end + kSegmentGrain - 1) / kSegmentGrain * kSegmentGrain;
      if (i + 1 < found.size()) to = std::min(to, std::max(found[i + 1].address, end));
      found[i].bytes += static_cast<std::int64_t>(to - end);
    }
  }

  void add_untouched(std::vector<AllocatorSegment>& found) const {
    std::int64_t allocated = memory_.allocated, reserved = memory_.reserved;
    for (const AllocatorSegment& segment : found) {
      reserved -= segment.bytes;
      for (const AllocatorBlock& block : segment.blocks) allocated -= block.bytes;
    }
    allocated = std::max<std::int64_t>(allocated, 0);
    AllocatorSegment rest;
    rest.address = std::uint64_t{1} << 62;
    rest.bytes = std::max(reserved, allocated);
    rest.stream = kUnusedStream;
    if (allocated > 0) {
      rest.blocks.push_back({rest.address, allocated, allocated, kFirstOtherHandle, false});
    }
    found.push_back(rest);
  }

  const RecordedMemory& memory_;
  std::vector<EarlyBlock> early_;
  AddressRanges touched_[2];  ///< Small blocks, then large ones.
  std::vector<const MemoryRecord*> old_;
  std::set<std::uint64_t> cuts_;
};

/// Undoes the events of a history, from the state at its end.
class SnapshotLayout {
 public:
  SnapshotLayout(const Trace& trace, const RecordedMemory& memory) : memory_(memory) {
    for (std::size_t i = 0; i < trace.segments.size(); ++i) {
      const MemorySegment& segment = trace.segments[i];
      if (segment.device != memory.device || segment.bytes <= 0) continue;
      if (segment.bytes > kMaxSegment || segment.address >= kMaxAddress) continue;
      segments_[segment.address] = {.address = segment.address,
                                    .bytes = segment.bytes,
                                    .stream = stream_of(segment.stream),
                                    .is_small = !segment.is_large,
                                    .is_expandable = segment.is_expandable,
                                    .blocks = {}};
    }
    for (const MemoryBlock& block : trace.blocks) {
      if (block.segment >= trace.segments.size()) continue;
      if (trace.segments[block.segment].device != memory.device) continue;
      if (block.state == BlockState::inactive || block.bytes <= 0) continue;
      if (block.bytes > kMaxSegment || block.address >= kMaxAddress) continue;
      blocks_[block.address] = {block.address, block.bytes, block.requested_bytes, 0, false};
    }
  }

  std::vector<AllocatorSegment> segments() {
    for (auto at = memory_.records.rbegin(); at != memory_.records.rend(); ++at) undo(**at);
    number_blocks();
    std::vector<AllocatorSegment> all;
    for (auto& [address, segment] : segments_) {
      place_blocks(segment);
      all.push_back(std::move(segment));
    }
    return all;
  }

 private:
  void undo(const MemoryRecord& record) {
    if (memory_.makes(record)) blocks_.erase(record.address);
    if (memory_.frees(record)) {
      const std::int64_t bytes = std::abs(record.bytes);
      blocks_[record.address] = {record.address, block_size(Bytes{bytes}, memory_.settings).count,
                                 bytes, 0, false};
    }
    switch (record.action) {
      case MemoryAction::segment_alloc:
        segments_.erase(record.address);
        return;
      case MemoryAction::segment_map:
        return unmap(record);
      case MemoryAction::segment_free:
      case MemoryAction::segment_unmap:
        if (record.bytes == 0) return;
        segments_[record.address] = {
            .address = record.address,
            .bytes = std::abs(record.bytes),
            .stream = stream_of(record.stream),
            .is_small = std::abs(record.bytes) <= static_cast<std::int64_t>(kSegmentGrain),
            .is_expandable = record.action == MemoryAction::segment_unmap,
            .blocks = {}};
        return;
      default:
        return;
    }
  }

  /// Cuts the pages that were mapped out of the segment that they became part of.
  void unmap(const MemoryRecord& record) {
    const AddressRange pages = range_of(record.address, record.bytes);
    auto at = segments_.upper_bound(record.address);
    if (at == segments_.begin()) return;
    --at;
    AllocatorSegment front = at->second;
    const std::uint64_t end = front.address + static_cast<std::uint64_t>(front.bytes);
    if (pages.end > end || pages.begin < front.address) return;
    segments_.erase(at);
    AllocatorSegment behind = front;
    front.bytes = static_cast<std::int64_t>(pages.begin - front.address);
    behind.address = pages.end;
    behind.bytes = static_cast<std::int64_t>(end - pages.end);
    if (front.bytes > 0) segments_[front.address] = front;
    if (behind.bytes > 0) segments_[behind.address] = behind;
  }

  void number_blocks() {
    std::unordered_map<std::uint64_t, std::int64_t> numbers;
    const std::vector<EarlyBlock> early = blocks_from_before(memory_);
    for (std::size_t i = 0; i < early.size(); ++i) {
      numbers.emplace(early[i].address, static_cast<std::int64_t>(i));
    }
    std::int64_t next = kFirstOtherHandle;
    for (auto& [address, block] : blocks_) {
      const auto found = numbers.find(address);
      block.handle = found != numbers.end() ? found->second : next++;
    }
  }

  void place_blocks(AllocatorSegment& segment) const {
    const std::uint64_t end = segment.address + static_cast<std::uint64_t>(segment.bytes);
    std::uint64_t free_from = segment.address;
    for (auto at = blocks_.lower_bound(segment.address); at != blocks_.end() && at->first < end;
         ++at) {
      const std::uint64_t block_end = at->first + static_cast<std::uint64_t>(at->second.bytes);
      if (at->first < free_from || block_end > end) continue;
      segment.blocks.push_back(at->second);
      free_from = block_end;
    }
  }

  const RecordedMemory& memory_;
  std::map<std::uint64_t, AllocatorSegment> segments_;
  std::map<std::uint64_t, AllocatorBlock> blocks_;
};

}  // namespace

std::vector<EarlyBlock> blocks_from_before(const RecordedMemory& memory) {
  std::vector<EarlyBlock> found;
  std::unordered_set<std::uint64_t> touched;
  for (const MemoryRecord* record : memory.records) {
    const bool frees = memory.frees(*record);
    if (!frees && !memory.makes(*record)) continue;
    if (touched.insert(record->address).second && frees) {
      found.push_back({record->address, std::abs(record->bytes), record->stream});
    }
  }
  return found;
}

std::vector<AllocatorSegment> layout_before(const Trace& trace, const RecordedMemory& memory) {
  if (memory.is_snapshot) return SnapshotLayout(trace, memory).segments();
  return TouchedLayout(memory).segments();
}

}  // namespace foretrace

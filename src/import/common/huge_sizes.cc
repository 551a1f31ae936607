#include "import/common/huge_sizes.h"

#include <algorithm>
#include <limits>

namespace foretrace {

namespace {

constexpr std::int64_t kMaxInOneBlock = std::int64_t{1} << 46;
constexpr std::int64_t kMaxInAllBlocks = std::int64_t{1} << 56;

bool fits(std::int64_t bytes) { return bytes >= -kMaxInOneBlock && bytes <= kMaxInOneBlock; }

std::int64_t left_out_events(Trace& trace) {
  PlausibleSizes sizes;
  return static_cast<std::int64_t>(std::erase_if(
      trace.memory, [&](const MemoryRecord& record) { return !sizes.accept(record.bytes); }));
}

/// Treats impossible totals as missing (-1).
std::int64_t forget_totals(Trace& trace) {
  std::int64_t forgotten = 0;
  for (MemoryRecord& record : trace.memory) {
    for (std::int64_t* const total : {&record.total_allocated, &record.total_reserved}) {
      if (fits(*total)) continue;
      *total = -1;
      ++forgotten;
    }
  }
  return forgotten;
}

bool is_believable(std::uint64_t address, std::int64_t bytes, PlausibleSizes& sizes) {
  const std::uint64_t room = std::numeric_limits<std::uint64_t>::max() - address;
  return bytes >= 0 && static_cast<std::uint64_t>(bytes) <= room && sizes.accept(bytes);
}

/// Removes all segments and blocks if one of them has an impossible size: blocks must cover their
/// segments, so removing single ones would leave gaps. Returns the number of removed segments.
std::int64_t left_out_segments(Trace& trace) {
  PlausibleSizes sizes;
  const bool believable =
      std::all_of(trace.segments.begin(), trace.segments.end(),
                  [&](const MemorySegment& segment) {
                    return is_believable(segment.address, segment.bytes, sizes);
                  }) &&
      std::all_of(trace.blocks.begin(), trace.blocks.end(), [&](const MemoryBlock& block) {
        return is_believable(block.address, block.bytes, sizes) &&
               sizes.accept(block.requested_bytes);
      });
  if (believable) return 0;
  const std::int64_t count = std::ssize(trace.segments);
  trace.segments.clear();
  trace.blocks.clear();
  return count;
}

/// Clears impossible sizes of copies, tensors, collectives and devices; keeps the records.
std::int64_t forget_sizes(Trace& trace) {
  PlausibleSizes copied, accessed;
  std::int64_t forgotten = 0;
  for (DeviceRecord& record : trace.devices) {
    if (copied.accept(record.bytes)) continue;
    record.bytes = 0;
    ++forgotten;
  }
  for (TensorRecord& record : trace.tensors) {
    if (fits(record.offset_bytes) && accessed.accept(record.bytes)) continue;
    record.bytes = record.offset_bytes = 0;
    ++forgotten;
  }
  for (CollectiveDetails& record : trace.collectives) {
    for (std::int64_t* const elements : {&record.in_elements, &record.out_elements}) {
      if (fits(*elements)) continue;
      *elements = 0;
      ++forgotten;
    }
  }
  for (Device& device : trace.properties) {
    if (!fits(device.memory_bytes)) device.memory_bytes = 0;
  }
  return forgotten;
}

}  // namespace

bool PlausibleSizes::accept(std::int64_t bytes) {
  if (!fits(bytes)) return false;
  const std::int64_t size = bytes < 0 ? -bytes : bytes;
  if (size > kMaxInAllBlocks - sum_) return false;
  sum_ += size;
  return true;
}

void leave_out_huge_sizes(Trace& trace) {
  const auto note = [&](const char* text, std::int64_t count) {
    if (count > 0) trace.notes.add(Severity::warning, text, {}, count);
  };
  note("memory events of impossible sizes, left out", left_out_events(trace));
  note("memory totals of impossible size, left out", forget_totals(trace));
  note("memory segments of impossible size or with such blocks, left out",
       left_out_segments(trace));
  note("copies, tensors or collectives of impossible sizes, read as unknown", forget_sizes(trace));
}

}  // namespace foretrace

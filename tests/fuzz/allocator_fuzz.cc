// Any text as a program for the allocator: it is run, or refused with an Error. After a program
// every byte of the segments is accounted for.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "foretrace/allocator.h"
#include "foretrace/error.h"

namespace {

using namespace foretrace;

void require(bool holds) {
  if (!holds) std::abort();
}

AllocatorLevels levels_of(const AllocatorOutcome& outcome) {
  AllocatorLevels levels;
  for (const AllocatorSegment& segment : outcome.segments) {
    levels.reserved += segment.bytes;
    std::uint64_t at = segment.address;
    for (const AllocatorBlock& block : segment.blocks) {
      require(block.address == at && block.bytes > 0);
      at += static_cast<std::uint64_t>(block.bytes);
      if (block.handle < 0) {
        if (segment.blocks.size() > 1 && !segment.is_expandable)
          levels.inactive_split += block.bytes;
        continue;
      }
      levels.active += block.bytes;
      levels.requested += block.requested;
      if (!block.pending) levels.allocated += block.bytes;
    }
    require(at == segment.address + static_cast<std::uint64_t>(segment.bytes));
  }
  return levels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const AllocatorProgram program =
        parse_allocator_program({reinterpret_cast<const char*>(data), size});
    const AllocatorOutcome outcome = run_allocator_program(program);
    require(levels_of(outcome) == outcome.levels);
    require(outcome.levels.active >= outcome.levels.requested);
    require(outcome.levels.reserved <= outcome.peaks.reserved);
    const std::int64_t limit = program.settings.limit.count;
    require(limit == 0 || outcome.peaks.reserved <= limit);
  } catch (const Error&) {
  }
  try {
    AllocatorSettings settings;
    read_alloc_conf({reinterpret_cast<const char*>(data), size}, settings);
  } catch (const Error&) {
  }
  return 0;
}

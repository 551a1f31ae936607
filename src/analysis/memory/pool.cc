// Describes the memory that the blocks of the step with the peak would take if an allocator knew
// the future and planned their addresses ahead. Lifetimes are measured in events, so that blocks
// that are made and freed at the same time get an address, too.

#include <algorithm>

#include "allocator/block_pool.h"
#include "analysis/memory/blocks.h"

namespace foretrace {
namespace {

/// Most blocks that are planned. The time of a plan grows with the number of blocks and with how
/// many of them live at the same time.
constexpr std::size_t kMaxPlanned = 8'000;

struct EventRange {
  std::int64_t first = 0, end = 0;
  std::string step;
};

EventRange planned_events(const DeviceMemory& memory, const MemoryReport& report) {
  Nanoseconds from = memory.from, to = memory.to;
  std::string step = report.step;
  const Nanoseconds peak = report.peak_moment.time;
  for (const auto& span : memory.steps) {
    if (!step.empty() || peak < span.begin || peak >= span.end) continue;
    from = span.begin, to = span.end;
    step = memory.graph.steps()[static_cast<std::size_t>(span.step)].name;
  }
  const auto number = [&](Nanoseconds time) {
    const auto at =
        std::partition_point(memory.events.begin(), memory.events.end(),
                             [&](const MemoryEvent& event) { return event.time < time; });
    return static_cast<std::int64_t>(at - memory.events.begin());
  };
  return {number(from), to >= memory.end ? std::ssize(memory.events) : number(to), step};
}

/// Returns the blocks that live in the range of events, with their lifetimes clipped to it.
std::vector<PoolBlock> living_blocks(const DeviceMemory& memory, const EventRange& range) {
  std::vector<std::size_t> block_index(memory.graph.allocations().size());
  std::vector<PoolBlock> blocks;
  for (const TimedBlock& block : memory.blocks) {
    block_index[block.allocation] = blocks.size();
    blocks.push_back({memory.allocation(block.allocation).bytes, range.first - 1, range.end});
  }
  for (std::int64_t i = 0; i < std::ssize(memory.events); ++i) {
    const MemoryEvent& event = memory.events[static_cast<std::size_t>(i)];
    PoolBlock& block = blocks[block_index[event.allocation]];
    (event.frees ? block.freed : block.made) = std::clamp(i, range.first - 1, range.end);
  }
  std::erase_if(blocks, [&](const PoolBlock& block) {
    return block.freed < range.first || block.made >= range.end || block.made >= block.freed;
  });
  return blocks;
}

}  // namespace

void describe_pool(const DeviceMemory& memory, MemoryReport& report) {
  EventRange range = planned_events(memory, report);
  std::vector<PoolBlock> blocks = living_blocks(memory, range);
  PoolSection& pool = report.pool;
  pool.step = std::move(range.step);
  pool.blocks = std::ssize(blocks);
  pool.load = peak_load(blocks) + memory.unnamed;
  if (blocks.size() > kMaxPlanned) {
    std::stable_sort(blocks.begin(), blocks.end(),
                     [](const PoolBlock& a, const PoolBlock& b) { return a.bytes > b.bytes; });
    pool.by_load = std::ssize(blocks) - static_cast<std::int64_t>(kMaxPlanned);
  }
  const auto behind = blocks.end() - static_cast<std::ptrdiff_t>(pool.by_load);
  pool.footprint = memory.unnamed + peak_load(std::vector<PoolBlock>(behind, blocks.end()));
  blocks.erase(behind, blocks.end());
  pool.footprint += plan_pool(blocks).footprint;
}

}  // namespace foretrace

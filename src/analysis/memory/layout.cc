#include "analysis/memory/layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace foretrace {
namespace {

/// An address space without a limit. It knows the free gaps below its top.
class AddressAllocator {
 public:
  std::int64_t allocate(std::int64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      top_ += bytes;
      highest_ = std::max(highest_, top_);
      return top_ - bytes;
    }
    const auto [room, offset] = *fit;
    remove_gap(offset, room);
    if (room > bytes) add_gap(offset + bytes, room - bytes);
    return offset;
  }

  void release(std::int64_t offset, std::int64_t bytes) {
    const auto behind = free_.lower_bound(offset);
    if (behind != free_.end() && behind->first == offset + bytes) {
      bytes += behind->second;
      remove_gap(behind->first, behind->second);
    }
    const auto at = free_.lower_bound(offset);
    if (at != free_.begin()) {
      const auto [before, room] = *std::prev(at);
      if (before + room == offset) {
        remove_gap(before, room);
        offset = before, bytes += room;
      }
    }
    if (offset + bytes == top_) {
      top_ = offset;
    } else {
      add_gap(offset, bytes);
    }
  }

  std::int64_t highest() const { return highest_; }

 private:
  void add_gap(std::int64_t offset, std::int64_t bytes) {
    free_[offset] = bytes;
    by_size_.insert({bytes, offset});
  }

  void remove_gap(std::int64_t offset, std::int64_t bytes) {
    free_.erase(offset);
    by_size_.erase({bytes, offset});
  }

  std::map<std::int64_t, std::int64_t> free_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;
  std::int64_t top_ = 0, highest_ = 0;
};

struct Event {
  Nanoseconds time{0};
  bool makes = false;  ///< Frees come first, so that their room can be used at once.
  Nanoseconds until{0};
  std::size_t block = 0;

  /// The order of events. Of the blocks made at the same time, the longest-lived is placed lowest.
  auto key() const { return std::tuple(time, makes, -until, block); }
};

std::vector<Event> events_of(const std::vector<PlacedBlock>& blocks) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const TimedBlock& block = blocks[i].block;
    // A block that is freed when it is made must still be placed before it is removed.
    const Nanoseconds freed = std::max(block.freed, block.made + 1ns);
    events.push_back({block.made, true, freed, i});
    events.push_back({freed, false, freed, i});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.key() < b.key(); });
  return events;
}

std::vector<MemoryCurve::Point> level_of(const std::vector<TimedBlock>& blocks,
                                         const Graph& graph) {
  std::map<Nanoseconds, std::int64_t> changes;
  for (const TimedBlock& block : blocks) {
    const std::int64_t bytes = graph.allocations()[block.allocation].bytes.count;
    changes[block.made] += bytes;
    changes[block.freed] -= bytes;
  }
  std::vector<MemoryCurve::Point> curve;
  Bytes level{};
  for (const auto& [time, change] : changes) {
    level += Bytes{change};
    curve.push_back({time, level});
  }
  return curve;
}

}  // namespace

MemoryLayout lay_out(const MemoryReport& report, const Graph& graph, std::size_t most_blocks) {
  std::vector<TimedBlock> blocks = report.timed_blocks;
  const auto larger = [&](const TimedBlock& a, const TimedBlock& b) {
    const auto key = [&](const TimedBlock& block) {
      return std::tuple(-graph.allocations()[block.allocation].bytes.count,
                        block.made - block.freed, block.allocation);
    };
    return key(a) < key(b);
  };
  std::sort(blocks.begin(), blocks.end(), larger);
  MemoryLayout layout;
  const std::size_t placed = std::min(blocks.size(), most_blocks);
  for (std::size_t i = 0; i < placed; ++i) layout.blocks.push_back({blocks[i]});
  AddressAllocator addresses;
  for (const Event& event : events_of(layout.blocks)) {
    PlacedBlock& one = layout.blocks[event.block];
    const std::int64_t bytes = graph.allocations()[one.block.allocation].bytes.count;
    if (event.makes) {
      one.offset = addresses.allocate(bytes);
    } else {
      addresses.release(one.offset, bytes);
    }
  }
  layout.height = addresses.highest();
  blocks.erase(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(placed));
  layout.rest = level_of(blocks, graph);
  layout.rest_blocks = std::ssize(blocks);
  return layout;
}

std::vector<MemoryCurve::Point> thinned(const std::vector<MemoryCurve::Point>& curve,
                                        std::size_t most) {
  if (curve.size() <= 2 * most || most == 0) return curve;
  const Nanoseconds from = curve.front().time;
  const Nanoseconds width = (curve.back().time - from) / static_cast<std::int64_t>(most) + 1ns;
  std::vector<MemoryCurve::Point> kept;
  for (std::size_t i = 0; i < curve.size();) {
    const auto interval = (curve[i].time - from) / width;
    std::size_t highest = i, last = i;
    for (; i < curve.size() && (curve[i].time - from) / width == interval; last = i++) {
      if (curve[i].allocated > curve[highest].allocated) highest = i;
    }
    kept.push_back(curve[highest]);
    if (last != highest) kept.push_back(curve[last]);
  }
  return kept;
}

}  // namespace foretrace

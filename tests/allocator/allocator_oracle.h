#pragma once

// A second caching allocator, written as plainly as its rules allow: lists that are walked from end
// to end, no index, no counters. It shares only the types of questions and answers with the real
// one, because both would make the same mistake in shared code.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "foretrace/allocator.h"

namespace foretrace {

class AllocatorOracle {
 public:
  /// `divisions` are the settings by power of two, from 1 MiB on.
  AllocatorOracle(const AllocatorSettings& settings, std::vector<std::int64_t> divisions)
      : settings_(settings), divisions_(std::move(divisions)) {}

  /// False if it is refused.
  bool malloc(std::int64_t handle, std::int64_t bytes, std::int64_t stream, Nanoseconds now) {
    finish(now);
    if (bytes == 0) return true;
    const std::int64_t size = rounded(bytes);
    const bool small = size <= kMi;
    if (Place found = best(size, stream, small); found.block >= 0) {
      give(found, size, handle, bytes);
      return true;
    }
    collect();
    Place place = grow(size, stream, small);
    if (place.block < 0 && release_oversize(size, stream, small)) place = grow(size, stream, small);
    if (place.block < 0) {
      empty_cache();
      place = grow(size, stream, small);
    }
    if (place.block < 0) return false;
    give(place, size, handle, bytes);
    return true;
  }

  void free(std::int64_t handle, Nanoseconds now) {
    for (Segment& segment : segments_) {
      for (Block& block : segment.blocks) {
        if (block.handle != handle || block.state != State::used) continue;
        block.state = block.recorded ? State::pending : State::free;
        block.until = std::max(block.until, now);
        if (!block.recorded) drop(segment, block);
        tidy();
        return;
      }
    }
  }

  void record(std::int64_t handle, std::int64_t stream, Nanoseconds done) {
    for (Segment& segment : segments_) {
      for (Block& block : segment.blocks) {
        if (block.handle != handle || block.state != State::used || segment.stream == stream)
          continue;
        block.recorded = true;
        block.until = std::max(block.until, done);
      }
    }
  }

  void empty_cache() {
    finish(Nanoseconds::max());
    for (Segment& segment : segments_) segment.shrunk = segment.expandable && unmap(segment);
    tidy();
    // Address space stays reserved if nothing was ever mapped in it.
    std::erase_if(segments_, [](const Segment& segment) {
      const State state = segment.blocks[0].state;
      return segment.blocks.size() == 1 &&
             (segment.expandable ? state == State::unmapped && segment.shrunk
                                 : state == State::free);
    });
  }

  AllocatorLevels levels() const {
    AllocatorLevels levels;
    for (const Segment& segment : segments_) {
      for (const Block& block : segment.blocks) {
        if (block.state == State::unmapped) continue;
        levels.reserved += block.bytes;
        if (block.state == State::used) levels.allocated += block.bytes;
        if (block.state != State::free) {
          levels.active += block.bytes;
          levels.requested += block.requested;
        } else if (segment.blocks.size() > 1 && !segment.expandable) {
          levels.inactive_split += block.bytes;
        }
      }
    }
    return levels;
  }

  /// All blocks but unmapped ones, by address: begin, size, handle.
  std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> blocks() const {
    std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> all;
    for (const Segment& segment : segments_) {
      std::uint64_t at = segment.address;
      for (const Block& block : segment.blocks) {
        if (block.state != State::unmapped) all[at] = {block.bytes, block.handle};
        at += static_cast<std::uint64_t>(block.bytes);
      }
    }
    return all;
  }

 private:
  static constexpr std::int64_t kMi = 1 << 20;
  enum class State { free, used, pending, unmapped };
  struct Block {
    std::int64_t bytes = 0;
    State state = State::free;
    std::int64_t handle = -1, requested = 0;
    std::int64_t searched = 0;  ///< When it became free.
    bool recorded = false;
    Nanoseconds until = Nanoseconds::min();
  };
  struct Segment {
    std::uint64_t address = 0;
    std::int64_t stream = 0;
    bool small = false, expandable = false;
    std::vector<Block> blocks;
    bool shrunk = false;
    std::int64_t bytes() const {
      std::int64_t sum = 0;
      for (const Block& block : blocks) sum += block.bytes;
      return sum;
    }
  };
  struct Place {
    int segment = -1, block = -1;
  };

  std::int64_t rounded(std::int64_t bytes) const {
    const auto power = static_cast<int>(std::floor(std::log2(static_cast<double>(bytes))));
    std::int64_t parts = 0;
    if (!divisions_.empty()) {
      const int last = static_cast<int>(divisions_.size()) - 1;
      parts = divisions_[static_cast<std::size_t>(std::clamp(power - 20, 0, last))];
    }
    std::int64_t unit = 512;
    if (parts > 1 && bytes > 512 * parts) unit = (std::int64_t{1} << power) / parts;
    std::int64_t size = unit;
    if (bytes > unit) size = bytes % unit == 0 ? bytes : bytes - bytes % unit + unit;
    return std::max<std::int64_t>(size, 512);
  }

  /// The size that a free block can reach, including the unmapped bytes after it.
  static std::int64_t reach(const Segment& segment, std::size_t block) {
    const bool grows =
        block + 1 < segment.blocks.size() && segment.blocks[block + 1].state == State::unmapped;
    return segment.blocks[block].bytes + (grows ? segment.blocks[block + 1].bytes : 0);
  }

  Place best(std::int64_t size, std::int64_t stream, bool small) {
    ++searches_[small];
    struct Candidate {
      std::int64_t bytes;
      std::uint64_t address;
      Place place;
    };
    std::vector<Candidate> fitting;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      std::uint64_t at = segments_[s].address;
      for (std::size_t b = 0; b < segments_[s].blocks.size(); ++b) {
        const Block& block = segments_[s].blocks[b];
        if (block.state == State::free && block.bytes >= size && segments_[s].stream == stream &&
            segments_[s].small == small) {
          fitting.push_back({block.bytes, at, {static_cast<int>(s), static_cast<int>(b)}});
        }
        at += static_cast<std::uint64_t>(block.bytes);
      }
    }
    if (fitting.empty()) return {};
    std::sort(fitting.begin(), fitting.end(), [](const Candidate& a, const Candidate& b) {
      return std::tie(a.bytes, a.address) < std::tie(b.bytes, b.address);
    });
    std::size_t chosen = 0;
    const auto reach_of = [&](std::size_t i) {
      const Place place = fitting[i].place;
      return reach(segments_[static_cast<std::size_t>(place.segment)],
                   static_cast<std::size_t>(place.block));
    };
    if (settings_.expandable_segments) {
      while (chosen + 1 < fitting.size() && reach_of(chosen + 1) < reach_of(chosen)) ++chosen;
    }
    const std::int64_t limit = settings_.max_split_size.count;
    if (limit > 0 && size < limit && fitting[chosen].bytes >= limit) return {};
    if (limit > 0 && size >= limit &&
        fitting[chosen].bytes >= size + settings_.max_non_split_rounding.count)
      return {};
    return fitting[chosen].place;
  }

  void give(Place place, std::int64_t size, std::int64_t handle, std::int64_t requested) {
    Segment& segment = segments_[static_cast<std::size_t>(place.segment)];
    Block& block = segment.blocks[static_cast<std::size_t>(place.block)];
    const std::int64_t rest = block.bytes - size;
    const std::int64_t limit = settings_.max_split_size.count;
    const bool fine = segment.small || settings_.expandable_segments;
    const bool splits = fine ? rest >= 512 : (limit == 0 || size < limit) && rest > kMi;
    block.state = State::used;
    block.handle = handle;
    block.requested = requested;
    block.recorded = false;
    block.until = Nanoseconds::min();
    if (!splits) return;
    block.bytes = size;
    Block behind;
    behind.bytes = rest;
    behind.searched = searches_[segment.small];
    segment.blocks.insert(segment.blocks.begin() + place.block + 1, behind);
  }

  void drop(const Segment& segment, Block& block) {
    block.handle = -1;
    block.requested = 0;
    block.state = State::free;
    block.searched = searches_[segment.small];
  }

  void finish(Nanoseconds now) {
    for (Segment& segment : segments_) {
      for (Block& block : segment.blocks) {
        if (block.state == State::pending && block.until <= now) drop(segment, block);
      }
    }
    tidy();
  }

  /// Merges adjacent blocks that are free or unmapped alike.
  void tidy() {
    for (Segment& segment : segments_) {
      for (std::size_t i = 0; i + 1 < segment.blocks.size();) {
        Block& a = segment.blocks[i];
        const Block& b = segment.blocks[i + 1];
        if (a.state != b.state || a.state == State::used || a.state == State::pending) {
          ++i;
          continue;
        }
        a.bytes += b.bytes;
        a.searched = std::max(a.searched, b.searched);
        segment.blocks.erase(segment.blocks.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }

  bool exceeds(std::int64_t more) const {
    return settings_.limit.count > 0 && levels().reserved + more > settings_.limit.count;
  }

  std::uint64_t address_for(std::int64_t bytes) const {
    std::map<std::uint64_t, std::uint64_t> taken;
    for (const Segment& segment : segments_) {
      taken[segment.address] = segment.address + static_cast<std::uint64_t>(segment.bytes());
    }
    std::uint64_t at = std::uint64_t{1} << 32;
    for (const auto& [begin, end] : taken) {
      if (at + static_cast<std::uint64_t>(bytes) <= begin) break;
      at = end;
    }
    return at;
  }

  Place grow(std::int64_t size, std::int64_t stream, bool small) {
    std::int64_t segment = small ? 2 * kMi : 20 * kMi;
    if (size >= 10 * kMi) segment = (size + 2 * kMi - 1) / (2 * kMi) * (2 * kMi);
    if (settings_.limit.count > 0 && settings_.memory_fraction < 1) {
      const auto allowed = static_cast<std::int64_t>(static_cast<double>(settings_.limit.count) *
                                                     settings_.memory_fraction);
      if (levels().reserved + segment > allowed) return {};
    }
    if (settings_.expandable_segments) return expand(size, stream, small);
    if (exceeds(segment)) return {};
    Segment added{address_for(segment), stream, small, false, {Block{}}, false};
    added.blocks[0].bytes = segment;
    segments_.push_back(added);
    return {static_cast<int>(segments_.size()) - 1, 0};
  }

  /// The lowest run of free and unmapped blocks that is long enough and in which something is
  /// unmapped first or second.
  Place room(std::int64_t size, std::int64_t stream, bool small) {
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (segments_[s].expandable && segments_[s].stream == stream && segments_[s].small == small)
        order.push_back(s);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return segments_[a].address < segments_[b].address;
    });
    for (const std::size_t s : order) {
      const std::vector<Block>& blocks = segments_[s].blocks;
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        if (blocks[b].state != State::unmapped) continue;
        const std::size_t first = b > 0 && blocks[b - 1].state == State::free ? b - 1 : b;
        std::int64_t sum = 0;
        for (std::size_t i = first; i < blocks.size() && sum < size; ++i) {
          if (blocks[i].state != State::free && blocks[i].state != State::unmapped) break;
          sum += blocks[i].bytes;
        }
        if (sum >= size) return {static_cast<int>(s), static_cast<int>(first)};
      }
    }
    return {};
  }

  Place expand(std::int64_t size, std::int64_t stream, bool small) {
    const std::int64_t page = small ? 2 * kMi : 20 * kMi;
    if (settings_.limit.count > 0 && room(size, stream, small).block < 0 &&
        size > settings_.limit.count)
      return {};
    Place place = room(size, stream, small);
    if (place.block < 0) {
      const std::int64_t limit = settings_.limit.count;
      const std::int64_t most = limit > 0 ? limit + limit / 8 : std::int64_t{1} << 40;
      Block all;
      all.bytes = (std::max(most, size) + page - 1) / page * page;
      all.state = State::unmapped;
      segments_.push_back({address_for(all.bytes), stream, small, true, {all}, false});
      place = {static_cast<int>(segments_.size()) - 1, 0};
    }
    std::vector<Block>& blocks = segments_[static_cast<std::size_t>(place.segment)].blocks;
    const auto at = static_cast<std::size_t>(place.block);
    while (blocks[at].state == State::unmapped || blocks[at].bytes < size) {
      const std::size_t next = blocks[at].state == State::unmapped ? at : at + 1;
      const std::int64_t wanted = next == at ? size : size - blocks[at].bytes;
      const std::int64_t mapped = std::min((wanted + page - 1) / page * page, blocks[next].bytes);
      if (exceeds(mapped)) return {};
      Block front = blocks[next];
      front.bytes = mapped;
      front.state = State::free;
      front.searched = searches_[small];
      blocks[next].bytes -= mapped;
      blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(next), front);
      std::erase_if(blocks, [](const Block& block) { return block.bytes == 0; });
      tidy();
    }
    return place;
  }

  /// Whether there was something to unmap.
  bool unmap(Segment& segment) const {
    const std::int64_t page = segment.small ? 2 * kMi : 20 * kMi;
    std::vector<Block> blocks;
    std::int64_t at = 0;
    bool found = false;
    for (const Block& block : segment.blocks) {
      const std::int64_t from = (at + page - 1) / page * page;
      const std::int64_t to = (at + block.bytes) / page * page;
      const std::int64_t begin = at;
      at += block.bytes;
      if (block.state != State::free || from >= to) {
        blocks.push_back(block);
        continue;
      }
      found = true;
      const auto add = [&](std::int64_t bytes, State state) {
        Block piece = block;
        piece.bytes = bytes;
        piece.state = state;
        piece.searched = searches_.at(segment.small);
        if (bytes > 0) blocks.push_back(piece);
      };
      add(from - begin, State::free);
      add(to - from, State::unmapped);
      add(at - to, State::free);
    }
    segment.blocks = std::move(blocks);
    return found;
  }

  bool is_unused(const Segment& segment) const {
    return !segment.expandable && segment.blocks.size() == 1 &&
           segment.blocks[0].state == State::free;
  }

  bool release_oversize(std::int64_t size, std::int64_t stream, bool small) {
    const std::int64_t least = settings_.max_split_size.count;
    if (least == 0) return false;
    const std::int64_t enough = std::max(size, least);
    std::vector<std::pair<std::int64_t, std::uint64_t>> unused;
    for (const Segment& segment : segments_) {
      if (is_unused(segment) && segment.stream == stream && segment.small == small &&
          segment.bytes() >= least) {
        unused.emplace_back(segment.bytes(), segment.address);
      }
    }
    std::sort(unused.begin(), unused.end());
    const auto release = [&](std::uint64_t address) {
      std::erase_if(segments_, [&](const Segment& s) { return s.address == address; });
    };
    for (const auto& [bytes, address] : unused) {
      if (bytes < enough) continue;
      release(address);
      return true;
    }
    std::int64_t released = 0;
    while (!unused.empty() && released < enough) {
      released += unused.back().first;
      release(unused.back().second);
      unused.pop_back();
    }
    return released >= enough;
  }

  void collect() {
    if (settings_.limit.count == 0 || settings_.garbage_collection_threshold == 0) return;
    const double allowed =
        settings_.memory_fraction < 1
            ? std::floor(static_cast<double>(settings_.limit.count) * settings_.memory_fraction)
            : static_cast<double>(settings_.limit.count);
    const auto threshold =
        static_cast<std::int64_t>(allowed * settings_.garbage_collection_threshold);
    std::int64_t excess = levels().reserved - threshold;
    const auto age = [&](const Segment& segment) {
      return searches_[false] - segment.blocks[0].searched;
    };
    while (excess > 0) {
      double sum = 0, count = 0;
      for (const Segment& segment : segments_) {
        if (segment.small || !is_unused(segment)) continue;
        sum += static_cast<double>(age(segment));
        ++count;
      }
      if (count == 0) return;
      std::erase_if(segments_, [&](const Segment& segment) {
        const bool goes = !segment.small && is_unused(segment) &&
                          static_cast<double>(age(segment)) >= sum / count;
        if (goes) excess -= segment.bytes();
        return goes;
      });
    }
  }

  AllocatorSettings settings_;
  std::vector<std::int64_t> divisions_;
  std::vector<Segment> segments_;
  std::map<bool, std::int64_t> searches_;
};

}  // namespace foretrace

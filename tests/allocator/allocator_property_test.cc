#include <gtest/gtest.h>

#include <random>

#include "allocator/allocator_oracle.h"
#include "allocator/mebibyte.h"
#include "foretrace/allocator.h"

namespace foretrace {
namespace {

struct RandomSettings {
  AllocatorSettings settings;
  std::vector<std::int64_t> divisions;  ///< The same, by power of two.
};

RandomSettings random_settings(std::mt19937& random) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  RandomSettings chosen;
  AllocatorSettings& settings = chosen.settings;
  if (!one_in(3)) settings.limit = Bytes{static_cast<std::int64_t>(30 + random() % 170) * kMiB};
  if (one_in(4)) settings.memory_fraction = 0.7;
  if (one_in(3))
    settings.max_split_size = Bytes{static_cast<std::int64_t>(21 + random() % 20) * kMiB};
  if (one_in(3)) settings.max_non_split_rounding = Bytes{2 * kMiB};
  if (one_in(3)) settings.garbage_collection_threshold = 0.4;
  settings.expandable_segments = one_in(3);
  if (one_in(4)) {
    settings.roundup_power2_divisions = "4";
    chosen.divisions = {4};
  } else if (one_in(4)) {
    settings.roundup_power2_divisions = "[2:1,8:4,>:8]";
    chosen.divisions = {1, 1, 0, 4, 8};
  }
  return chosen;
}

std::int64_t random_size(std::mt19937& random) {
  switch (random() % 5) {
    case 0:
      return 1 + static_cast<std::int64_t>(random() % 3000);
    case 1:
      return 1 + static_cast<std::int64_t>(random() % (2u << 20));
    case 2:
      return static_cast<std::int64_t>(1 + random() % 12) * kMiB;
    default:
      return static_cast<std::int64_t>(random() % (60u << 20)) + 1;
  }
}

struct Action {
  enum class Kind { malloc, malloc_beyond, free, record, empty_cache } kind{};
  std::int64_t handle = 0, bytes = 0, stream = 0;
  Nanoseconds now{}, done{};
};

/// A program that frees each handle once, after it was requested, even if the request was refused.
std::vector<Action> random_program(std::mt19937& random, std::size_t most, bool with_beyond) {
  std::vector<Action> program;
  std::vector<std::int64_t> held;
  Nanoseconds now{};
  std::int64_t next = 0;
  for (std::size_t i = 0, n = 4 + random() % (most - 3); i < n; ++i) {
    now += Nanoseconds(random() % 4);
    Action action{.now = now};
    const std::size_t what = random() % 20;
    if (what < 10 || held.empty()) {
      action.kind = with_beyond && what == 0 ? Action::Kind::malloc_beyond : Action::Kind::malloc;
      action.bytes = random_size(random);
      action.stream = random() % 4 == 0 ? 1 : 0;
      held.push_back(action.handle = next++);
    } else if (what < 17) {
      std::swap(held[random() % held.size()], held.back());
      action.kind = Action::Kind::free;
      action.handle = held.back();
      held.pop_back();
    } else if (what < 19) {
      action.kind = Action::Kind::record;
      action.handle = held[random() % held.size()];
      action.stream = random() % 3;
      action.done = now + Nanoseconds(random() % 20);
    } else {
      action.kind = Action::Kind::empty_cache;
    }
    program.push_back(action);
  }
  return program;
}

/// True if the request was served within the limit.
bool act(const Action& action, CachingAllocator& allocator) {
  switch (action.kind) {
    case Action::Kind::malloc:
      return !allocator.malloc(action.handle, Bytes{action.bytes}, action.stream, action.now);
    case Action::Kind::malloc_beyond:
      return !allocator.malloc_beyond(action.handle, Bytes{action.bytes}, action.stream,
                                      action.now);
    case Action::Kind::free:
      allocator.free(action.handle, action.now);
      return true;
    case Action::Kind::record:
      allocator.record_stream(action.handle, action.stream, action.done);
      return true;
    case Action::Kind::empty_cache:
      allocator.empty_cache();
  }
  return true;
}

/// The levels, computed from the segments alone. Fails if the blocks of a segment do not cover it,
/// or if two free blocks are adjacent.
AllocatorLevels levels_of(const std::vector<AllocatorSegment>& segments) {
  AllocatorLevels levels;
  for (const AllocatorSegment& segment : segments) {
    levels.reserved += segment.bytes;
    std::uint64_t at = segment.address;
    bool was_free = false;
    for (const AllocatorBlock& block : segment.blocks) {
      EXPECT_EQ(block.address, at);
      EXPECT_GT(block.bytes, 0);
      at += static_cast<std::uint64_t>(block.bytes);
      const bool is_free = block.handle < 0;
      EXPECT_FALSE(is_free && was_free);
      was_free = is_free;
      if (is_free) {
        const bool split = segment.blocks.size() > 1 && !segment.is_expandable;
        levels.inactive_split += split ? block.bytes : 0;
        continue;
      }
      levels.active += block.bytes;
      levels.requested += block.requested;
      levels.allocated += block.pending ? 0 : block.bytes;
    }
    EXPECT_EQ(at, segment.address + static_cast<std::uint64_t>(segment.bytes));
  }
  return levels;
}

void expect_order(const AllocatorLevels& levels, bool is_pending) {
  EXPECT_GE(levels.reserved, levels.active + levels.inactive_split);
  EXPECT_GE(levels.active, levels.allocated);
  EXPECT_GE(levels.active, levels.requested);
  if (!is_pending) {
    EXPECT_GE(levels.allocated, levels.requested);
  }
  EXPECT_GE(levels.allocated, 0);
}

TEST(AllocatorProperty, AccountsForEveryByteOfAHundredThousandPrograms) {
  std::mt19937 random(1);
  for (int run = 0; run < 100'000 && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE(run);
    const RandomSettings chosen = random_settings(random);
    const std::int64_t limit = chosen.settings.limit.count;
    CachingAllocator allocator(chosen.settings), again(chosen.settings);
    const std::vector<Action> program = random_program(random, 12, true);
    const std::size_t looked_at = random() % program.size();
    bool is_beyond = limit == 0;
    for (std::size_t i = 0; i < program.size(); ++i) {
      const bool served = act(program[i], allocator);
      act(program[i], again);
      is_beyond |= !served && program[i].kind == Action::Kind::malloc_beyond;
      const AllocatorLevels& levels = allocator.levels();
      expect_order(levels, levels.active > levels.allocated);
      EXPECT_EQ(levels, again.levels());
      if (!is_beyond) {
        EXPECT_LE(levels.reserved, limit);
      }
      EXPECT_GE(allocator.peaks().reserved, levels.reserved);
      if (i == looked_at) {
        EXPECT_EQ(levels_of(allocator.segments()), levels);
      }
    }
    for (std::int64_t handle = 0; handle < 40; ++handle) allocator.free(handle, 1s);
    allocator.malloc(100, Bytes{0}, 0, Nanoseconds::max());  // By then all streams are done.
    EXPECT_EQ(allocator.levels(), (AllocatorLevels{.reserved = allocator.levels().reserved}));
    EXPECT_EQ(levels_of(allocator.segments()), allocator.levels());
    allocator.empty_cache();
    EXPECT_EQ(allocator.levels(), AllocatorLevels{});
    EXPECT_TRUE(allocator.segments().empty());
  }
}

TEST(AllocatorProperty, AgreesWithTheRulesWrittenPlainly) {
  std::mt19937 random(2);
  for (int run = 0; run < 20'000 && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE(run);
    const RandomSettings chosen = random_settings(random);
    CachingAllocator allocator(chosen.settings);
    AllocatorOracle oracle(chosen.settings, chosen.divisions);
    for (const Action& action : random_program(random, 28, false)) {
      const bool served = act(action, allocator);
      switch (action.kind) {
        case Action::Kind::free:
          oracle.free(action.handle, action.now);
          break;
        case Action::Kind::record:
          oracle.record(action.handle, action.stream, action.done);
          break;
        case Action::Kind::empty_cache:
          oracle.empty_cache();
          break;
        default:
          EXPECT_EQ(served, oracle.malloc(action.handle, action.bytes, action.stream, action.now));
      }
      EXPECT_EQ(allocator.levels(), oracle.levels());
      std::map<std::uint64_t, std::pair<std::int64_t, std::int64_t>> blocks;
      for (const AllocatorSegment& segment : allocator.segments()) {
        for (const AllocatorBlock& block : segment.blocks)
          blocks[block.address] = {block.bytes, block.handle};
      }
      EXPECT_EQ(blocks, oracle.blocks());
      if (testing::Test::HasFailure()) break;
    }
  }
}

}  // namespace
}  // namespace foretrace

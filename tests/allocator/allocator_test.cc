#include "foretrace/allocator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/mebibyte.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

std::vector<std::int64_t> block_sizes(const CachingAllocator& allocator) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t handle = 0; handle < 100; ++handle) {
    for (const AllocatorSegment& segment : allocator.segments()) {
      for (const AllocatorBlock& block : segment.blocks) {
        if (block.handle == handle) sizes.push_back(block.bytes);
      }
    }
  }
  return sizes;
}

std::vector<std::int64_t> segment_sizes(const CachingAllocator& allocator) {
  std::vector<std::int64_t> sizes;
  for (const AllocatorSegment& segment : allocator.segments()) sizes.push_back(segment.bytes);
  return sizes;
}

TEST(Allocator, RoundsRequestsAndChoosesSegments) {
  CachingAllocator allocator;
  std::int64_t handle = 0;
  for (const std::int64_t bytes :
       {std::int64_t{1}, std::int64_t{513}, std::int64_t{1048576}, std::int64_t{1048577}, 9 * kMiB,
        10 * kMiB - 512, 10 * kMiB, std::int64_t{26528972}}) {
    EXPECT_FALSE(allocator.malloc(handle++, Bytes{bytes}));
  }
  EXPECT_EQ(block_sizes(allocator), (std::vector<std::int64_t>{512, 1024, 1048576, 1049088, 9437184,
                                                               10485248, 10485760, 27262976}));
  EXPECT_EQ(segment_sizes(allocator),
            (std::vector<std::int64_t>{2 * kMiB, 20 * kMiB, 10 * kMiB, 26 * kMiB}));
  const AllocatorLevels expected{59770368, 59770368, 59034831, 58 * kMiB, 1047040};
  EXPECT_EQ(allocator.levels(), expected);
  EXPECT_EQ(allocator.driver_mallocs(), 4);
}

TEST(Allocator, CannotServeFromPiecesThatAreEnoughOnlyTogether) {
  CachingAllocator allocator;
  allocator.malloc(0, Bytes{16 * kMiB});
  allocator.malloc(1, Bytes{16 * kMiB});
  allocator.free(0);
  allocator.malloc(2, Bytes{6 * kMiB});
  EXPECT_EQ(segment_sizes(allocator), (std::vector<std::int64_t>{16 * kMiB, 16 * kMiB}));
  EXPECT_EQ(allocator.levels().reserved, 32 * kMiB);
  EXPECT_EQ(allocator.levels().allocated, 23068672);
  EXPECT_EQ(allocator.levels().inactive_split, 10485760);
  allocator.free(1);
  allocator.malloc(3, Bytes{20 * kMiB});
  EXPECT_EQ(segment_sizes(allocator), (std::vector<std::int64_t>{16 * kMiB, 16 * kMiB, 20 * kMiB}));
  EXPECT_EQ(allocator.levels().reserved, 52 * kMiB);
}

TEST(Allocator, JoinsWhatIsFreedSoThatNothingStaysSplit) {
  CachingAllocator allocator;
  for (int i = 0; i < 7; ++i) allocator.malloc(i, Bytes{3 * kMiB});
  EXPECT_EQ(segment_sizes(allocator), (std::vector<std::int64_t>{20 * kMiB, 20 * kMiB}));
  EXPECT_EQ(allocator.levels().allocated, 22020096);
  EXPECT_EQ(allocator.levels().inactive_split, 19922944);
  for (int i = 0; i < 7; ++i) allocator.free(i);
  EXPECT_EQ(allocator.levels(), (AllocatorLevels{.reserved = 40 * kMiB}));
}

}  // namespace
}  // namespace foretrace

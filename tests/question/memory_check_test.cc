#include "foretrace/question/memory_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "foretrace/import.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Allocator events of a profiler: the change of each, its address, and the levels after it.
struct Event {
  std::int64_t bytes;
  std::uint64_t address;
  std::int64_t allocated, reserved;
};

Trace recorded(const std::vector<Event>& events) {
  Trace trace;
  for (const Event& event : events) {
    MemoryRecord record;
    record.time_ns = static_cast<std::int64_t>(trace.memory.size());
    record.device = 0;
    record.bytes = event.bytes;
    record.address = event.address;
    record.total_allocated = event.allocated;
    record.total_reserved = event.reserved;
    trace.memory.push_back(record);
  }
  return trace;
}

constexpr std::uint64_t kPlace = std::uint64_t{1} << 40;

TEST(MemoryCheck, FindsNoErrorWhereTheRulesHold) {
  const auto checks = check_memory(recorded({
      {16 * kMiB, kPlace, 16 * kMiB, 16 * kMiB},
      {16 * kMiB, kPlace + (64u << 20), 32 * kMiB, 32 * kMiB},
      {-16 * kMiB, kPlace, 16 * kMiB, 32 * kMiB},
      {6 * kMiB, kPlace, 22 * kMiB, 32 * kMiB},
  }));
  ASSERT_EQ(checks.size(), 1u);
  for (const MemoryReplay& replay : {checks[0].cold, checks[0].warm}) {
    EXPECT_EQ(replay.allocated.most, Bytes{});
    EXPECT_EQ(replay.reserved.recorded_peak, Bytes{32 * kMiB});
    EXPECT_EQ(replay.reserved.replayed_peak, Bytes{32 * kMiB});
    EXPECT_EQ(replay.reserved.compared, 4);
  }
  EXPECT_EQ(checks[0].events, 4);
  EXPECT_TRUE(checks[0].sizes_are_rounded);
}

TEST(MemoryCheck, FindsWhereTheRulesDoNotHold) {
  // An allocator with these rules would have served the second request from the first segment.
  const auto checks = check_memory(recorded({
      {3 * kMiB, kPlace, 3 * kMiB, 20 * kMiB},
      {4 * kMiB, kPlace + (64u << 20), 7 * kMiB, 40 * kMiB},
  }));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].cold.reserved.most, Bytes{20 * kMiB});
  EXPECT_DOUBLE_EQ(checks[0].cold.reserved.peak, -0.5);
}

TEST(MemoryCheck, AWarmStartKnowsWhatWasFreeAndAColdOneAsksForItAgain) {
  // 20 MiB are reserved from the start, of which 8 MiB are in use.
  const auto checks = check_memory(recorded({
      {4 * kMiB, kPlace + (8u << 20), 12 * kMiB, 20 * kMiB},
      {-4 * kMiB, kPlace + (8u << 20), 8 * kMiB, 20 * kMiB},
  }));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].initial_allocated, Bytes{8 * kMiB});
  EXPECT_EQ(checks[0].warm.reserved.most, Bytes{});
  EXPECT_EQ(checks[0].warm.same_address, 1);
  EXPECT_EQ(checks[0].cold.reserved.replayed_peak, Bytes{28 * kMiB});
}

TEST(MemoryCheck, ABlockGivenOutBehindFreeBytesBeginsASegment) {
  // Two adjacent segments, both free: if they were merged, they would serve 24 MiB without a driver
  // call.
  const std::uint64_t second = kPlace + (20u << 20);
  const auto checks = check_memory(recorded({
      {20 * kMiB, second, 20 * kMiB, 40 * kMiB},
      {20 * kMiB, kPlace, 40 * kMiB, 40 * kMiB},
      {-20 * kMiB, second, 20 * kMiB, 40 * kMiB},
      {-20 * kMiB, kPlace, 0, 40 * kMiB},
      {24 * kMiB, kPlace + (64u << 20), 24 * kMiB, 64 * kMiB},
  }));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].warm.reserved.most, Bytes{});
}

TEST(MemoryCheck, TakesRecordsThatMakeNoSense) {
  const std::uint64_t last = ~std::uint64_t{0};
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  check_memory(recorded({{least, last, 0, 0},
                         {1, last, 1, 1},
                         {-1, 7, 5, -1},
                         {4, 7, 5, 5},
                         {8, 9, 3, 2},
                         {-2, 8, 1, 1},
                         {9, 7, 0, 9},
                         {-4096, 7, 0, 0}}));
  EXPECT_TRUE(check_memory(Trace{}).empty());
  EXPECT_TRUE(check_memory(recorded({{512, 4096, -1, -1}})).empty());
}

/// True if everything that the allocator holds at the end was requested during the recording.
bool has_whole_history(const Trace& trace) {
  std::int64_t held = 0;
  for (const MemoryRecord& record : trace.memory) held -= reserved_change(record);
  for (const MemorySegment& segment : trace.segments) held += segment.bytes;
  return held == 0;
}

TEST(MemoryCheckCorpus, SnapshotsOfAWholeHistoryAreReplayedToTheAddress) {
  for (const std::string& path : corpus_files({".pickle"})) {
    SCOPED_TRACE(path);
    const Trace trace = import_trace(path);
    for (const MemoryCheck& check : check_memory(trace)) {
      EXPECT_EQ(check.warm.same_address, check.warm.compared_addresses);
      if (!has_whole_history(trace)) continue;
      EXPECT_EQ(check.cold.allocated.most, Bytes{});
      EXPECT_EQ(check.cold.reserved.most, Bytes{});
      EXPECT_EQ(check.cold.same_address, check.cold.compared_addresses);
    }
  }
}

TEST(MemoryCheckCorpus, WarmReplaysReachTheRecordedPeaks) {
  for (const std::string& path : corpus_files({".json.gz", ".json"})) {
    SCOPED_TRACE(path);
    const bool has_totals = path.find("mem") != std::string::npos ||
                            path.find("dev-pair") != std::string::npos ||
                            path.find("ptf-batch") != std::string::npos;
    if (!has_totals) continue;
    for (const MemoryCheck& check : check_memory(import_trace(path))) {
      EXPECT_LT(std::abs(check.warm.allocated.peak), 0.01);
      EXPECT_LT(std::abs(check.warm.reserved.peak), 0.02);
    }
  }
}

}  // namespace
}  // namespace foretrace

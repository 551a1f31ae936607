// Programs as users have them: PyTorch's allocator, ranks of a job; and buffers replayed from a
// dump.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "collect/recording.h"
#include "foretrace/import.h"

namespace foretrace {
namespace {

TEST(Programs, EveryBlockOfPyTorchsAllocatorIsSeen) {
  Recording recording({.options = {"--memory"}, .program = {"torch", TORCH_FOLDER, "10"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.out << recording.ended.err;
  EXPECT_EQ(told(recording.ended.out, "reached"), 20) << "PyTorch's own function must be called";
  std::int64_t held = 0;
  std::int64_t peak = 0;
  int blocks = 0;
  for (const MemoryRecord& record : recording.trace().memory) {
    ASSERT_EQ(record.action, MemoryAction::block);
    EXPECT_EQ(record.device, 0);
    EXPECT_EQ(record.total_reserved, 20 << 20);
    held += record.bytes;
    EXPECT_EQ(record.total_allocated, held);
    peak = std::max(peak, held);
    ++blocks;
  }
  EXPECT_EQ(blocks, 20);
  EXPECT_EQ(held, 0);
  EXPECT_EQ(peak, told(recording.ended.out, "peak"));
}

TEST(Programs, BlocksAreLeftAloneUnlessAskedFor) {
  Recording recording(
      {.options = {"--record", "kernels,api,nvtx"}, .program = {"torch", TORCH_FOLDER, "10"}});
  EXPECT_EQ(told(recording.ended.out, "reached"), 20);
  if (recording.has_trace()) {
    EXPECT_TRUE(recording.trace().memory.empty());
  }
}

TEST(Programs, RanksOfAJobBecomeAFolderThatIsPredicted) {
  Recording recording({.program = {"ranks", "4"}, .output = "job.ftrace"});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(recording.spools.size(), 4U);
  const std::string folder = recording.path("job");
  const std::vector<Trace> ranks = import_all(folder);
  ASSERT_EQ(ranks.size(), 4U);
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].rank, rank);
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].world_size, 4);
    EXPECT_EQ(kernels_of(ranks[static_cast<std::size_t>(rank)]).at("only_in_step_2"), 1);
  }
  const Ended predicted = run_program({FORETRACE_BINARY, "predict", folder}, {});
  EXPECT_EQ(predicted.status, 0) << predicted.err;
  EXPECT_FALSE(predicted.out.empty());
}

TEST(Programs, TheFolderOfRanksIsNamedWithoutTheWholeEnding) {
  Recording recording({.program = {"ranks", "2"}, .output = "job.json.gz"});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(import_all(recording.path("job")).size(), 2U);
  EXPECT_EQ(import_trace(recording.path("job/rank1.json.gz")).rank, 1);
}

TEST(Programs, ARecordingIsPredicted) {
  Recording recording({.program = {"steps", "5"}});
  const Ended predicted =
      run_program({FORETRACE_BINARY, "predict", recording.path("out.ftrace")}, {});
  EXPECT_EQ(predicted.status, 0) << predicted.err;
}

TEST(Programs, OtherFormatsAreWrittenAtOnce) {
  Recording recording({.program = {"steps", "3"}, .output = "out.json.gz"});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const Trace trace = import_trace(recording.path("out.json.gz"));
  EXPECT_EQ(kernels_of(trace).at("only_in_step_2"), 1);
}

/// Records, dumps CUPTI's buffers, replays the dump into a second recording, and compares the two.
void expect_same_again(const Recipe& recipe) {
  Recipe first = recipe;
  const std::string dump =
      (std::filesystem::temp_directory_path() / ("foretrace-dump-" + std::to_string(getpid())))
          .string();
  first.environment["FORETRACE_RAW"] = dump;
  Recording recorded(first);
  ASSERT_TRUE(std::filesystem::exists(dump)) << recorded.ended.err;
  Recipe again = recipe;
  again.program = {"normal", "0"};
  again.environment["FORETRACE_STANDIN"] = "replay=" + dump;
  Recording replayed(again);
  std::filesystem::remove(dump);
  EXPECT_EQ(kernels_of(replayed.trace()), kernels_of(recorded.trace()));
  EXPECT_EQ(replayed.trace().syncs.size(), recorded.trace().syncs.size());
  EXPECT_EQ(replayed.trace().memory.size(), recorded.trace().memory.size());
  EXPECT_EQ(host_names_of(replayed.trace(), HostKind::runtime),
            host_names_of(recorded.trace(), HostKind::runtime));
  std::int64_t busy[2] = {0, 0};
  for (const DeviceRecord& record : recorded.trace().devices) busy[0] += record.duration_ns;
  for (const DeviceRecord& record : replayed.trace().devices) busy[1] += record.duration_ns;
  EXPECT_EQ(busy[0], busy[1]);
}

TEST(Programs, DumpedBuffersReplayToTheSameTrace) {
  expect_same_again({.program = {"normal", "20"}});
  expect_same_again({.program = {"events", "5"}});
  expect_same_again({.program = {"memory", "5"}});
  expect_same_again({.program = {"normal", "20"}, .cupti = STANDIN_12});
}

/// Tests dumps of real GPUs, as far as there are any.
TEST(Programs, GoldenBuffersAreReadWhole) {
  const std::filesystem::path folder = FORETRACE_SOURCE_DIR "/tests/collect/golden";
  int dumps = 0;
  if (std::filesystem::exists(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() != ".raw") continue;
      ++dumps;
      Recording recording(
          {.program = {"normal", "0"},
           .environment = {{"FORETRACE_STANDIN", "replay=" + entry.path().string()}}});
      expect_all_there(recording);
      EXPECT_GT(recording.spooled().rows["kernel"], 0U) << entry.path();
    }
  }
  if (dumps == 0) GTEST_SKIP() << "tests/collect/golden has no dumps of a GPU";
}

}  // namespace
}  // namespace foretrace

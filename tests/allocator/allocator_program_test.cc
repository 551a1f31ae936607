#include <gtest/gtest.h>

#include <string>

#include "foretrace/allocator.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Each segment as its blocks, "x6 .10 | y16": in MiB, "." for free, "~" for one that waits.
std::string after(std::string_view text, const AllocatorSettings& settings = {}) {
  try {
    const AllocatorProgram program = parse_allocator_program(text, settings);
    const AllocatorOutcome outcome = run_allocator_program(program);
    std::string shown;
    for (const AllocatorSegment& segment : outcome.segments) {
      shown += shown.empty() ? "" : " | ";
      for (const AllocatorBlock& block : segment.blocks) {
        if (&block != &segment.blocks.front()) shown += ' ';
        shown += block.handle < 0 ? "." : program.names[static_cast<std::size_t>(block.handle)];
        if (block.pending) shown += '~';
        shown += to_text(static_cast<double>(block.bytes) / (1 << 20));
      }
    }
    if (outcome.out_of_memory) shown += " OOM line " + std::to_string(outcome.refused_line);
    return shown;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(AllocatorProgram, ServesFromTheBestFittingFreeBlock) {
  EXPECT_EQ(after("malloc x 16MiB\nmalloc y 16MiB\nfree x\nmalloc z 6MiB"), "z6 .10 | y16");
  EXPECT_EQ(after("malloc x 16MiB\nmalloc y 12MiB\nfree x\nfree y\nmalloc z 6MiB"), ".16 | z6 .6");
}

TEST(AllocatorProgram, GivesTheCacheBackBeforeItRefuses) {
  constexpr std::string_view kSteps =
      "malloc x 16MiB\nmalloc y 16MiB\nfree x\nmalloc z 6MiB\nfree y\nmalloc w 20MiB";
  EXPECT_EQ(after("limit 48MiB\n" + std::string(kSteps)), "z6 .10 | w20");
  EXPECT_EQ(after("limit 32MiB\n" + std::string(kSteps)), "z6 .10 OOM line 7");
}

TEST(AllocatorProgram, StreamsDoNotShareBlocks) {
  EXPECT_EQ(after("malloc x 12MiB\nfree x\nmalloc y 12MiB stream=1\nmalloc z 12MiB"), "z12 | y12");
}

TEST(AllocatorProgram, ARecordedBlockWaitsForItsStream) {
  const std::string begin = "malloc x 12MiB\nrecord x stream=2\nfree x\n";
  EXPECT_EQ(after(begin), "x~12");
  EXPECT_EQ(after(begin + "malloc y 12MiB"), "x~12 | y12");
  EXPECT_EQ(after(begin + "sync stream=1\nmalloc y 12MiB"), "x~12 | y12");
  EXPECT_EQ(after(begin + "sync stream=2\nmalloc y 12MiB"), "y12");
  EXPECT_EQ(after(begin + "sync\nmalloc y 12MiB"), "y12");
  EXPECT_EQ(after("malloc x 12MiB\nrecord x stream=2\nsync\nfree x\nmalloc y 12MiB"), "x~12 | y12");
  EXPECT_EQ(after("malloc x 12MiB\nrecord x stream=0\nfree x\nmalloc y 12MiB"), "y12");
  EXPECT_EQ(after("limit 12MiB\n" + begin + "malloc y 12MiB"), "y12");
}

TEST(AllocatorProgram, BlocksThatAreNotSplitServeOnlySuchRequests) {
  const std::string top = "set max_split_size=30MiB\n";
  EXPECT_EQ(after(top + "malloc x 40MiB\nfree x\nmalloc y 24MiB"), ".40 | y24");
  EXPECT_EQ(after(top + "malloc x 60MiB\nfree x\nmalloc y 41MiB"), "y60");
  EXPECT_EQ(after(top + "malloc x 60MiB\nfree x\nmalloc y 40MiB"), ".60 | y40");
  EXPECT_EQ(after(top + "limit 60MiB\nmalloc x 60MiB\nfree x\nmalloc y 32MiB"), "y32");
  EXPECT_EQ(after("set max_split_size=30MiB,max_non_split_rounding=2MiB\n"
                  "malloc x 34MiB\nfree x\nmalloc y 32MiB"),
            ".34 | y32");
}

TEST(AllocatorProgram, RoundsToDivisionsOfPowersOfTwo) {
  EXPECT_EQ(after("set roundup_power2_divisions=4\nmalloc x 33MiB"), "x40");
  EXPECT_EQ(after("set roundup_power2_divisions=[32:2,64:1]\nmalloc x 33MiB\nmalloc y 65MiB"),
            "x48 | y66");
  EXPECT_EQ(after("conf roundup_power2_divisions:[1:8, >:2]\nmalloc x 33MiB"), "x48");
}

TEST(AllocatorProgram, GarbageIsWhatNobodyUsedForLong) {
  const std::string top = "limit 100MiB\nset garbage_collection_threshold=0.5\n";
  EXPECT_EQ(after(top + "malloc a 20MiB\nmalloc b 32MiB\nfree a\nmalloc c 1MiB\nmalloc d 40MiB"),
            "b32 | c1 .1 | d40");
  EXPECT_EQ(after("limit 100MiB\nmalloc a 20MiB\nmalloc b 32MiB\nfree a\nmalloc d 40MiB"),
            ".20 | b32 | d40");
}

TEST(AllocatorProgram, AFractionOfTheLimitIsAllThatIsAllowed) {
  EXPECT_EQ(after("limit 100MiB\nset memory_fraction=0.5\nmalloc a 50MiB"), "a50");
  EXPECT_EQ(after("limit 100MiB\nset memory_fraction=0.5\nmalloc a 52MiB"), " OOM line 3");
}

TEST(AllocatorProgram, ExpandableSegmentsGrowWhereTheyEnd) {
  const std::string top = "set expandable_segments=true\n";
  EXPECT_EQ(after(top + "malloc a 30MiB\nmalloc b 5MiB"), "a30 b5 .5");
  EXPECT_EQ(after(top + "malloc a 30MiB\nmalloc b 15MiB"), "a30 b15 .15");
  // 40 MiB are reserved for 30 MiB; for 30 MiB more, only 20 MiB have to be mapped.
  EXPECT_EQ(after(top + "malloc a 30MiB\nmalloc b 20MiB\nfree a\nmalloc c 40MiB"),
            ".30 b20 c40 .10");
  EXPECT_EQ(after(top + "malloc a 1KiB\nmalloc b 30MiB"), "a0.0009765625 .1.9990234375 | b30 .10");
}

TEST(AllocatorProgram, ExpandableSegmentsGiveBackWholePages) {
  const std::string top = "set expandable_segments=true\n";
  EXPECT_EQ(after(top + "malloc a 50MiB\nmalloc b 10MiB\nfree a\nempty_cache"), ".10 b10");
  EXPECT_EQ(after(top + "malloc a 50MiB\nfree a\nempty_cache"), "");
  // Unmapping memory at the front makes room for pages at the end. The front is mapped again if
  // that fits the limit.
  const std::string grown =
      "limit 160MiB\n" + top + "malloc a 50MiB\nmalloc b 10MiB\nfree a\nmalloc c 120MiB";
  EXPECT_EQ(after(grown), ".10 b10 c120");
  EXPECT_EQ(after(grown + "\nfree c\nempty_cache\nmalloc d 40MiB"), "d40 .10 b10");
}

TEST(AllocatorProgram, EmptyingTheCacheLeavesWhatIsSplit) {
  EXPECT_EQ(after("malloc a 12MiB\nmalloc b 3MiB\nfree a\nempty_cache"), "b3 .17");
}

TEST(AllocatorProgram, TakesWhatIsTooMuchForAnyDevice) {
  EXPECT_EQ(after("malloc a 2000000TiB\nmalloc b 1B"), " OOM line 1");
  EXPECT_EQ(after("malloc a 900000TiB\nmalloc b 900000TiB"), "a943718400000 OOM line 2");
}

TEST(AllocatorProgram, SaysWhatIsWrongAndWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"malloc a 1MiB\nmaloc b 1MiB",
       "line 2: there is no step \"maloc\" (did you mean \"malloc\"?)"},
      {"malloc a 1MiB\n\nmalloc a 1MiB", "line 3: \"a\" is in use since line 1"},
      {"malloc first 1MiB\nfree frist",
       "line 2: \"frist\" is not in use (did you mean \"first\"?)"},
      {"free a", "line 1: \"a\" is not in use"},
      {"malloc a 0B", "line 1: must be at least 1B, got \"0B\""},
      {"malloc a 1MiB strem=1",
       "line 1: must be stream=NUMBER, from 0 to 1000000, got \"strem=1\""},
      {"malloc a",
       "line 1: must be \"malloc NAME BYTES [stream=NUMBER]\", got 1 word after "
       "\"malloc\""},
      {"malloc a 1MiB\nlimit 1GB",
       "line 2: \"limit\" must come before the first step, which is in line 1"},
      {"set max_splt_size=1GB",
       "line 1: there is no setting \"max_splt_size\"; the settings are expandable_segments, "
       "garbage_collection_threshold, limit, max_non_split_rounding, max_split_size, "
       "memory_fraction, roundup_power2_divisions (did you mean \"max_split_size\"?)"},
      {"conf max_split_size_mb:20",
       "line 1: max_split_size_mb: must be a whole number of MiB above 20, got \"20\""},
      {"conf expandable_segments:true",
       "line 1: expandable_segments: must be True or False, got \"true\""},
      {"conf backend:cudaMallocAsync",
       "line 1: backend: must be native, as no other is modelled, got \"cudaMallocAsync\""},
      {"set roundup_power2_divisions=3",
       "settings: roundup_power2_divisions: divisions must be a power of two, or 0 for none, got "
       "\"3\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(after(text), message);
}

TEST(AllocatorConf, ReadsWhatPyTorchReads) {
  AllocatorSettings settings;
  read_alloc_conf(
      "max_split_size_mb:512, expandable_segments:True,garbage_collection_threshold:0.8,"
      "roundup_power2_divisions:[256:1,512:2],pinned_num_register_threads:8",
      settings);
  EXPECT_EQ(settings.max_split_size, Bytes{512 << 20});
  EXPECT_TRUE(settings.expandable_segments);
  EXPECT_DOUBLE_EQ(settings.garbage_collection_threshold, 0.8);
  EXPECT_EQ(settings.roundup_power2_divisions, "[256:1,512:2]");
}

}  // namespace
}  // namespace foretrace

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "import/files.h"
#include "import/plain_pickle.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

using namespace pickled;

constexpr std::int64_t kMiB = 1 << 20;

Trace read_snapshot(const std::string& bytes, const std::string& name = "x.pickle") {
  const Folder folder;
  return import_trace(folder.write(name, bytes));
}

std::string failed(const std::string& bytes) {
  const Folder folder;
  const std::string path = folder.write("x.pickle", bytes);
  const std::string message = failure([&] { import_trace(path); });
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : message;
}

/// "alloc 512 -> 512/2097152" for each event.
std::string levels(const Trace& trace) {
  std::ostringstream out;
  for (const MemoryRecord& record : trace.memory) {
    out << to_string(record.action) << " " << record.bytes << " -> " << record.total_allocated
        << "/" << record.total_reserved << "\n";
  }
  return out.str();
}

TEST(TorchMemory, CountsWholeBlocksAndNotWhatWasAskedFor) {
  // The rest of 20 MiB, 512 KiB, is too small for a block of its own, so the block is the whole
  // segment.
  const std::int64_t asked = 20 * kMiB - kMiB / 2;
  const Trace trace = read_snapshot(snapshot(
      {segment(0x1000000, 20 * kMiB, "large", {{0x1000000, 20 * kMiB, asked, "active_allocated"}}),
       segment(0x200000, 2 * kMiB, "small", {{0x200000, 2 * kMiB, 0, "inactive"}})},
      {events({{"segment_alloc", 0x1000000, 20 * kMiB, 10},
               {"alloc", 0x1000000, asked, 11},
               {"segment_alloc", 0x200000, 2 * kMiB, 12},
               {"alloc", 0x200000, 700, 13},
               {"free_requested", 0x200000, 700, 14},
               {"free_completed", 0x200000, 700, 15}})}));
  EXPECT_EQ(levels(trace),
            "segment_alloc 20971520 -> 0/20971520\n"
            "block 20447232 -> 20971520/20971520\n"
            "segment_alloc 2097152 -> 20971520/23068672\n"
            "block 700 -> 20972544/23068672\n"
            "free_requested -700 -> 20972544/23068672\n"
            "block -700 -> 20971520/23068672\n");
  EXPECT_EQ(trace.origin_ns, 10000);
  EXPECT_EQ(trace.memory.back().time_ns, 5000);
  EXPECT_EQ(trace.tick_ns, 1000);
  EXPECT_TRUE(trace.has_times);
  EXPECT_TRUE(trace.notes.empty());
}

/// Blocks that a device allocates for these requests, with a new segment whenever one is needed.
TEST(TorchMemory, ReusesSplitsAndMergesAsTheAllocatorDoes) {
  // A block of 16 MiB is freed, and 6 MiB are taken from its front; the rest stays free.
  const Trace trace = read_snapshot(
      snapshot({segment(0x1000000, 16 * kMiB, "large",
                        {{0x1000000, 6 * kMiB, 6 * kMiB, "active_allocated"},
                         {0x1000000 + 6 * kMiB, 10 * kMiB, 0, "inactive"}})},
               {events({{"segment_alloc", 0x1000000, 16 * kMiB, 1},
                        {"alloc", 0x1000000, 16 * kMiB, 2},
                        {"free_completed", 0x1000000, 16 * kMiB, 3},
                        {"alloc", 0x1000000, 6 * kMiB, 4},
                        {"alloc", 0x1000000 + 6 * kMiB, 3 * kMiB, 5},
                        {"free_completed", 0x1000000 + 6 * kMiB, 3 * kMiB, 6},
                        {"alloc", 0x1000000 + 6 * kMiB, 10 * kMiB - 100, 7},
                        {"free_completed", 0x1000000 + 6 * kMiB, 10 * kMiB - 100, 8}})}));
  std::vector<std::int64_t> allocated;
  for (const MemoryRecord& record : trace.memory)
    allocated.push_back(record.total_allocated / kMiB);
  EXPECT_EQ(allocated, (std::vector<std::int64_t>{0, 16, 0, 6, 9, 6, 16, 6}));
  EXPECT_TRUE(trace.notes.empty());
}

TEST(TorchMemory, InfersWhatWasThereInFrontOfTheFirstEvent) {
  const Trace trace =
      read_snapshot(snapshot({segment(0x200000, 2 * kMiB, "small",
                                      {{0x200000, 1024, 1000, "active_allocated"},
                                       {0x200400, 2 * kMiB - 1024, 0, "inactive"}})},
                             {events({{"free_completed", 0x200400, 500, 5},
                                      {"alloc", 0x200400, 600, 6},
                                      {"free_requested", 0x200400, 600, 7},
                                      {"free_completed", 0x200400, 600, 7}})}));
  EXPECT_EQ(levels(trace),
            "block -500 -> 1024/2097152\nblock 600 -> 2048/2097152\n"
            "free_requested -600 -> 2048/2097152\nblock -600 -> 1024/2097152\n");
  ASSERT_EQ(trace.notes.all().size(), 1U);
  EXPECT_TRUE(
      trace.notes.all()[0].text.starts_with("the history begins when memory was already in use"));
}

TEST(TorchMemory, SaysThatEntriesAreMissing) {
  const Trace trace = read_snapshot(
      snapshot({segment(0x200000, 2 * kMiB, "small", {{0x200000, 2 * kMiB, 0, "inactive"}})},
               {events({{"segment_alloc", 0x200000, 2 * kMiB, 1}, {"alloc", 0x200000, 512, 2}})}));
  EXPECT_EQ(trace.notes.count(
                "entries are missing: the history does not lead to the state of the snapshot"),
            1);
  EXPECT_EQ(trace.memory.back().total_allocated, 512);
}

TEST(TorchMemory, FollowsExpandableSegments) {
  const Trace trace = read_snapshot(snapshot({dict({{"address", number(0x200000)},
                                                    {"total_size", number(2 * kMiB)},
                                                    {"stream", number(3)},
                                                    {"segment_type", text("small")},
                                                    {"is_expandable", "\x88"},
                                                    {"device", number(0)},
                                                    {"blocks", "]"}})},
                                             {events({{"segment_map", 0x200000, 4 * kMiB, 1},
                                                      {"alloc", 0x200000, 3 * kMiB + 5, 2},
                                                      {"free_completed", 0x200000, 3 * kMiB + 5, 3},
                                                      {"segment_unmap", 0x400000, 2 * kMiB, 4}})}));
  EXPECT_EQ(levels(trace),
            "segment_map 4194304 -> 0/4194304\nblock 3145733 -> 3146240/4194304\n"
            "block -3145733 -> 0/4194304\nsegment_unmap -2097152 -> 0/2097152\n");
  EXPECT_EQ(trace.streams.size(), 2U);
}

TEST(TorchMemory, RoundsAsTheSettingsSay) {
  std::string divisions = "}(";
  for (std::int64_t size = 1; size <= 32768; size *= 2)
    divisions += text(std::to_string(size)) + number(4);
  divisions += "u";
  const Trace trace = read_snapshot(
      snapshot({}, {events({{"alloc", 0x200000, 5 * kMiB + 1, 1}})},
               {{"allocator_settings", dict({{"roundup_power2_divisions", divisions}})}}));
  EXPECT_EQ(trace.memory[0].total_allocated, 6 * kMiB);
  EXPECT_TRUE(trace.metadata.contains("allocator_settings"));
}

TEST(TorchMemory, KeepsStacksStreamsOutOfMemoryAndAnnotations) {
  const std::string frames = list({frame("a.py", 3, "f"), frame("C:\\b c.py", 4, "g;h")});
  const auto annotation = [](const char* stage, std::int64_t time) {
    return dict({{"stage", text(stage)},
                 {"name", text("step")},
                 {"device", number(1)},
                 {"time_us", number(time)}});
  };
  const std::string oom = dict({{"action", text("oom")},
                                {"size", number(99)},
                                {"stream", number(7)},
                                {"device_free", number(1234)},
                                {"time_us", number(30)},
                                {"frames", "]"}});
  const Trace trace = read_snapshot(
      snapshot({}, {"]", list({event({"alloc", 512, 512, 10}, frames), oom})},
               {{"external_annotations",
                 list({annotation("START", 5), annotation("END", 40), annotation("END", 50)})}}));
  EXPECT_EQ(trace.names[trace.memory[0].stack], "a.py:3 f;C:\\b c.py:4 g,h");
  EXPECT_EQ(trace.memory[0].device, 1);
  EXPECT_EQ(trace.memory[1].action, MemoryAction::out_of_memory);
  EXPECT_EQ(trace.memory[1].address, 1234U);
  EXPECT_EQ(trace.streams[trace.memory[1].stream].id, 7);
  ASSERT_EQ(trace.hosts.size(), 1U);
  EXPECT_EQ(trace.hosts[0].duration_ns, 35000);
  EXPECT_EQ(trace.notes.count("annotations without a beginning or an end, left out"), 1);
}

TEST(TorchMemory, ReadsOldSnapshots) {
  // Old snapshots have no times and no addresses of blocks; each block has its frames in a history.
  const std::string block =
      dict({{"size", number(1024)},
            {"state", text("active_allocated")},
            {"history", list({dict({{"addr", number(0x200000)},
                                    {"real_size", number(900)},
                                    {"frames", list({frame("m.py", 1, "f")})}})})}});
  const std::string rest = dict({{"size", number(2 * kMiB - 1024)}, {"state", text("inactive")}});
  const std::string old = dict({{"address", number(0x200000)},
                                {"total_size", number(2 * kMiB)},
                                {"stream", number(0)},
                                {"segment_type", text("small")},
                                {"blocks", list({block, rest})}});
  const std::string untimed = dict({{"action", text("alloc")},
                                    {"addr", number(0x200000)},
                                    {"size", number(900)},
                                    {"stream", number(0)}});
  const Trace trace = read_snapshot(snapshot({old}, {list({untimed})}));
  EXPECT_FALSE(trace.has_times);
  EXPECT_EQ(trace.blocks[0].address, 0x200000U);
  EXPECT_EQ(trace.blocks[1].address, 0x200400U);
  EXPECT_EQ(trace.blocks[0].requested_bytes, 900);
  EXPECT_EQ(trace.names[trace.blocks[0].stack], "m.py:1 f");
  EXPECT_EQ(read_snapshot(file(list({old}))).segments.size(), 1U);
}

TEST(TorchMemory, ReadsSnapshotsKeptAsJson) {
  const std::string json = R"({"segments": [{"device": 0, "address": 2097152, "total_size": 2097152,
    "stream": 0, "segment_type": "small", "blocks": [{"address": 2097152, "size": 2097152,
    "requested_size": 2097000, "state": "active_allocated", "frames": []}]}],
    "device_traces": [[{"action": "alloc", "addr": 2097152, "size": 2097000, "stream": 0,
    "time_us": 5, "frames": [{"filename": "a.py", "line": 1, "name": "f"}]}]]})";
  const Trace trace = read_snapshot(json, "x.json");
  EXPECT_EQ(trace.format, "torch_memory");
  EXPECT_EQ(trace.segments.size(), 1U);
  EXPECT_EQ(trace.memory.size(), 1U);
  EXPECT_THROW(read_snapshot(std::string(100'000, '['), "x.json"), TraceError);
}

TEST(TorchMemory, KnowsTheStatesOfBlocksByAllTheirNames) {
  const Trace trace = read_snapshot(snapshot({segment(0x200000, 2560, "small",
                                                      {{0x200000, 512, 512, "active_allocated"},
                                                       {0x200200, 512, 512, "allocated"},
                                                       {0x200400, 512, 512, "active_pending_free"},
                                                       {0x200600, 512, 512, "active_awaiting_free"},
                                                       {0x200800, 512, 512, "inactive"}})},
                                             {}));
  std::vector<BlockState> states;
  for (const MemoryBlock& block : trace.blocks) states.push_back(block.state);
  EXPECT_EQ(states,
            (std::vector{BlockState::allocated, BlockState::allocated, BlockState::pending_free,
                         BlockState::pending_free, BlockState::inactive}));
}

TEST(TorchMemory, LeavesOutOddElementsAndSaysSo) {
  const Trace trace = read_snapshot(
      snapshot({segment(0x200000, 2 * kMiB, "small", {{0x200000, 512, 1, "dreaming"}}), number(3),
                segment(0x800000, -5, "small", {})},
               {list({event({"alloc", 512, -1, 1}), event({"explode", 512, 1, 1}), "N",
                      event({"alloc", 512, 512, INT64_MAX})})}));
  EXPECT_EQ(trace.memory.size(), 1U);
  EXPECT_EQ(trace.segments.size(), 1U);
  for (const char* note :
       {"elements that are not dicts, left out", "elements of an impossible size, left out",
        "events of an unknown action, left out", "blocks in an unknown state, left out",
        "elements with an impossible time", "segments whose blocks do not add up to their size"})
    EXPECT_GE(trace.notes.count(note), 1) << note;
}

TEST(TorchMemory, ReadsASharedListOnce) {
  // The same blocks in a thousand segments, and the same long frame in as many stacks.
  std::string segments = "](";
  const std::string blocks = list({dict({{"size", number(512)}, {"state", text("inactive")}})});
  for (int i = 0; i < 1000; ++i) {
    segments += dict({{"address", number(i * 4096)},
                      {"total_size", number(512)},
                      {"blocks", i == 0 ? blocks + "q\x01" : "h\x01"}});
  }
  segments += "e";
  const Trace trace = read_snapshot(file(dict({{"segments", segments}, {"device_traces", "]"}})));
  EXPECT_EQ(trace.blocks.size(), 1U);
  EXPECT_EQ(trace.notes.count("lists that occur twice, read once"), 999);

  std::string histories = "](";
  const std::string long_name(1 << 20, 'x');
  for (int i = 0; i < 500; ++i) {
    const std::string name = i == 0 ? text(long_name) + "q\x02" : "h\x02";
    histories +=
        event({"alloc", 512 * i, 512, i},
              list({dict({{"filename", text("f")}, {"line", number(i)}, {"name", name}})}));
  }
  const Trace shared =
      read_snapshot(file(dict({{"segments", "]"}, {"device_traces", list({histories + "e"})}})));
  EXPECT_EQ(shared.memory.size(), 500U);
  EXPECT_GE(shared.notes.all().size(), 1U);
}

TEST(TorchMemory, SaysThatASnapshotHasNoHistory) {
  const Trace trace = read_snapshot(snapshot(
      {segment(0x200000, 2 * kMiB, "small", {{0x200000, 2 * kMiB, 700, "active_allocated"}})},
      {events({})}));
  EXPECT_TRUE(lacks_history(trace));
  ASSERT_EQ(trace.notes.all().size(), 1U);
  EXPECT_EQ(trace.notes.all()[0].text,
            "a memory snapshot without history: only what was held at its end is known; call "
            "torch.cuda.memory._record_memory_history() first, before the run");
  EXPECT_EQ(failure([&] { infer(trace); }), "must record a run, but is " + std::string(kNoHistory));
}

TEST(TorchMemory, RefusesWhatIsNoSnapshot) {
  const std::string other =
      "must be a memory snapshot of PyTorch, a dict with \"segments\" and \"device_traces\", but "
      "is something else";
  EXPECT_EQ(failed(file(dict({{"a", number(1)}}))), other);
  EXPECT_EQ(failed(file(list({number(1)}))), other);
  EXPECT_EQ(failed(file(number(1))), other);
  EXPECT_EQ(failed(snapshot({}, {"]"})),
            "must contain segments or events of an allocator, but is an empty snapshot");
  EXPECT_EQ(failed("\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02id\x85R."),
            "must be a pickle of plain data, but it wants to call os.system, which is never done, "
            "at byte 14");
  EXPECT_EQ(failed(std::string("PK\x03\x04torch.save", 14)),
            "must be a trace, but is a zip archive; unpack it first, or rename it to end in .zip");
  EXPECT_EQ(failed("\x80\x04"),
            "the pickle is cut off: it needs 1 more bytes and has 0, at byte 2");
}

TEST(TorchMemory, ACutOrAFlippedByteIsAnErrorOrATrace) {
  const std::string whole = snapshot(
      {segment(0x200000, 2 * kMiB, "small", {{0x200000, 2 * kMiB, 5, "active_allocated"}})},
      {events({{"segment_alloc", 0x200000, 2 * kMiB, 1}, {"alloc", 0x200000, 5, 2}})});
  const Folder folder;
  // The bytes of the trace that is read, or the reason why there is none.
  const auto result_of = [&](const std::string& bytes) {
    const std::string path = folder.write("x.pickle", bytes);
    try {
      write_ftrace(import_trace(path), folder / "y.ftrace");
      read_ftrace(folder / "y.ftrace");
      return contents_of(folder / "y.ftrace");
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  const std::string sound = result_of(whole);
  std::size_t tried = 0, noticed = 0;
  for (std::size_t i = 0; i < whole.size(); i += 3) {
    std::string flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x55);
    EXPECT_NE(result_of(whole.substr(0, i)), sound) << i;
    noticed += result_of(flipped) != sound ? 1U : 0U;
    ++tried;
  }
  // A change of nearly every byte is noticed; the others are in fields that a trace cannot store.
  EXPECT_GT(noticed, tried * 8 / 10) << tried;
}

struct Recorded {
  const char* file;
  std::size_t events, segments, blocks;
  std::int64_t peak_allocated, peak_reserved, end_allocated;
};

TEST(TorchMemory, RealSnapshotsEndWithTheBlocksThatTheAllocatorsRulesGive) {
  const char* const corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  const std::string prefix = "/snap-lm-seqlen/forward_and_backward_memory_snapshot_";
  const Recorded all[] = {
      {"100", 11300, 65, 213, 695675904, 786432000, 423759360},
      {"200", 11480, 83, 224, 1234635264, 1390411776, 464721920},
      {"200_mixed_precision", 12976, 88, 229, 984657920, 1205862400, 426733056}};
  for (const Recorded& one : all) {
    SCOPED_TRACE(one.file);
    const Trace trace = import_trace(corpus + prefix + one.file + ".pickle");
    EXPECT_EQ(trace.memory.size(), one.events);
    EXPECT_EQ(trace.segments.size(), one.segments);
    EXPECT_EQ(trace.blocks.size(), one.blocks);
    std::int64_t allocated = 0, reserved = 0;
    for (const MemoryRecord& record : trace.memory) {
      allocated = std::max(allocated, record.total_allocated);
      reserved = std::max(reserved, record.total_reserved);
    }
    EXPECT_EQ(allocated, one.peak_allocated);
    EXPECT_EQ(reserved, one.peak_reserved);
    EXPECT_EQ(trace.memory.back().total_allocated, one.end_allocated);
    // Every block of the snapshot has the size that the replay gave it, and none is missing.
    EXPECT_TRUE(trace.notes.empty()) << trace.notes.all()[0].text;
  }
}

TEST(TorchMemory, ASnapshotIsNoRankOfTheTraceBesideIt) {
  const Folder folder;
  folder.write(
      "memory.pickle",
      snapshot({segment(0x200000, 2 * kMiB, "small", {{0x200000, 512, 1, "inactive"}})}, {}));
  EXPECT_EQ(import_all(folder.path()).size(), 1U) << "alone it is what was asked for";
  folder.write("trace.json",
               R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
                   "ts": 1, "dur": 2, "args": {"stream": 7}}]})");
  const std::vector<Trace> traces = import_all(folder.path());
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].format, "kineto");
  EXPECT_EQ(traces[0].notes.count(
                "memory snapshots next to other traces, left out; to use one, give its file alone"),
            1);
  EXPECT_EQ(traces[0].notes.count(kRepeatedRank), 0);
}

}  // namespace
}  // namespace foretrace

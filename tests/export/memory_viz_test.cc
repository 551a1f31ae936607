#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "export/torch_memory/pickle_writer.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

/// The whole content of a snapshot, so that two can be compared.
std::string content(const Trace& trace) {
  std::ostringstream out;
  const auto stream = [&](std::uint32_t id) { return id == kNone ? 0 : trace.streams[id].id; };
  out << trace.origin_ns << " " << trace.has_times << "\n";
  for (const MemoryRecord& one : trace.memory) {
    out << to_string(one.action) << " " << one.time_ns << " " << one.address << " " << one.bytes
        << " " << one.total_allocated << " " << one.total_reserved << " " << stream(one.stream)
        << " " << one.device << " " << trace.names[one.stack] << "\n";
  }
  for (const MemorySegment& one : trace.segments) {
    out << one.address << " " << one.bytes << " " << stream(one.stream) << " " << one.device << " "
        << one.is_large << one.is_expandable << " " << trace.names[one.pool] << " "
        << trace.names[one.stack] << "\n";
  }
  for (const MemoryBlock& one : trace.blocks) {
    out << one.address << " " << one.bytes << " " << one.requested_bytes << " " << one.segment
        << " " << to_string(one.state) << " " << trace.names[one.stack] << "\n";
  }
  for (const HostRecord& one : trace.hosts) {
    out << trace.names[one.name] << " " << one.start_ns << " " << one.duration_ns << " "
        << trace.threads[one.thread].id << "\n";
  }
  for (const auto& [key, value] : trace.metadata) out << key << "=" << value << "\n";
  for (const Note& note : trace.notes.all()) out << note.text << " " << note.count << "\n";
  return out.str();
}

Trace written_and_read(const Trace& trace) {
  const Folder folder;
  export_trace(trace, folder / "out.pickle");
  return import_trace(folder / "out.pickle");
}

/// An allocator with everything that a snapshot can contain.
Trace everything() {
  Trace trace;
  trace.format = "torch_memory";
  trace.tick_ns = 1000;
  trace.origin_ns = 1'762'906'655'000'994'000;
  trace.threads = {{.process = 0, .id = 0, .name = "device 0"}};
  trace.streams = {{0, 0}, {0, 7}, {1, 0}};
  const NameId stack = trace.names.intern("a.py:3 f;C:\\b c.py:4 g;:0 h;??:0 at::x(int)");
  const auto event = [&](std::int64_t time, MemoryAction action, std::uint64_t address,
                         std::int64_t bytes, std::int16_t device = 0) {
    MemoryRecord record;
    record.time_ns = time, record.action = action, record.address = address, record.bytes = bytes;
    record.device = device, record.stack = stack;
    record.stream = device == 0 ? 1 : 2;
    trace.memory.push_back(record);
  };
  event(0, MemoryAction::segment_alloc, 0xffff800000200000U, 2 << 20);
  event(1000, MemoryAction::block, 0xffff800000200000U, 700);
  event(2000, MemoryAction::block, 0xffff800000200400U, 1024);
  event(3000, MemoryAction::free_requested, 0xffff800000200400U, -1024);
  event(4000, MemoryAction::out_of_memory, 5'000'000'000, 9'000'000'000);
  event(5000, MemoryAction::snapshot, 0, 0);
  event(6000, MemoryAction::segment_map, 4096, 4096, 1);
  trace.segments.push_back({.address = 0xffff800000200000U,
                            .bytes = 2 << 20,
                            .stream = 1,
                            .stack = stack,
                            .pool = trace.names.intern("[0,3]"),
                            .device = 0,
                            .is_large = false,
                            .is_expandable = false});
  trace.segments.push_back({.address = 4096,
                            .bytes = 4096,
                            .stream = 2,
                            .stack = {},
                            .pool = trace.names.intern("[0,0]"),
                            .device = 1,
                            .is_large = true,
                            .is_expandable = true});
  trace.blocks.push_back({0xffff800000200000U, 1024, 700, 0, stack, BlockState::allocated});
  trace.blocks.push_back({0xffff800000200400U, 1024, 1024, 0, {}, BlockState::pending_free});
  trace.blocks.push_back({0xffff800000200800U, (2 << 20) - 2048, 0, 0, {}, BlockState::inactive});
  trace.blocks.push_back({4096, 4096, 0, 1, {}, BlockState::inactive});
  HostRecord range;
  range.kind = HostKind::annotation, range.name = trace.names.intern("step \"1\"");
  range.start_ns = 1000, range.duration_ns = 4000;
  trace.hosts.push_back(range);
  trace.metadata["allocator_settings"] =
      R"({"expandable_segments":true,"gc":0.5,"x":[1,"y",null]})";
  return trace;
}

TEST(MemoryViz, WritesAllThatASnapshotHolds) {
  const Trace once = written_and_read(everything());
  Trace expected = everything();
  for (std::size_t i = 0; i < expected.memory.size(); ++i) {
    // The levels are computed when a snapshot is read.
    expected.memory[i].total_allocated = once.memory.at(i).total_allocated;
    expected.memory[i].total_reserved = once.memory.at(i).total_reserved;
  }
  expected.notes = once.notes;
  EXPECT_EQ(content(once), content(expected));
  EXPECT_EQ(content(written_and_read(once)), content(once));
}

TEST(MemoryViz, SplitsLongListsAndReadsThemBack) {
  Trace trace = everything();
  for (int i = 0; i < 50'000; ++i) {
    MemoryRecord record = trace.memory[1];
    record.time_ns = 10'000 + i * std::int64_t{1000};
    record.address = 0x10000000 + static_cast<std::uint64_t>(i) * 4096;
    record.stack = trace.names.intern("f.py:" + std::to_string(i) + " f");
    trace.memory.push_back(record);
  }
  const Trace once = written_and_read(trace);
  ASSERT_EQ(once.memory.size(), trace.memory.size());
  // The history is written device by device, so the last event is that of device 1.
  EXPECT_EQ(once.names[once.memory[once.memory.size() - 2].stack], "f.py:49999 f");
}

/// A profiler's trace: two blocks are allocated, one of them is freed, and so is one from before
/// the recording.
Trace profiled() {
  Trace trace;
  trace.format = "kineto";
  trace.origin_ns = 1'000'000'000;
  trace.threads = {{.process = 1, .id = 1, .name = {}}, {.process = 1, .id = 2, .name = {}}};
  const auto host = [&](HostKind kind, const char* name, std::int64_t start,
                        std::int64_t duration) {
    HostRecord record;
    record.kind = kind, record.name = trace.names.intern(name);
    record.start_ns = start, record.duration_ns = duration;
    trace.hosts.push_back(record);
  };
  host(HostKind::op, "aten::empty", 1100, 100);
  host(HostKind::python, "train.py(88): step", 500, 5000);
  host(HostKind::op, "aten::add", 1000, 1000);
  const auto event = [&](std::int64_t time, std::uint64_t address, std::int64_t bytes,
                         std::uint16_t thread = 0, std::int16_t device = 0) {
    MemoryRecord record;
    record.time_ns = time, record.address = address, record.bytes = bytes;
    record.thread = thread, record.device = device;
    trace.memory.push_back(record);
  };
  event(5600, 0x7f0000200000, -512);
  event(1150, 0x7f0000200000, 512);
  event(1990, 0x7f0000200400, 1024);
  event(2500, 0x7f0009000000, -4096);
  event(2600, 0x7f0002000000, 30 << 20, 1);
  event(2700, 0x1234, 8, 0, -1);
  return trace;
}

TEST(MemoryViz, MakesSegmentsAroundWhatIsAliveAtTheEndOfAProfile) {
  const Trace made = written_and_read(profiled());
  ASSERT_EQ(made.segments.size(), 2U);
  EXPECT_EQ(made.segments[0].address, 0x7f0000200000U);
  EXPECT_EQ(made.segments[0].bytes, 2 << 20);
  EXPECT_EQ(made.segments[1].address, 0x7f0002000000U);
  EXPECT_EQ(made.segments[1].bytes, 30 << 20);
  ASSERT_EQ(made.blocks.size(), 4U);
  EXPECT_EQ(made.blocks[1].address, 0x7f0000200400U);
  EXPECT_EQ(made.blocks[1].state, BlockState::allocated);
  EXPECT_EQ(made.blocks[2].state, BlockState::inactive);
  EXPECT_EQ(made.notes.count("segments whose blocks do not add up to their size"), 0);
}

// After the first event 10000 bytes are allocated: 9488 of them were allocated before the
// recording, 4096 of these in the block that is freed.
TEST(MemoryViz, KeepsWhatWasInUseBeforeTheRecording) {
  Trace trace = profiled();
  trace.memory[1].total_allocated = 10'000;
  const Trace made = written_and_read(trace);
  ASSERT_EQ(made.segments.size(), 3U);
  EXPECT_EQ(made.segments[2].bytes, 10'000 - 512 - 4096);
  EXPECT_EQ(made.segments[2].device, 0);
  EXPECT_EQ(made.segments[2].address, 0x7f0009200000U);
  EXPECT_EQ(made.blocks.back().state, BlockState::allocated);
  EXPECT_EQ(made.names[made.blocks.back().stack], "recording:0 in use before the recording");
}

TEST(MemoryViz, ShowsTheOpsAroundAnEventAsItsFrames) {
  const Trace made = written_and_read(profiled());
  std::vector<std::string> events;
  for (const MemoryRecord& record : made.memory) {
    events.push_back(std::string(to_string(record.action)) + " " + std::to_string(record.bytes) +
                     " " + std::string(made.names[record.stack]));
  }
  EXPECT_EQ(events, (std::vector<std::string>{
                        "block 512 op:0 aten::empty;op:0 aten::add;train.py:88 step",
                        "block 1024 op:0 aten::add;train.py:88 step",
                        "free_requested -4096 train.py:88 step", "block -4096 train.py:88 step",
                        "block 31457280 ", "free_requested -512 ", "block -512 "}));
}

TEST(MemoryViz, RefusesATraceThatHasNothingForIt) {
  const Folder folder;
  const auto refusal = [&](const Trace& trace) {
    try {
      export_trace(trace, folder / "x.pickle");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("written");
  };
  Trace trace = profiled();
  for (MemoryRecord& record : trace.memory) record.address = 0;
  EXPECT_TRUE(refusal(trace).starts_with("a memory snapshot must have addresses"))
      << refusal(trace);
  trace.memory.erase(trace.memory.begin(), trace.memory.end() - 1);
  EXPECT_TRUE(refusal(trace).starts_with("a memory snapshot is of a device")) << refusal(trace);
  trace.memory.clear();
  EXPECT_EQ(refusal(trace),
            folder / "x.pickle" +
                ": a memory snapshot must have memory events, but the trace has none; "
                "record it with profile_memory=True (torch.profiler), --memory (foretrace collect) "
                "or --cuda-memory-usage=true (nsys)");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(MemoryViz, LeavesNoHalfWrittenFile) {
  const Folder folder;
  {
    PickleWriter writer(folder / "x.pickle");
    writer.begin_list();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW(PickleWriter(folder / "no/such/folder/x.pickle"), Error);
}

TEST(MemoryViz, RealSnapshotsComeBackTheSame) {
  const char* const corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    if (entry.path().extension() != ".pickle") continue;
    SCOPED_TRACE(entry.path().filename());
    const Trace trace = import_trace(entry.path());
    const Folder folder;
    export_trace(trace, folder / "out.pickle");
    // Too long to be shown.
    EXPECT_TRUE(content(import_trace(folder / "out.pickle")) == content(trace));
    EXPECT_LT(std::filesystem::file_size(folder / "out.pickle"), entry.file_size() * 2);
  }
}

}  // namespace
}  // namespace foretrace

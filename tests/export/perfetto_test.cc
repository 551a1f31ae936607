#include <gtest/gtest.h>

#include "cli/command_line.h"
#include "export/perfetto/perfetto_rows.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "support/corpus.h"
#include "support/records_as_text.h"

namespace foretrace {
namespace {

void expect_same_through_perfetto(const std::vector<std::string>& paths) {
  const Folder folder;
  for (const std::string& path : paths) {
    std::vector<Trace> traces;
    try {
      traces = import_all(path);
    } catch (const Error&) {
      continue;  // Not a trace; other tests cover that.
    }
    for (const Trace& trace : traces) {
      if (!trace.has_times || trace.record_count() == 0) continue;
      export_trace(trace, folder / "x.pftrace");
      const Trace again = import_trace(folder / "x.pftrace");
      EXPECT_EQ(first_difference(trace, again), "") << path;
      EXPECT_EQ(trace.metadata, again.metadata) << path;
      EXPECT_EQ(trace.rank, again.rank) << path;
      EXPECT_EQ(trace.world_size, again.world_size) << path;
      EXPECT_EQ(trace.tick_ns, again.tick_ns) << path;
      EXPECT_TRUE(again.notes.empty()) << path << " " << again.notes.all().front().text;
    }
  }
}

TEST(Perfetto, ExportOfTheSamplesReadsBackTheSame) { expect_same_through_perfetto(sample_files()); }

TEST(Perfetto, ExportOfTheCorpusReadsBackTheSame) {
  const std::vector<std::string> paths = corpus_files({".json", ".json.gz", ".sqlite"});
  if (paths.empty()) GTEST_SKIP() << kNoCorpus;
  expect_same_through_perfetto(paths);
}

TEST(Perfetto, SlicesThatOverlapGoToAnotherRow) {
  std::vector<Slice> slices = {{0, 100, 0}, {50, 150, 1}, {100, 200, 2}, {10, 20, 3}};
  EXPECT_EQ(assign_rows(slices, true), 2U);
  const auto row_of = [&](std::uint32_t record) {
    for (const Slice& slice : slices) {
      if (slice.record == record) return slice.row;
    }
    return 99U;
  };
  EXPECT_EQ(row_of(0), 0U);
  EXPECT_EQ(row_of(1), 1U);
  EXPECT_EQ(row_of(2), 0U);
  EXPECT_EQ(row_of(3), 0U);  // Inside the first one.
  EXPECT_EQ(assign_rows(slices, false), 2U);
  EXPECT_EQ(row_of(3), 1U);
}

Trace graph_launches() {
  Trace trace;
  trace.threads.push_back({.process = 1, .id = 2, .name = "main"});
  trace.streams.push_back({.device = 0, .id = 7});
  for (const std::int64_t start : {20, 90}) {
    trace.devices.push_back({.start_ns = start,
                             .duration_ns = 100,
                             .name = trace.names.intern("gemm"),
                             .correlation = 9});
  }
  trace.hosts.push_back({.duration_ns = 10,
                         .name = trace.names.intern("cudaGraphLaunch"),
                         .correlation = 9,
                         .kind = HostKind::runtime});
  trace.memory.push_back({.time_ns = 5, .bytes = 512, .total_allocated = 512, .device = 0});
  return trace;
}

TEST(Perfetto, ProtocDecodesWhatIsWritten) {
  if (std::system("protoc --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "there is no protoc (scripts/setup.sh all)";
  const Folder folder;
  export_trace(graph_launches(), folder / "x.pftrace");
  const std::string command =
      "protoc --decode_raw < '" + (folder / "x.pftrace") + "' > '" + (folder / "x.txt") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string text = contents_of(folder / "x.txt");
  const auto count = [&](const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("    9: 1\n"), 3);           // Slices that begin,
  EXPECT_EQ(count("    9: 2\n"), 3);           // end,
  EXPECT_EQ(count("    9: 3\n"), 2);           // instants: the head and the allocation,
  EXPECT_EQ(count("    9: 4\n"), 1);           // and a counter.
  EXPECT_EQ(count("      2: \"gemm\"\n"), 1);  // Interned once.
  EXPECT_EQ(count("    47: 0x000000000000000"), 2);
  EXPECT_EQ(count("    48: 0x000000000000000"), 2);
  EXPECT_EQ(count("    2: \"stream 7\"\n"), 2);  // The kernels overlap.
}

TEST(Perfetto, ATraceCutAnywhereIsReadOrRefusedClearly) {
  const Folder folder;
  export_trace(graph_launches(), folder / "x.pftrace");
  const std::string whole = contents_of(folder / "x.pftrace");
  int read = 0;
  for (std::size_t size = 0; size < whole.size(); size += 3) {
    const std::string path = folder.write("cut.pftrace", whole.substr(0, size));
    try {
      read += import_trace(path).hosts.empty() ? 0 : 1;
    } catch (const TraceError& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_GT(read, 0);
}

/// The following tests write traces by hand, as Perfetto's own library writes them.
std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7U) bytes += static_cast<char>(value | 0x80U);
  return bytes + static_cast<char>(value);
}
std::string number(std::uint32_t field, std::uint64_t value) {
  return varint(field << 3U) + varint(value);
}
std::string text(std::uint32_t field, const std::string& value) {
  return varint(field << 3U | 2U) + varint(value.size()) + value;
}

TEST(Perfetto, SlicesOfOtherProgramsAreAnnotationsOnTheirThreads) {
  // A clock of its own, in microseconds, whose times are relative to the previous one.
  const std::string snapshot =
      text(6, text(1, number(1, 6) + number(2, 5000)) +
                  text(1, number(1, 64) + number(2, 0) + number(3, 1) + number(4, 1000)));
  const std::string defaults = text(59, number(58, 64) + text(11, number(11, 77)));
  const std::string sequence = number(10, 3);
  const std::string descriptor =
      text(60, number(1, 77) + text(4, number(1, 10) + number(2, 11) + text(5, "worker")));
  const auto event = [&](std::uint64_t delta, const std::string& what) {
    return text(1, number(8, delta) + sequence + text(11, what));
  };
  const std::string file =
      text(1, snapshot + defaults + sequence + number(13, 1)) + text(1, sequence + descriptor) +
      event(1, number(9, 1) + text(23, "outer") + text(22, "app")) +
      event(1, number(9, 1) + text(23, "inner")) + event(2, number(9, 2)) + event(3, number(9, 2));
  const Folder folder;
  const Trace trace = import_trace(folder.write("x.perfetto-trace", file));
  ASSERT_EQ(trace.hosts.size(), 2U);
  EXPECT_EQ(trace.names[trace.hosts[0].name], "outer");
  EXPECT_EQ(trace.hosts[0].kind, HostKind::annotation);
  EXPECT_EQ(trace.hosts[0].duration_ns, 6000);
  EXPECT_EQ(trace.hosts[1].start_ns, 1000);
  EXPECT_EQ(trace.hosts[1].duration_ns, 2000);
  EXPECT_EQ(trace.origin_ns, 6000);
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads[0].process, 10);
  EXPECT_EQ(trace.threads[0].id, 11);
  EXPECT_EQ(trace.threads[0].name, "worker");
}

TEST(Perfetto, ASliceWithoutAnEndEndsWithTheTraceAndIsCounted) {
  const auto event = [](std::uint64_t time, const std::string& what) {
    return text(1, number(8, time) + number(10, 3) + text(11, what));
  };
  const Folder folder;
  const Trace trace = import_trace(folder.write(
      "x.pftrace", event(1, number(9, 1) + text(23, "outer")) +
                       event(2, number(9, 1) + text(23, "inner")) + event(5, number(9, 2))));
  ASSERT_EQ(trace.hosts.size(), 2U);
  EXPECT_EQ(trace.hosts[0].duration_ns, 4);
  EXPECT_EQ(trace.notes.count("slices without an end, ended with the trace"), 1);
}

TEST(Perfetto, ATraceWithoutTrackEventsIsRefused) {
  const Folder folder;
  const std::string path =
      folder.write("x.pftrace", text(1, number(8, 5) + number(10, 1)) + text(1, number(8, 6)));
  EXPECT_THROW(import_trace(path), TraceError);
}

}  // namespace
}  // namespace foretrace

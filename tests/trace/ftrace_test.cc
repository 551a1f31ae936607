#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "support/folder.h"
#include "trace/ftrace_bytes.h"
#include "trace/ftrace_section.h"
#include "trace/ftrace_tables.h"
#include "trace/random_trace.h"

namespace foretrace {
namespace {

/// Compares the tables of two traces column by column.
class Comparison {
 public:
  explicit Comparison(Trace& other) : other_(other) {}

  template <class Row, class Columns>
  void table(std::string_view name, const std::vector<Row>& rows, Columns&& columns) {
    const std::vector<Row>& others = rows_of<Row>();
    ASSERT_EQ(rows.size(), others.size()) << name;
    columns([&](std::string_view column, auto member) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].*member, others[i].*member) << name << "." << column << " row " << i;
      }
    });
  }

 private:
  template <class Row>
  const std::vector<Row>& rows_of() const;

  Trace& other_;
};

#define ROWS_OF(Row, member)                                 \
  template <>                                                \
  const std::vector<Row>& Comparison::rows_of<Row>() const { \
    return other_.member;                                    \
  }
ROWS_OF(HostRecord, hosts)
ROWS_OF(DeviceRecord, devices)
ROWS_OF(SyncRecord, syncs)
ROWS_OF(MemoryRecord, memory)
ROWS_OF(LinkRecord, links)
ROWS_OF(GraphEdge, graph_edges)
ROWS_OF(MemorySegment, segments)
ROWS_OF(MemoryBlock, blocks)
ROWS_OF(TensorRecord, tensors)
ROWS_OF(OpDetails, op_details)
ROWS_OF(CapturedNode, captured)
ROWS_OF(CollectiveDetails, collectives)
ROWS_OF(LaunchShape, launches)
ROWS_OF(Thread, threads)
ROWS_OF(Stream, streams)
ROWS_OF(Device, properties)
#undef ROWS_OF

void expect_same(Trace& a, Trace& b) {
  Comparison comparison(b);
  ftrace::each_lane_table(a, comparison);
  ftrace::each_record_table(a, comparison);
  ftrace::each_state_table(a, comparison);
  ftrace::each_detail_table(a, comparison);
  ASSERT_EQ(a.names.size(), b.names.size());
  for (std::uint32_t i = 0; i < a.names.size(); ++i)
    EXPECT_EQ(a.names[NameId{i}], b.names[NameId{i}]);
  EXPECT_EQ(a.rank, b.rank);
  EXPECT_EQ(a.world_size, b.world_size);
  EXPECT_EQ(a.origin_ns, b.origin_ns);
  EXPECT_EQ(a.tick_ns, b.tick_ns);
  EXPECT_EQ(a.has_times, b.has_times);
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.notes.all().size(), b.notes.all().size());
  for (std::size_t i = 0; i < a.notes.all().size(); ++i) {
    EXPECT_EQ(a.notes.all()[i].text, b.notes.all()[i].text);
    EXPECT_EQ(a.notes.all()[i].count, b.notes.all()[i].count);
    EXPECT_EQ(a.notes.all()[i].example, b.notes.all()[i].example);
  }
}

TEST(Ftrace, GivesBackEveryTableOfRandomTraces) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Trace trace = RandomTrace(seed).make();
    Trace again = from_ftrace(to_ftrace(trace));
    expect_same(trace, again);
  }
}

TEST(Ftrace, GivesBackAnEmptyTrace) {
  Trace trace;
  Trace again = from_ftrace(to_ftrace(trace));
  expect_same(trace, again);
}

TEST(Ftrace, TheSameTraceGivesTheSameBytes) {
  EXPECT_EQ(to_ftrace(RandomTrace(1).make()), to_ftrace(RandomTrace(1).make()));
}

TEST(Ftrace, PadsAFileThatCompressesTooWell) {
  Trace trace;
  trace.streams.push_back({});
  trace.devices.resize(1'000'000);
  for (std::size_t i = 0; i < trace.devices.size(); ++i)
    trace.devices[i].start_ns = static_cast<std::int64_t>(i);
  const std::string bytes = to_ftrace(trace);
  EXPECT_GE(bytes.size() * 16, trace.devices.size());
  EXPECT_LT(bytes.size(), 100'000U);
  Trace again = from_ftrace(bytes);
  expect_same(trace, again);
}

TEST(Ftrace, LeavesNothingBehindWhereItCannotWrite) {
  const Folder folder;
  const std::string path = folder / "missing/x.ftrace";
  EXPECT_THROW(write_ftrace(Trace{}, path), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Ftrace, ReplacesAFileAtOnce) {
  const Folder folder;
  write_ftrace(Trace{}, folder / "x.ftrace");
  Trace trace = RandomTrace(3).make();
  write_ftrace(trace, folder / "x.ftrace");
  Trace again = read_ftrace(folder / "x.ftrace");
  expect_same(trace, again);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++files;
  EXPECT_EQ(files, 1U);
}

TEST(Xxh64, AgreesWithPublishedValues) {
  EXPECT_EQ(ftrace::xxh64(""), 0xef46db3751d8e999U);
  EXPECT_EQ(ftrace::xxh64("a"), 0xd24ec4f1a98c6e5bU);
  EXPECT_EQ(ftrace::xxh64("abc"), 0x44bc2cf5ad770999U);
  EXPECT_EQ(ftrace::xxh64("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1U);
}

}  // namespace
}  // namespace foretrace

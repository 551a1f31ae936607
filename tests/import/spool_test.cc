#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "import/spool_bytes.h"
#include "trace/stream_flags.h"

namespace foretrace {
namespace {

constexpr std::uint16_t kDriver = 1;
constexpr std::uint16_t kRuntime = 2;

Trace read_from(const std::string& bytes) {
  const Folder folder;
  return import_trace(folder.write("x.spool", bytes));
}
Trace read(const SpoolBytes& spool) { return read_from(spool.bytes()); }

spool::Kernel kernel(std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
  spool::Kernel row;
  row.start = start;
  row.end = end;
  row.correlation = correlation;
  row.context = 1;
  row.stream = 7;
  row.grid = 64;
  row.block = 256;
  return row;
}

spool::Call call(std::uint16_t domain, std::uint64_t start, std::uint64_t end,
                 std::uint32_t correlation) {
  spool::Call row;
  row.domain = domain;
  row.start = start;
  row.end = end;
  row.correlation = correlation;
  row.callback = 211;
  row.thread = 42;
  return row;
}

spool::Range range(spool::RowKind kind, std::uint64_t time, std::uint32_t name = 0,
                   std::uint32_t domain = 0, std::uint32_t payload = 0) {
  spool::Range row;
  row.row = kind;
  row.thread = 42;
  row.time = time;
  row.name = name;
  row.domain = domain;
  row.payload = payload;
  return row;
}

std::string name_of(const Trace& trace, const HostRecord& record) {
  return std::string(trace.names[record.name]);
}

TEST(Spool, KernelsAndTheirCallsAreRecords) {
  SpoolBytes spool;
  spool::Kernel gemm = kernel(2000, 5000, 9);
  gemm.name = spool.text("gemm");
  spool::CallName named;
  named.domain = kRuntime;
  named.callback = 211;
  named.name = spool.text("cudaLaunchKernel_ptsz_v7000");
  spool.rows(gemm, call(kRuntime, 1000, 1500, 9)).rows(named);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.devices.size(), 1U);
  ASSERT_EQ(trace.hosts.size(), 1U);
  EXPECT_EQ(trace.names[trace.devices[0].name], "gemm");
  EXPECT_EQ(trace.devices[0].start_ns, 1000);
  EXPECT_EQ(trace.devices[0].duration_ns, 3000);
  EXPECT_EQ(trace.devices[0].correlation, trace.hosts[0].correlation);
  EXPECT_EQ(name_of(trace, trace.hosts[0]), "cudaLaunchKernel");
  EXPECT_EQ(trace.hosts[0].kind, HostKind::runtime);
  EXPECT_EQ(trace.threads[trace.hosts[0].thread].id, 42);
  EXPECT_EQ(trace.origin_ns, 1000);
}

TEST(Spool, AKernelHasTheShapeOfItsLaunch) {
  spool::ShapedKernel row;
  row.start = 2000, row.end = 5000;
  row.context = 1, row.stream = 7;
  row.grid_x = 2, row.grid_y = 3, row.grid_z = 1;
  row.block_x = 64, row.block_y = 2, row.block_z = 1;
  row.registers = 40, row.static_shared = 1024, row.dynamic_shared = 2048;
  SpoolBytes spool;
  spool.rows(kernel(1000, 1500, 9), row, row);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.devices.size(), 3U);
  EXPECT_EQ(trace.devices[0].launch, kNone);
  EXPECT_EQ(trace.devices[0].block, 256U);
  EXPECT_EQ(trace.devices[1].grid, 6U);
  EXPECT_EQ(trace.devices[2].launch, trace.devices[1].launch);
  const std::vector<LaunchShape> shapes = {{2, 3, 1, 64, 2, 1, 40, 1024, 2048}};
  EXPECT_EQ(trace.launches, shapes);
}

TEST(Spool, ADriverCallInsideARuntimeCallIsPartOfIt) {
  SpoolBytes spool;
  spool.rows(call(kDriver, 1100, 1200, 3), call(kDriver, 1210, 1300, 4),
             call(kRuntime, 1000, 1400, 9), call(kDriver, 2000, 2100, 12), kernel(3000, 4000, 4),
             kernel(5000, 6000, 12));
  const Trace trace = read(spool);
  ASSERT_EQ(trace.hosts.size(), 2U);
  EXPECT_EQ(trace.hosts[0].kind, HostKind::runtime);
  EXPECT_EQ(trace.hosts[1].correlation, 12U);
  EXPECT_EQ(trace.devices[0].correlation, 9U);
  EXPECT_EQ(trace.devices[1].correlation, 12U);
}

TEST(Spool, TimesOfDayAndOfTheMonotonicClockAreBroughtTogether) {
  SpoolBytes spool;
  spool.header.device_clock = spool::Clock::realtime;
  spool::Clocks clocks;
  clocks.monotonic = 100;
  clocks.realtime = 1'000'100;
  const std::uint32_t name = spool.text("load");
  spool.rows(clocks, kernel(1'000'200, 1'000'300, 1), range(spool::RowKind::range_push, 150, name),
             range(spool::RowKind::range_pop, 260));
  const Trace trace = read(spool);
  ASSERT_EQ(trace.hosts.size(), 1U);
  EXPECT_EQ(trace.origin_ns, 1'000'150);
  EXPECT_EQ(trace.hosts[0].duration_ns, 110);
  EXPECT_EQ(trace.devices[0].start_ns, 50);
}

TEST(Spool, RangesNestWithinTheirDomain) {
  SpoolBytes spool;
  const std::uint32_t outer = spool.text("ProfilerStep#3");
  const std::uint32_t op = spool.text("aten::add, seq = 12, op_id = 7, sizes = [[2, 3]]");
  const std::uint32_t other = spool.text("other");
  const std::uint32_t domain = spool.text("Lib");
  spool.rows(
      range(spool::RowKind::range_pop, 90), range(spool::RowKind::range_push, 100, outer),
      range(spool::RowKind::range_push, 110, op),
      range(spool::RowKind::range_push, 120, other, domain), range(spool::RowKind::range_pop, 130),
      range(spool::RowKind::range_pop, 140, 0, domain), range(spool::RowKind::range_pop, 150),
      range(spool::RowKind::range_push, 160, other), range(spool::RowKind::mark, 200, other));
  const Trace trace = read(spool);
  ASSERT_EQ(trace.hosts.size(), 5U);
  EXPECT_EQ(name_of(trace, trace.hosts[0]), "ProfilerStep#3");
  EXPECT_EQ(trace.hosts[0].duration_ns, 50);
  EXPECT_EQ(name_of(trace, trace.hosts[1]), "aten::add");
  EXPECT_EQ(trace.hosts[1].kind, HostKind::op);
  EXPECT_EQ(trace.hosts[1].duration_ns, 20);
  EXPECT_EQ(trace.op_details[trace.hosts[1].details].sequence, 12);
  EXPECT_EQ(trace.op_details[trace.hosts[1].details].record_function, 7);
  EXPECT_EQ(name_of(trace, trace.hosts[2]), "Lib:other");
  EXPECT_EQ(trace.hosts[2].duration_ns, 20);
  EXPECT_EQ(trace.hosts[3].duration_ns, 40) << "ends with the recording";
  EXPECT_EQ(trace.notes.count("ends of ranges that began before the recording"), 1);
  EXPECT_EQ(trace.notes.count("ranges without an end, ended with the recording"), 1);
}

TEST(Spool, AStepThatDidNotEndIsNoStep) {
  SpoolBytes spool;
  const std::uint32_t first = spool.text("ProfilerStep#1");
  const std::uint32_t second = spool.text("ProfilerStep#2");
  spool.rows(range(spool::RowKind::range_push, 100, first), range(spool::RowKind::range_pop, 200),
             range(spool::RowKind::range_push, 210, second), call(kRuntime, 300, 310, 1));
  const Trace trace = read(spool);
  ASSERT_EQ(trace.hosts.size(), 2U);
  EXPECT_EQ(name_of(trace, trace.hosts[0]), "ProfilerStep#1");
  EXPECT_EQ(trace.hosts[1].kind, HostKind::runtime);
  EXPECT_EQ(trace.notes.count("steps without an end, left out"), 1);
}

TEST(Spool, WaitsFindTheRecordingOfTheirEvent) {
  SpoolBytes spool;
  spool::Context context;
  context.context = 1;
  context.device = 2;
  spool::Event first;
  first.correlation = 10;
  first.context = 1;
  first.stream = 7;
  first.event = 5;
  spool::Event later = first;
  later.correlation = 13;
  later.stream = 6;
  spool::Event second = first;
  second.correlation = 20;
  second.stream = 8;
  second.sync_id = 77;
  spool::Sync by_order;
  by_order.type = 2;
  by_order.start = 100;
  by_order.end = 110;
  by_order.context = 1;
  by_order.stream = 9;
  by_order.event = 5;
  by_order.correlation = 15;
  spool::Sync exact = by_order;
  exact.correlation = 12;
  exact.sync_id = 77;
  spool::Sync unknown = by_order;
  unknown.event = 6;
  spool.rows(context, first, later, second, by_order, exact, unknown);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.syncs.size(), 3U);
  const auto stream = [&](std::uint32_t number) { return trace.streams.at(number); };
  EXPECT_EQ(trace.syncs[0].wait_on_correlation, 13U);
  EXPECT_EQ(stream(trace.syncs[0].wait_on_stream).id, 6);
  EXPECT_EQ(stream(trace.syncs[0].stream).id, 9);
  EXPECT_EQ(stream(trace.syncs[0].stream).device, 2);
  EXPECT_EQ(trace.syncs[1].wait_on_correlation, 20U);
  EXPECT_EQ(stream(trace.syncs[1].wait_on_stream).id, 8);
  EXPECT_EQ(trace.syncs[2].wait_on_stream, kNone);
}

TEST(Spool, StreamsOfTwoContextsAreTwoStreams) {
  SpoolBytes spool;
  spool::Kernel other = kernel(3000, 4000, 2);
  other.context = 2;
  spool.rows(kernel(1000, 2000, 1), other, kernel(5000, 6000, 3));
  const Trace trace = read(spool);
  EXPECT_EQ(trace.streams.size(), 2U);
  EXPECT_EQ(trace.devices[0].stream, trace.devices[2].stream);
  EXPECT_NE(trace.devices[0].stream, trace.devices[1].stream);
}

TEST(Spool, HowStreamsWereCreatedIsKept) {
  spool::Kernel on_null = kernel(2000, 5000, 9), side = kernel(2000, 5000, 9);
  side.stream = 13;
  spool::Context context;
  context.context = 1, context.null_stream = 7;
  spool::Stream stream;
  stream.context = 1, stream.stream = 13, stream.flag = 2;
  const std::vector<StreamFlag> expected = {StreamFlag::null, StreamFlag::non_blocking};
  EXPECT_EQ(stream_flags(read(SpoolBytes().rows(on_null, side, context, stream))), expected);
  // A spool without flags holds 0 in their place.
  stream.flag = 0;
  const std::vector<StreamFlag> old = {StreamFlag::null, StreamFlag::unknown};
  EXPECT_EQ(stream_flags(read(SpoolBytes().rows(stream, on_null, side, context))), old);
}

TEST(Spool, CollectivesSayWhatTheyMove) {
  SpoolBytes spool;
  const std::uint32_t nccl = spool.text("NCCL");
  const std::uint32_t reduce = spool.text("ncclAllReduce");
  const std::uint32_t small = spool.text(R"({"commHash": 5, "bytes": 1000})");
  const std::uint32_t large = spool.text(R"({"commHash": 5, "bytes": 4096})");
  spool::Kernel one = kernel(2000, 3000, 1);
  one.name =
      spool.text("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)");
  spool::Kernel two = one;
  two.start = 4000;
  two.end = 5000;
  two.correlation = 2;
  // The second kernel is launched after two ranges, which are a group.
  spool.rows(range(spool::RowKind::range_push, 100, reduce, nccl, small),
             range(spool::RowKind::range_pop, 200, 0, nccl), call(kRuntime, 150, 160, 1),
             range(spool::RowKind::range_push, 300, reduce, nccl, large),
             range(spool::RowKind::range_pop, 310, 0, nccl),
             range(spool::RowKind::range_push, 320, reduce, nccl, small),
             range(spool::RowKind::range_pop, 330, 0, nccl), call(kRuntime, 400, 410, 2), one, two);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.collectives.size(), 2U);
  EXPECT_EQ(trace.collectives[trace.devices[0].details].in_elements, 1000);
  EXPECT_EQ(trace.collectives[trace.devices[1].details].in_elements, 5096);
  EXPECT_EQ(trace.names[trace.collectives[0].collective], "ncclAllReduce");
  EXPECT_EQ(trace.names[trace.collectives[0].dtype], "Byte");
}

TEST(Spool, CopiesOfAGraphHaveItsEdges) {
  SpoolBytes spool;
  spool::GraphEdge edge;
  edge.before = 1;
  edge.after = 2;
  spool::GraphClone first;
  first.graph = 9;
  first.node = 11;
  first.original = 1;
  spool::GraphClone second = first;
  second.node = 12;
  second.original = 2;
  spool.rows(edge, first, second);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.graph_edges.size(), 2U);
  EXPECT_EQ(trace.graph_edges[1].before, 11U);
  EXPECT_EQ(trace.graph_edges[1].after, 12U);
}

// An edge does not say for sure which of its nodes waits, but the times of the kernels do.
TEST(Spool, EdgesPointTheWayThatTimesGo) {
  for (const bool reversed : {false, true}) {
    SpoolBytes spool;
    spool::GraphEdge edge;
    edge.before = reversed ? 12 : 11;
    edge.after = reversed ? 11 : 12;
    spool::Kernel first = kernel(1000, 2000, 5);
    first.graph_node = 11;
    spool::Kernel second = kernel(2000, 3000, 5);
    second.graph_node = 12;
    spool.rows(edge, second, first);
    const Trace trace = read(spool);
    ASSERT_EQ(trace.graph_edges.size(), 1U);
    EXPECT_EQ(trace.graph_edges[0].before, 11U);
    EXPECT_EQ(trace.graph_edges[0].after, 12U);
  }
}

TEST(Spool, WhatTheDriverGivesIsASegmentAndWhatAPoolGivesABlock) {
  SpoolBytes spool;
  spool::DeviceMemory given;
  given.device = 1;
  given.time = 100;
  given.address = 4096;
  given.bytes = 2 << 20;
  given.memory_kind = 3;
  spool::DeviceMemory returned = given;
  returned.time = 200;
  returned.bytes = 0;
  returned.is_release = 1;
  spool::DeviceMemory pooled = given;
  pooled.is_async = 1;
  pooled.address = 8192;
  spool::DeviceMemory pinned = given;
  pinned.memory_kind = 2;
  spool.rows(given, returned, pooled, pinned);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.memory.size(), 4U);
  EXPECT_EQ(trace.memory[0].action, MemoryAction::segment_alloc);
  EXPECT_EQ(trace.memory[0].device, 1);
  EXPECT_EQ(trace.memory[1].action, MemoryAction::segment_free);
  EXPECT_EQ(trace.memory[1].bytes, -(2 << 20)) << "as much as was given";
  EXPECT_EQ(trace.memory[2].action, MemoryAction::block);
  EXPECT_EQ(trace.memory[3].device, -1) << "host memory";
}

TEST(Spool, RanksComeFromTheLauncher) {
  SpoolBytes spool;
  spool.fact("rank", "3").fact("world_size", "8").fact("command", "python train.py");
  spool.rows(kernel(1000, 2000, 1));
  const Trace trace = read(spool);
  EXPECT_EQ(trace.rank, 3);
  EXPECT_EQ(trace.world_size, 8);
  EXPECT_EQ(trace.metadata.at("command"), "\"python train.py\"");
}

TEST(Spool, WhatWasLostIsSaid) {
  SpoolBytes spool;
  spool.header.dropped_by_cupti = 12;
  spool.header.lost_on_disk = 5;
  spool.header.disk_error = 28;
  spool.header.untimed = 2;
  spool.header.state = spool::State::recording;
  spool.fact("problem", "CUPTI failed").fact("not_recorded.49", "insufficient privileges");
  spool.rows(kernel(1000, 2000, 1));
  const Notes notes = read(spool).notes;
  EXPECT_EQ(notes.count("records that CUPTI dropped for lack of buffers"), 12);
  EXPECT_EQ(notes.count("records that could not be written"), 5);
  EXPECT_EQ(notes.count("kernels and copies without times, left out"), 2);
  EXPECT_EQ(notes.count("problems of the recording"), 1);
  EXPECT_EQ(notes.count("kinds of records that CUPTI refused"), 1);
  EXPECT_EQ(
      notes.count("the program did not end the recording properly: up to a second is missing"), 1);
}

std::string five_kernels() {
  SpoolBytes spool;
  for (std::uint32_t i = 0; i < 5; ++i) spool.rows(kernel(1000 * i + 1000, 1000 * i + 1500, i + 1));
  return spool.bytes();
}

TEST(Spool, RowsThatItsHeaderCountsAndThatAreGoneAreSaid) {
  constexpr auto kGone =
      "records that were written but are missing: the spool is cut off or damaged";
  SpoolBytes spool;
  spool.rows(kernel(2000, 5000, 9), kernel(6000, 7000, 10)).rows(kernel(8000, 9000, 11));
  spool.header.rows = 3;
  EXPECT_EQ(read(spool).notes.count(kGone), 0);
  EXPECT_EQ(read_from(spool.bytes().substr(0, spool::kHeaderBytes)).notes.count(kGone), 3);
  EXPECT_EQ(read_from(spool.bytes().substr(0, 500)).notes.count(kGone), 3);
  // The rows of a partial chunk count as damaged.
  const std::string whole = spool.bytes();
  EXPECT_EQ(read_from(whole.substr(0, whole.size() - 8)).notes.count(kGone), 0);
  spool.header.rows = ~std::uint64_t{0};
  EXPECT_GT(read(spool).notes.count(kGone), 0);
}

TEST(Spool, ANumberOfATextBeyondAllThatTheFileCouldHoldIsNone) {
  // Otherwise a few bytes would ask for a table of gigabytes.
  constexpr std::uint32_t kFar = 60'000'000;
  SpoolBytes spool;
  spool.text_of_number(kFar, "far");
  spool::Kernel row = kernel(100, 200, 1);
  row.name = kFar;
  spool.rows(row);
  const Trace trace = read(spool);
  ASSERT_EQ(trace.devices.size(), 1U);
  EXPECT_EQ(trace.names[trace.devices[0].name], "(name lost)");
}

TEST(Spool, TornAnywhereItGivesWhatIsWhole) {
  const std::string bytes = five_kernels();
  const std::size_t chunk = sizeof(spool::ChunkHeader) + sizeof(spool::Kernel);
  // The header is a page of zeros except for its beginning.
  for (std::size_t size = 0; size <= bytes.size(); size += size < spool::kHeaderBytes ? 64 : 1) {
    SCOPED_TRACE(size);
    if (size < sizeof(spool::Header)) {
      EXPECT_THROW(read_from(bytes.substr(0, size)), TraceError);
      continue;
    }
    const std::size_t whole = size < spool::kHeaderBytes ? 0 : (size - spool::kHeaderBytes) / chunk;
    EXPECT_EQ(read_from(bytes.substr(0, size)).devices.size(), whole);
  }
}

TEST(Spool, AFlippedByteCostsOneChunkAtMost) {
  const std::string bytes = five_kernels();
  for (std::size_t at = spool::kHeaderBytes; at < bytes.size(); ++at) {
    SCOPED_TRACE(at);
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x20);
    const Trace trace = read_from(flipped);
    EXPECT_EQ(trace.devices.size(), 4U);
    EXPECT_EQ(trace.notes.count("damaged parts of the spool, left out"), 1);
  }
}

TEST(Spool, AnotherVersionIsRefused) {
  SpoolBytes spool;
  spool.header.version = 7;
  const Folder folder;
  const std::string path = folder.write("x.spool", spool.bytes());
  try {
    import_trace(path);
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_EQ(std::string(error.what()),
              path + ": must be a spool of version 1, but is of version 7");
  }
}

}  // namespace
}  // namespace foretrace

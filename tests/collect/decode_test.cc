// Records of CUPTI's as rows of the spool, with nothing around them. The records are made by hand
// from the stand-in's description, which differs from the one that decode() reads them by.

#include "collect/cupti/decode.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "collect/standin/records.h"
#include "import/spool/spool_rows.h"
#include "trace/spool.h"

namespace foretrace {
namespace {

constexpr std::uint32_t k13 = 130001;
constexpr std::uint32_t k12 = 22;

/// One record with the length of that version: bytes after it must not be read.
template <class Record>
class Read {
 public:
  Read(const Record& record, std::uint32_t version) {
    const std::size_t size = standin::record_bytes(record.kind, version);
    // The bytes after the record stay uninitialized, so that sanitizers notice if they are read.
    auto* bytes = static_cast<unsigned char*>(std::aligned_alloc(8, size));
    std::memcpy(bytes, &record, size);
    decoded = collect::decode(*reinterpret_cast<const cupti::Activity*>(bytes), size, texts, row);
    std::free(bytes);
  }

  template <class Row>
  Row as() const {
    EXPECT_EQ(decoded.bytes, sizeof(Row));
    return row_as<Row>(row);
  }

  collect::Decoded decoded;
  collect::Texts texts;
  char row[collect::kMaxRowBytes] = {};
};

standin::KernelRecord kernel() {
  standin::KernelRecord record{};
  record.kind = standin::kConcurrentKernel;
  record.start = 1'000;
  record.end = 3'500;
  record.device = 3;
  record.context = 4;
  record.stream = 21;
  record.grid_x = 10, record.grid_y = 20, record.grid_z = 3;
  record.block_x = 64, record.block_y = 2, record.block_z = 1;
  record.cache_and_registers = 40U << 16U;
  record.static_shared = 1024, record.dynamic_shared = 2048;
  record.correlation = 77;
  record.name = "a kernel";
  record.graph = 8;
  record.graph_node = 0x900000001;
  return record;
}

TEST(Decode, AKernelIsTheSameInEveryVersion) {
  for (const std::uint32_t version : {18U, k12, k13}) {
    const Read<standin::KernelRecord> read(kernel(), version);
    const auto row = read.as<spool::ShapedKernel>();
    EXPECT_EQ(row.row, spool::RowKind::shaped_kernel);
    EXPECT_EQ(row.start, 1'000U);
    EXPECT_EQ(row.end, 3'500U);
    EXPECT_EQ(row.device, 3);
    EXPECT_EQ(row.context, 4U);
    EXPECT_EQ(row.stream, 21U);
    EXPECT_EQ(row.grid_x, 10U);
    EXPECT_EQ(row.grid_y, 20);
    EXPECT_EQ(row.grid_z, 3);
    EXPECT_EQ(row.block_x, 64);
    EXPECT_EQ(row.block_y, 2);
    EXPECT_EQ(row.block_z, 1);
    EXPECT_EQ(row.registers, 40);
    EXPECT_EQ(row.static_shared, 1024U);
    EXPECT_EQ(row.dynamic_shared, 2048U);
    EXPECT_EQ(row.correlation, 77U);
    EXPECT_EQ(row.name, 1U);
    EXPECT_EQ(row.graph, 8U);
    EXPECT_EQ(row.graph_node, 0x900000001U);
  }
}

TEST(Decode, HugeAndNegativeSizesDoNotOverflow) {
  standin::KernelRecord record = kernel();
  record.grid_x = record.grid_y = record.grid_z = 2'147'483'647;
  EXPECT_EQ(Read(record, k13).as<spool::ShapedKernel>().grid_x, 2'147'483'647U);
  EXPECT_EQ(Read(record, k13).as<spool::ShapedKernel>().grid_z, 65'535);
  record.grid_x = -5, record.static_shared = -1;
  EXPECT_EQ(Read(record, k13).as<spool::ShapedKernel>().grid_x, 0U);
  EXPECT_EQ(Read(record, k13).as<spool::ShapedKernel>().static_shared, 0U);
  record.device = 70'000;
  EXPECT_EQ(Read(record, k13).as<spool::ShapedKernel>().device, 65'535);
}

TEST(Decode, WithoutTimesThereIsNoRow) {
  for (int which = 0; which < 3; ++which) {
    standin::KernelRecord record = kernel();
    if (which != 1) record.start = 0;
    if (which != 0) record.end = 0;
    const Read<standin::KernelRecord> read(record, k13);
    EXPECT_EQ(read.decoded.bytes, 0U);
    EXPECT_TRUE(read.decoded.is_untimed);
  }
}

TEST(Decode, CopiesAndFillsAreTransfers) {
  for (const std::uint32_t version : {k12, k13}) {
    standin::MemcpyRecord copy{};
    copy.kind = standin::kMemcpy;
    copy.copy_kind = 1, copy.source_kind = 2, copy.destination_kind = 3, copy.flags = 1;
    copy.bytes = std::uint64_t{5} << 32;
    copy.start = 10, copy.end = 20;
    copy.correlation = 9;
    const auto row = Read(copy, version).as<spool::Transfer>();
    EXPECT_EQ(row.bytes, std::uint64_t{5} << 32);
    EXPECT_EQ(row.copy_kind, 1);
    EXPECT_EQ(row.source_kind, 2);
    EXPECT_EQ(row.destination_kind, 3);
    EXPECT_EQ(row.is_async, 1);
    EXPECT_EQ(row.correlation, 9U);

    standin::MemsetRecord fill{};
    fill.kind = standin::kMemset;
    fill.bytes = 4096;
    fill.start = 10, fill.end = 20;
    fill.memory_kind = 3;
    const auto filled = Read(fill, version).as<spool::Transfer>();
    EXPECT_EQ(filled.copy_kind, 0);
    EXPECT_EQ(filled.bytes, 4096U);
    EXPECT_EQ(filled.destination_kind, 3);
  }
  standin::MemcpyPeerRecord peer{};
  peer.kind = standin::kMemcpyPeer;
  peer.copy_kind = 10;
  peer.start = 10, peer.end = 20;
  peer.source_device = 1, peer.destination_device = 6;
  const auto row = Read(peer, k13).as<spool::Transfer>();
  EXPECT_EQ(row.source_device, 1);
  EXPECT_EQ(row.destination_device, 6);
}

TEST(Decode, OlderWaitsAndEventsHaveNoNumberToJoinThemBy) {
  standin::SynchronizationRecord wait{};
  wait.kind = standin::kSynchronization;
  wait.type = 2;
  wait.start = 10, wait.end = 11;
  wait.stream = 13, wait.event = 5;
  wait.event_sync_id = 0xabcdef;
  EXPECT_EQ(Read(wait, k13).as<spool::Sync>().sync_id, 0xabcdefU);
  EXPECT_EQ(Read(wait, k12).as<spool::Sync>().sync_id, 0U);
  EXPECT_EQ(Read(wait, k12).as<spool::Sync>().event, 5U);
  standin::CudaEventRecord event{};
  event.kind = standin::kCudaEvent;
  event.correlation = 3, event.stream = 7, event.event = 5;
  event.device_timestamp = 99, event.event_sync_id = 0xabcdef;
  EXPECT_EQ(Read(event, k13).as<spool::Event>().sync_id, 0xabcdefU);
  EXPECT_EQ(Read(event, k13).as<spool::Event>().device_time, 99U);
  EXPECT_EQ(Read(event, k12).as<spool::Event>().sync_id, 0U);
  EXPECT_EQ(Read(event, k12).as<spool::Event>().stream, 7U);
}

TEST(Decode, CallsKnowWhoseTheyAre) {
  standin::ApiRecord call{};
  call.kind = standin::kRuntime;
  call.callback = 211;
  call.start = 1, call.end = 2, call.thread = 4711, call.correlation = 5;
  EXPECT_EQ(Read(call, k13).as<spool::Call>().domain, 2);
  EXPECT_EQ(Read(call, k13).as<spool::Call>().thread, 4711U);
  call.kind = standin::kDriver;
  EXPECT_EQ(Read(call, k13).as<spool::Call>().domain, 1);
}

TEST(Decode, MemoryOfEachVersion) {
  for (const std::uint32_t version : {k12, k13}) {
    standin::Memory2Record memory{};
    memory.kind = standin::kMemory2;
    memory.operation = 2;
    memory.memory_kind = 3;
    memory.address = 0x7f0000000000;
    memory.bytes = 512;
    memory.timestamp = 44;
    memory.is_async = 1;
    const auto row = Read(memory, version).as<spool::DeviceMemory>();
    EXPECT_EQ(row.is_release, 1);
    EXPECT_EQ(row.is_async, 1);
    EXPECT_EQ(row.address, 0x7f0000000000U);
    EXPECT_EQ(row.time, 44U);
    standin::MemoryPoolRecord pool{};
    pool.kind = standin::kMemoryPool;
    pool.operation = 3, pool.size = 9, pool.utilized = 4;
    EXPECT_EQ(Read(pool, version).as<spool::MemoryPool>().utilized, 4U);
  }
}

TEST(Decode, OverheadGivesItsDetailsToBeFreed) {
  standin::OverheadRecord overhead{};
  overhead.kind = standin::kOverhead;
  overhead.overhead_kind = 6U << 16;
  overhead.object_kind = 2;
  overhead.object[0] = 100, overhead.object[1] = 101;
  overhead.start = 5, overhead.end = 6;
  overhead.details = &overhead;
  const Read<standin::OverheadRecord> young(overhead, k13);
  EXPECT_EQ(young.decoded.owned_details, &overhead);
  EXPECT_EQ(young.as<spool::Overhead>().thread, 101U);
  EXPECT_EQ(Read(overhead, k12).decoded.owned_details, nullptr);
  EXPECT_EQ(Read(overhead, 18).decoded.owned_details, nullptr);
  overhead.object_kind = 3;
  EXPECT_EQ(Read(overhead, k13).as<spool::Overhead>().thread, 0U);
}

TEST(Decode, DevicesContextsAndStreams) {
  standin::DeviceRecord device{};
  device.kind = standin::kDevice;
  device.memory_bandwidth = 4'814'200'000;
  device.multiprocessors = 132;
  device.major = 9;
  device.id = 2;
  device.name = "NVIDIA H200";
  for (const std::uint32_t version : {k12, k13}) {
    const auto row = Read(device, version).as<spool::Device>();
    EXPECT_EQ(row.memory_bandwidth, 4'814'200'000'000U);
    EXPECT_EQ(row.ordinal, 2);
    EXPECT_EQ(row.major, 9);
    EXPECT_EQ(row.name, 1U);
  }
  standin::ContextRecord context{};
  context.kind = standin::kContext;
  context.context = 5, context.device = 2, context.null_stream = 7;
  EXPECT_EQ(Read(context, k12).as<spool::Context>().null_stream, 7U);
  standin::StreamRecord stream{};
  stream.kind = standin::kStream;
  stream.priority = static_cast<std::uint32_t>(-5);
  stream.flag = 2;
  EXPECT_EQ(Read(stream, k13).as<spool::Stream>().priority, -5);
  EXPECT_EQ(Read(stream, k12).as<spool::Stream>().flag, 2U);
}

TEST(Decode, KindsThatNobodyAskedForAreCounted) {
  alignas(8) unsigned char bytes[64] = {};
  bytes[0] = 51;
  char row[collect::kMaxRowBytes];
  collect::Texts texts;
  const collect::Decoded decoded = collect::decode(
      *reinterpret_cast<const cupti::Activity*>(&bytes[0]), sizeof bytes, texts, row);
  EXPECT_TRUE(decoded.is_unknown);
  EXPECT_EQ(decoded.bytes, 0U);
}

TEST(Texts, TheSameTextHasTheSameNumberWhereverItIs) {
  collect::Texts texts;
  const std::string one = "gemm";
  const std::string same = "gemm";
  EXPECT_EQ(texts.number(""), 0U);
  EXPECT_EQ(texts.number_at(nullptr), 0U);
  const std::uint32_t number = texts.number_at(one.c_str());
  EXPECT_EQ(texts.number_at(same.c_str()), number);
  EXPECT_EQ(texts.number("gemm"), number);
  for (int i = 0; i < 20'000; ++i) texts.number("kernel " + std::to_string(i));
  EXPECT_EQ(texts.number("gemm"), number);
  EXPECT_EQ(texts.number("kernel 19999"), number + 20'000);
}

TEST(Texts, AnotherTextAtTheSamePlaceIsAnotherText) {
  // Names of ranges lie in memory that is reused.
  collect::Texts texts;
  char place[32] = "forward";
  const std::uint32_t forward = texts.number_at(place);
  std::strcpy(place, "backward");
  const std::uint32_t backward = texts.number_at(place);
  EXPECT_NE(forward, backward);
  std::strcpy(place, "forward");
  EXPECT_EQ(texts.number_at(place), forward);
}

}  // namespace
}  // namespace foretrace

#pragma once

// The spool: the file that the collector appends to while a program runs, one for each process. It
// survives crashes: whatever happens to the program or the disk, everything up to the last whole
// chunk can be read. import_trace() turns it into a Trace; traces/README.md documents the layout.
//
//     header   one page, the only part that is ever rewritten: counters of lost records
//     chunks   {magic, kind, rows, size, CRC} and rows or texts; each can be read by itself
//
// All integers are in the byte order of the machine, which is little-endian wherever CUDA runs.
// Times are in nanoseconds: times from CUPTI on the clock that Header::device_clock names, all
// others on the monotonic clock. Rows refer to texts by number. The chunk with a text may follow
// the rows that refer to it, because threads write side by side.

#include <array>
#include <cstdint>
#include <type_traits>

namespace foretrace::spool {

constexpr std::array<char, 8> kMagic = {'\x89', 'F', 'S', 'P', 'L', '\r', '\n', '\x1a'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::uint32_t kChunkMagic = 0x4b4e4843;  ///< "CHNK"
/// No chunk is larger, so that the reader recognizes a damaged size.
constexpr std::uint32_t kMaxChunkBytes = 1U << 26;

enum class Clock : std::uint32_t { monotonic, realtime };
enum class State : std::uint32_t { recording, finished };

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  State state = State::recording;
  std::uint64_t process = 0;
  std::uint64_t parent = 0;
  Clock device_clock = Clock::monotonic;  ///< Clock of everything that CUPTI timed.
  std::uint32_t cupti_version = 0;        ///< 0 if CUPTI was never loaded.
  // Counters of written and lost records, rewritten at every flush.
  std::uint64_t rows = 0;              ///< Rows written.
  std::uint64_t dropped_by_cupti = 0;  ///< Records for which CUPTI had no buffer.
  std::uint64_t lost_on_disk = 0;      ///< Rows that could not be written.
  std::uint64_t untimed = 0;           ///< Kernels and copies without times: CUPTI ran out of room.
  std::uint64_t unknown_records = 0;   ///< Records of kinds that were not requested.
  std::uint64_t discarded_records = 0;  ///< Records in buffers dropped unread for lack of memory.
  std::uint32_t disk_error = 0;         ///< errno of the first failed write.
  std::uint32_t cupti_error = 0;        ///< Result code of CUPTI's fatal error.
};
static_assert(sizeof(Header) <= kHeaderBytes);
static_assert(std::is_trivially_copyable_v<Header>);

enum class ChunkKind : std::uint16_t {
  rows = 1,   ///< Rows one after the other.
  texts = 2,  ///< For each: u32 number, u32 length, bytes, zeros up to a multiple of 8.
  facts = 3,  ///< For each: u32 length of key, u32 length of value, key, value, zeros as above.
};

struct ChunkHeader {
  std::uint32_t magic = kChunkMagic;
  ChunkKind kind = ChunkKind::rows;
  std::uint16_t reserved = 0;
  std::uint32_t count = 0;  ///< Rows, texts or facts.
  std::uint32_t bytes = 0;  ///< Size of the body after this header; a multiple of 8.
  std::uint32_t body_crc = 0;
  std::uint32_t head_crc = 0;  ///< CRC-32C of the fields above.
};
static_assert(sizeof(ChunkHeader) == 24);

/// Every row begins with its kind, which determines its size.
enum class RowKind : std::uint16_t {
  kernel = 1,
  transfer,
  call,
  sync,
  event,
  device_memory,
  memory_pool,
  overhead,
  device,
  context,
  stream,
  call_name,
  range_push,
  range_pop,
  range_start,
  range_end,
  mark,
  graph_edge,
  graph_clone,
  block,
  thread_name,
  clocks,
  window,
  shaped_kernel,
  count
};

/// Recordings of the first collectors have these rows: totals without a shape.
struct Kernel {
  RowKind row = RowKind::kernel;
  std::uint16_t device = 0;
  std::uint32_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t name = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t grid = 0;   ///< Blocks.
  std::uint32_t block = 0;  ///< Threads a block.
  std::uint32_t graph = 0;
  std::uint64_t graph_node = 0;
};

/// A kernel with the shape of its launch. No device allows sizes that 16 bits do not hold where a
/// field has only these.
struct ShapedKernel {
  RowKind row = RowKind::shaped_kernel;
  std::uint16_t device = 0;
  std::uint32_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t name = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t grid_x = 0;
  std::uint16_t grid_y = 0, grid_z = 0;
  std::uint16_t block_x = 0, block_y = 0, block_z = 0;
  std::uint16_t registers = 0;  ///< Per thread.
  std::uint32_t static_shared = 0;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t graph = 0;
  std::uint64_t graph_node = 0;
};

/// A copy or a fill. The numbers of kinds are CUPTI's.
struct Transfer {
  RowKind row = RowKind::transfer;
  std::uint16_t device = 0;
  std::uint32_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint8_t copy_kind = 0;  ///< 0: a fill.
  std::uint8_t source_kind = 0;
  std::uint8_t destination_kind = 0;
  std::uint8_t is_async = 0;
  std::uint16_t source_device = 0;  ///< For peer copies only, as is destination_device.
  std::uint16_t destination_device = 0;
  std::uint64_t graph_node = 0;
};

struct Call {
  RowKind row = RowKind::call;
  std::uint16_t domain = 0;  ///< As CUPTI numbers them: 1 driver, 2 runtime.
  std::uint32_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t callback = 0;
  std::uint32_t thread = 0;
};

struct Sync {
  RowKind row = RowKind::sync;
  std::uint16_t type = 0;  ///< CUPTI's: 1 event, 2 stream waits for event, 3 stream, 4 context.
  std::uint32_t correlation = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint64_t sync_id = 0;  ///< Equal to Event::sync_id of the record waited for; 0 if unknown.
  std::uint32_t event = 0;
  std::uint32_t reserved = 0;
};

/// An event was recorded on a stream.
struct Event {
  RowKind row = RowKind::event;
  std::uint16_t reserved = 0;
  std::uint32_t correlation = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;
  std::uint32_t reserved2 = 0;
  std::uint64_t sync_id = 0;
  std::uint64_t device_time = 0;
};

/// The program allocates memory from the driver or frees it: cudaMalloc, cudaMallocAsync and their
/// counterparts.
struct DeviceMemory {
  RowKind row = RowKind::device_memory;
  std::uint16_t device = 0;
  std::uint32_t correlation = 0;
  std::uint64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::uint8_t is_release = 0;
  std::uint8_t is_async = 0;  ///< The memory comes from a pool.
  std::uint8_t memory_kind = 0;
  std::uint8_t reserved = 0;
  std::uint32_t source = 0;  ///< Text.
};

struct MemoryPool {
  RowKind row = RowKind::memory_pool;
  std::uint16_t device = 0;
  std::uint32_t operation = 0;  ///< CUPTI's: 1 created, 2 destroyed, 3 trimmed.
  std::uint64_t time = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t utilized = 0;
};

struct Overhead {
  RowKind row = RowKind::overhead;
  std::uint16_t reserved = 0;
  std::uint32_t kind = 0;  ///< CUPTI's.
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t thread = 0;  ///< 0 if it belongs to no thread.
  std::uint32_t correlation = 0;
};

struct Device {
  RowKind row = RowKind::device;
  std::uint16_t ordinal = 0;
  std::uint32_t name = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_bandwidth = 0;  ///< Bytes a second.
  std::uint32_t multiprocessors = 0;
  std::uint32_t core_clock_khz = 0;
  std::uint16_t major = 0;
  std::uint16_t minor = 0;
  std::uint32_t l2_bytes = 0;
};

struct Context {
  RowKind row = RowKind::context;
  std::uint16_t device = 0;
  std::uint32_t context = 0;
  std::uint32_t null_stream = 0;
  std::uint32_t reserved = 0;
};

struct Stream {
  RowKind row = RowKind::stream;
  std::uint16_t flag = 0;  ///< How it was created, as CUPTI numbers it; 0: unknown.
  std::uint32_t context = 0;
  std::uint32_t stream = 0;
  std::int32_t priority = 0;
};

/// The name of the API function that Call::callback numbers.
struct CallName {
  RowKind row = RowKind::call_name;
  std::uint16_t domain = 0;
  std::uint32_t callback = 0;
  std::uint32_t name = 0;
  std::uint32_t reserved = 0;
};

/// An NVTX range or mark. A push and its pop are on the same thread and in the same domain; the end
/// of a start may be anywhere in the process. Marks have no end.
struct Range {
  RowKind row = RowKind::range_push;
  std::uint16_t reserved = 0;
  std::uint32_t thread = 0;
  std::uint64_t time = 0;  ///< Time of the monotonic clock.
  std::uint32_t name = 0;
  std::uint32_t domain = 0;   ///< Text; 0 is the default domain.
  std::uint32_t payload = 0;  ///< Text, JSON; 0 if none.
  std::uint32_t reserved2 = 0;
  std::uint64_t id = 0;  ///< Links starts and ends.
};

/// Node `after` of a CUDA graph waits for node `before`.
struct GraphEdge {
  RowKind row = RowKind::graph_edge;
  std::uint16_t reserved = 0;
  std::uint32_t reserved2 = 0;
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

/// A node of a CUDA graph was created as a copy of another. Instantiating a graph copies all its
/// nodes.
struct GraphClone {
  RowKind row = RowKind::graph_clone;
  std::uint16_t reserved = 0;
  std::uint32_t graph = 0;
  std::uint64_t node = 0;
  std::uint64_t original = 0;
};

/// PyTorch's caching allocator allocated or freed a block.
struct Block {
  RowKind row = RowKind::block;
  std::int16_t device = 0;  ///< -1: host memory.
  std::uint32_t thread = 0;
  std::uint64_t time = 0;  ///< Time of the monotonic clock.
  std::uint64_t address = 0;
  std::int64_t bytes = 0;  ///< Negative for a free.
  std::int64_t total_allocated = 0;
  std::int64_t total_reserved = 0;
};

struct ThreadName {
  RowKind row = RowKind::thread_name;
  std::uint16_t is_given = 0;  ///< The program set the name; it takes precedence over the system's.
  std::uint32_t thread = 0;
  std::uint32_t name = 0;
  std::uint32_t reserved2 = 0;
};

/// Both clocks, read together.
struct Clocks {
  RowKind row = RowKind::clocks;
  std::uint16_t reserved = 0;
  std::uint32_t uncertainty = 0;  ///< Nanoseconds between the two readings.
  std::uint64_t monotonic = 0;
  std::uint64_t realtime = 0;
};

/// Recording was switched on or off.
struct Window {
  RowKind row = RowKind::window;
  std::uint16_t is_open = 0;
  std::uint32_t reserved = 0;
  std::uint64_t time = 0;  ///< Time of the monotonic clock.
};

/// The size of a row of this kind; 0 for a number that is not a kind.
constexpr std::uint32_t row_bytes(RowKind kind) {
  switch (kind) {
    case RowKind::kernel:
      return sizeof(Kernel);
    case RowKind::transfer:
      return sizeof(Transfer);
    case RowKind::call:
      return sizeof(Call);
    case RowKind::sync:
      return sizeof(Sync);
    case RowKind::event:
      return sizeof(Event);
    case RowKind::device_memory:
      return sizeof(DeviceMemory);
    case RowKind::memory_pool:
      return sizeof(MemoryPool);
    case RowKind::overhead:
      return sizeof(Overhead);
    case RowKind::device:
      return sizeof(Device);
    case RowKind::context:
      return sizeof(Context);
    case RowKind::stream:
      return sizeof(Stream);
    case RowKind::call_name:
      return sizeof(CallName);
    case RowKind::range_push:
    case RowKind::range_pop:
    case RowKind::range_start:
    case RowKind::range_end:
    case RowKind::mark:
      return sizeof(Range);
    case RowKind::graph_edge:
      return sizeof(GraphEdge);
    case RowKind::graph_clone:
      return sizeof(GraphClone);
    case RowKind::block:
      return sizeof(Block);
    case RowKind::thread_name:
      return sizeof(ThreadName);
    case RowKind::clocks:
      return sizeof(Clocks);
    case RowKind::window:
      return sizeof(Window);
    case RowKind::shaped_kernel:
      return sizeof(ShapedKernel);
    case RowKind::count:
      break;
  }
  return 0;
}
static_assert(row_bytes(RowKind::kernel) == 56 && row_bytes(RowKind::transfer) == 56);
static_assert(row_bytes(RowKind::call) == 32 && row_bytes(RowKind::sync) == 48);

}  // namespace foretrace::spool

#pragma once

// The activity of one process on one rank while it was recorded: flat tables of records, in no
// particular order but with stable numbers. A trace says when things happened, not why; infer.h
// finds out why.
//
//     hosts        ops, annotations, Python frames and CUDA calls on CPU threads
//     devices      kernels, copies and fills on the streams of a device
//     graph_edges  which node of a CUDA graph waits for which
//     syncs        what a synchronizing call or event waited for, if the profiler recorded it
//     memory       allocator events; segments and blocks are its state at the end
//     links        forward op -> backward op
//     launches     shapes that kernels were launched with, each once
//     tensors      what each op read and wrote
//     captured     ops that launched the nodes of CUDA graphs, when these were captured
//
// Times are nanoseconds since `origin_ns` (absolute, if the format has it), so that the smallest
// time is near 0. Importers fill a Trace; nobody else changes one.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "foretrace/names.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

enum class HostKind : std::uint8_t { op, annotation, python, runtime, driver, overhead };
constexpr bool is_call(HostKind kind) {
  return kind == HostKind::runtime || kind == HostKind::driver;
}
enum class DeviceKind : std::uint8_t { kernel, copy, fill, annotation };
enum class CopyDirection : std::uint8_t { none, in, out, on_device, peer, on_host };
enum class SyncKind : std::uint8_t { stream, event, context, stream_wait_event, unknown };
/// An action of an allocator. `block` is the usual one: a block was allocated (bytes > 0) or freed
/// (bytes < 0). A freed block that other streams still use is freed some time after the request.
/// Segments are the allocator's own requests to the driver (cudaMalloc); expandable ones grow and
/// shrink by mapping.
enum class MemoryAction : std::uint8_t {
  block,
  free_requested,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  out_of_memory,  ///< A request of `bytes` was refused; `total_reserved` is unknown.
  snapshot
};
enum class BlockState : std::uint8_t { allocated, pending_free, inactive };

constexpr std::uint32_t kNone = 0xffffffff;

struct HostRecord {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  NameId name{};
  std::uint32_t correlation = 0;  ///< Correlation id of a runtime or driver call; 0 if it has none.
  std::uint32_t external = 0;     ///< Links an op with the calls made inside it; 0 if none.
  std::uint32_t details = kNone;  ///< Into Trace::op_details.
  std::uint16_t thread = 0;       ///< Into Trace::threads.
  HostKind kind = HostKind::op;
  bool nests = true;  ///< False for a range that may cross others of its thread (nvtxRangeStart).
};

/// The profiler's facts about an op beyond its time. Texts as in the trace.
struct OpDetails {
  NameId shapes{};             ///< JSON text of "Input Dims".
  NameId types{};              ///< JSON text of "Input type".
  NameId values{};             ///< JSON text of "Concrete Inputs".
  NameId stack{};              ///< "Call stack" (frames joined by ';') or "Module Hierarchy".
  NameId kernel{};             ///< The kernel that a call launches; only ROCm's recorder writes it.
  std::int64_t sequence = -1;  ///< Links a forward op and its backward; -1 if none.
  std::uint64_t forward_thread = 0;  ///< The profiler's thread number; 0 unless a backward op.
  std::int64_t python_id = -1;       ///< Id of a Python frame; its parent is in `python_parent`.
  std::int64_t python_parent = -1;
  std::int64_t record_function = -1;  ///< "Record function id", which execution traces share.
};

struct DeviceRecord {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::int64_t bytes = 0;        ///< Size of a copy or fill.
  std::uint64_t graph_node = 0;  ///< Node of a CUDA graph, or 0; unique in the trace.
  NameId name{};
  std::uint32_t correlation = 0;  ///< Id of the launching call; one call may launch many.
  std::uint32_t external = 0;
  std::uint32_t details = kNone;  ///< Into Trace::collectives for a collective's kernel.
  std::uint32_t grid = 0;         ///< Blocks in all; 0 if not recorded.
  std::uint32_t launch = kNone;   ///< Into Trace::launches; kNone if only the totals are known.
  std::uint16_t block = 0;        ///< Threads a block, of which no device allows more than 1024.
  std::uint16_t stream = 0;       ///< Into Trace::streams.
  DeviceKind kind = DeviceKind::kernel;
  CopyDirection direction = CopyDirection::none;
  bool pinned_host = false;  ///< The host side of a copy is page-locked.
};

static_assert(sizeof(DeviceRecord) == 64, "a long recording has millions of them");

/// How a kernel was launched. Thousands of kernels share one.
struct LaunchShape {
  std::uint32_t grid_x = 0, grid_y = 0, grid_z = 0;     ///< Blocks.
  std::uint32_t block_x = 0, block_y = 0, block_z = 0;  ///< Threads.
  std::uint32_t registers = 0;                          ///< Per thread; 0 if not recorded.
  std::uint32_t static_shared = 0, dynamic_shared = 0;  ///< Bytes a block.

  bool operator==(const LaunchShape&) const = default;
};

/// An edge of a CUDA graph: node `after` cannot start before node `before` is done.
struct GraphEdge {
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

/// The ops around the launch of a node of a CUDA graph when the graph was captured. A replay
/// records only the node's kernel.
struct CapturedNode {
  std::uint64_t node = 0;     ///< DeviceRecord::graph_node.
  std::uint32_t op_call = 0;  ///< Nodes of a graph with the same number are of one call of the op.
  NameId path{};              ///< Names of the ops, outermost first, joined by '/'.
  NameId op{};                ///< The innermost op with shapes, which are its own.
  NameId shapes{}, types{}, values{};
  NameId module{};  ///< "BertModel_0/Linear_3", or empty.
  NameId stack{};   ///< Frames of the program and its packages, innermost first, joined by ';'.
};

struct CollectiveDetails {
  NameId collective{};  ///< "allreduce" ... as recorded.
  NameId dtype{};
  NameId group{};  ///< Process group name.
  NameId ranks{};  ///< JSON text, "[0, 1]".
  std::int64_t in_elements = 0;
  std::int64_t out_elements = 0;
  std::int32_t group_size = 0;
  std::int64_t sequence = -1;
};

struct SyncRecord {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t correlation = 0;  ///< Correlation id of the host call.
  std::uint32_t stream = kNone;   ///< Into Trace::streams: the one that waits or is waited for.
  std::uint32_t wait_on_stream = kNone;   ///< Event kinds: where the event was recorded.
  std::uint32_t wait_on_correlation = 0;  ///< Id of the cudaEventRecord call; 0: unknown.
  std::uint32_t event = 0;
  SyncKind kind = SyncKind::unknown;
};

struct MemoryRecord {
  std::int64_t time_ns = 0;
  std::uint64_t address = 0;          ///< 0 if not recorded.
  std::int64_t bytes = 0;             ///< Negative when freed.
  std::int64_t total_allocated = -1;  ///< After this event; -1 if not recorded.
  std::int64_t total_reserved = -1;
  std::uint32_t stream = kNone;  ///< Into Trace::streams: the stream that a block is for.
  NameId stack{};                ///< Frames "file:line function", innermost first, joined by ';'.
  std::uint16_t thread = 0;
  std::int16_t device = -1;  ///< -1 is host memory.
  MemoryAction action = MemoryAction::block;
};

/// A stretch of address space that an allocator held when the recording ended.
struct MemorySegment {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::uint32_t stream = kNone;  ///< Into Trace::streams.
  NameId stack{};                ///< As in MemoryRecord.
  NameId pool{};                 ///< JSON text of the pool's id, "[0, 0]" or empty.
  std::int16_t device = 0;
  bool is_large = false;
  bool is_expandable = false;
};

/// Part of a segment. The blocks of a segment cover it.
struct MemoryBlock {
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
  std::int64_t requested_bytes = 0;  ///< Before rounding.
  std::uint32_t segment = 0;         ///< Into Trace::segments.
  NameId stack{};
  BlockState state = BlockState::allocated;
};

/// A read or write of (part of) a storage by an op, from an execution trace.
struct TensorRecord {
  std::int64_t tensor = 0;   ///< Identity of the tensor object.
  std::int64_t storage = 0;  ///< Identity of the memory behind it; 0 if it has none.
  std::int64_t offset_bytes = 0;
  std::int64_t bytes = 0;
  std::uint32_t host = 0;  ///< Into Trace::hosts: the op.
  NameId type{};           ///< "float", "c10::BFloat16" ... as recorded.
  NameId shape{};          ///< JSON text "[32, 3, 224, 224]".
  std::uint16_t argument = 0;
  std::int16_t device = -1;  ///< -1 is host memory.
  bool is_output = false;
};

/// "fwdbwd" flow: from a time on one thread to a time on another.
struct LinkRecord {
  std::int64_t id = 0;
  std::int64_t time_ns = 0;
  std::uint16_t thread = 0;
  bool is_end = false;
};

struct Thread {
  std::int64_t process = 0;
  std::int64_t id = 0;
  std::string name;  ///< May be empty.
};

struct Stream {
  std::int32_t device = 0;
  std::int64_t id = 0;
};

struct Device {
  std::int32_t ordinal = 0;
  std::string name;  ///< May be empty.
  std::int64_t memory_bytes = 0;
  std::int32_t multiprocessors = 0;
  std::int32_t major = 0, minor = 0;  ///< Compute capability, 0.0 if not recorded.
};

/// A file on disk that a trace was read from; an archive stands for its members.
struct SourceFile {
  std::string path, format;
};

struct Trace {
  Names names;
  std::vector<HostRecord> hosts;
  std::vector<DeviceRecord> devices;
  std::vector<GraphEdge> graph_edges;
  std::vector<CapturedNode> captured;  ///< By node.
  std::vector<SyncRecord> syncs;
  std::vector<MemoryRecord> memory;
  std::vector<MemorySegment> segments;
  std::vector<MemoryBlock> blocks;
  std::vector<LinkRecord> links;
  std::vector<TensorRecord> tensors;
  std::vector<OpDetails> op_details;
  std::vector<CollectiveDetails> collectives;
  std::vector<LaunchShape> launches;
  std::vector<Thread> threads;
  std::vector<Stream> streams;
  std::vector<Device> properties;  ///< Devices of the machine, as far as recorded.
  std::int32_t rank = 0;
  std::int32_t world_size = 1;
  bool rank_is_known = false;  ///< The recording itself names its rank.
  std::int64_t origin_ns = 0;  ///< Add to any time to get the time on the recording's clock.
  /// Resolution of the recorded times: 1, or 1000 for whole microseconds.
  std::int64_t tick_ns = 1;
  /// False for execution traces, which have order and sizes only. Times are then positions: each
  /// begin and each end of an op is a tick of its own, so that ops still follow each other and
  /// nest, but lengths mean nothing. Such a trace cannot be replayed.
  bool has_times = true;
  std::string format;                           ///< "kineto", "ftrace" ...
  std::map<std::string, std::string> metadata;  ///< Other facts about the file, as JSON text.
  Notes notes;                                  ///< Oddities that the importer found.
  std::vector<SourceFile> files;                ///< Set by import; trace files do not store it.

  std::size_t record_count() const {
    return hosts.size() + devices.size() + syncs.size() + memory.size() + links.size();
  }
};

/// The captured launch of a node's record; nullptr if it is not known.
const CapturedNode* captured_node(const Trace& trace, const DeviceRecord& record);

/// Whether it records the state of an allocator but no device work; then it has no step time.
bool is_snapshot(const Trace& trace);
/// Whether it is a memory snapshot that holds only the blocks of its end.
bool lacks_history(const Trace& trace);

/// The note on a memory snapshot without history, and the end of an error about one.
inline constexpr std::string_view kNoHistory =
    "a memory snapshot without history: only what was held at its end is known; call "
    "torch.cuda.memory._record_memory_history() first, before the run";

/// The note on traces in a folder that have the rank of another trace there.
inline constexpr std::string_view kRepeatedRank =
    "traces with the same rank as another one in the folder; give one run at a time";

/// Read and write our own format, which traces/README.md describes. Reading throws TraceError with
/// the place if the file is incomplete, damaged or of an unknown version. Writing goes through a
/// temporary file, so that a reader never sees a partial one.
Trace read_ftrace(const std::string& path);
void write_ftrace(const Trace& trace, const std::string& path);

std::string_view to_string(HostKind kind);
std::string_view to_string(DeviceKind kind);
std::string_view to_string(CopyDirection direction);
/// "HtoD" and so on, as CUPTI abbreviates the ends of a copy; empty for none.
std::string_view copy_sign(CopyDirection direction);
std::string_view to_string(SyncKind kind);
std::string_view to_string(MemoryAction action);
std::string_view to_string(BlockState state);

/// The change of the allocator's reserved bytes that this record reports; negative if they shrink.
std::int64_t reserved_change(const MemoryRecord& record);

/// The facts for a picture of several ranks that the records of one trace do not hold: which rank
/// each process and device belongs to, and which rank others wait for.
struct RankView {
  /// A collective that waits, and the one of the rank that enters last; into Trace::devices.
  struct Wait {
    std::uint32_t from = 0, to = 0;
  };
  std::map<std::int64_t, std::string> processes;  ///< Names by process number.
  std::map<std::int32_t, std::string> devices;    ///< Names by device ordinal.
  std::vector<Wait> waits;
};

}  // namespace foretrace

#pragma once

// Describes the part of CUPTI's binary interface that the collector uses. The library is bound at
// run time by its SONAME, so that the collector can be built and tested without a CUDA toolkit.
// Each record is declared up to the last field that is read. Newer versions of CUPTI append fields
// to records but have never moved these; CUPTI's own iterator knows the length of a record.
// tests/collect/abi_check.cc compares every offset and number with NVIDIA's headers where they are
// installed.
//
// Source: CUPTI of CUDA 13.0 (API version 130001); the fields are the same since CUDA 11.8 (API
// version 18).

#include <cstddef>
#include <cstdint>

namespace foretrace::cupti {

enum Result : std::int32_t {
  kSuccess = 0,
  kInvalidParameter = 1,
  kMaxLimitReached = 12,  ///< The iterator has no more records.
  kNotInitialized = 15,   ///< The driver is too old for this CUPTI.
  kInvalidKind = 21,
  kInsufficientPrivileges = 35,
  kLegacyProfilerNotSupported = 38,
  kMultipleSubscribers = 39,
  kVirtualizedInsufficientPrivileges = 40,
  kUnknown = 999,  ///< Also: no driver.
};

/// The oldest version whose records are known to have this layout.
constexpr std::uint32_t kOldestVersion = 18;
/// From this version on, CUPTI accepts that there is no buffer and counts the records that it
/// drops; older versions crash.
constexpr std::uint32_t kVersionWithoutBufferCrash = 27;

enum class Kind : std::uint32_t {
  memcpy = 1,
  memset = 2,
  driver = 4,
  runtime = 5,
  device = 8,
  context = 9,
  concurrent_kernel = 10,
  name = 11,
  overhead = 17,
  memcpy_peer = 22,
  cuda_event = 36,
  stream = 37,
  synchronization = 38,
  internal_launch_api = 48,
  memory = 49,
  memory_pool = 50,
};

// All records are 8-byte aligned and otherwise packed.
#define FORETRACE_CUPTI_RECORD __attribute__((packed, aligned(8)))

struct FORETRACE_CUPTI_RECORD Activity {
  Kind kind;
};

struct FORETRACE_CUPTI_RECORD Kernel {
  Kind kind;
  std::uint8_t cache_config;
  std::uint8_t shared_memory_config;
  std::uint16_t registers_per_thread;
  std::uint32_t partitioned_cache_requested;
  std::uint32_t partitioned_cache_executed;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::int32_t grid[3];
  std::int32_t block[3];
  std::int32_t static_shared_memory;
  std::int32_t dynamic_shared_memory;
  std::uint32_t local_memory_per_thread;
  std::uint32_t local_memory_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued;
  std::uint64_t submitted;
  std::uint8_t launch_type;
  std::uint8_t carveout_requested_by_user;
  std::uint8_t carveout_requested;
  std::uint8_t padding;
  std::uint32_t shared_memory_executed;
  std::uint64_t graph_node;
  std::uint32_t shared_memory_limit;
  std::uint32_t graph;
};

struct FORETRACE_CUPTI_RECORD Memcpy {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t destination_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
  std::uint32_t runtime_correlation;
  std::uint32_t padding;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

struct FORETRACE_CUPTI_RECORD MemcpyPeer {
  Kind kind;
  std::uint8_t copy_kind;
  std::uint8_t source_kind;
  std::uint8_t destination_kind;
  std::uint8_t flags;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t source_device;
  std::uint32_t source_context;
  std::uint32_t destination_device;
  std::uint32_t destination_context;
  std::uint32_t correlation;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

struct FORETRACE_CUPTI_RECORD Memset {
  Kind kind;
  std::uint32_t value;
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
  std::uint16_t flags;
  std::uint16_t memory_kind;
  std::uint32_t padding;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph;
};

/// Calls of the runtime, calls of the driver and launches inside CUDA share this record.
struct FORETRACE_CUPTI_RECORD Api {
  Kind kind;
  std::uint32_t callback;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t process;
  std::uint32_t thread;
  std::uint32_t correlation;
  std::uint32_t return_value;
};

struct FORETRACE_CUPTI_RECORD Synchronization {
  Kind kind;
  std::uint32_t type;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t correlation;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint64_t event_sync_id;  ///< Not in the shorter records of older versions.
};

struct FORETRACE_CUPTI_RECORD CudaEvent {
  Kind kind;
  std::uint32_t correlation;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t event;
  std::uint32_t padding;
  // Not in the shorter records of older versions:
  std::uint32_t device;
  std::uint32_t padding2;
  void* reserved;
  std::uint64_t device_timestamp;
  std::uint64_t event_sync_id;
};

struct FORETRACE_CUPTI_RECORD Memory {
  Kind kind;
  std::uint32_t operation;  ///< 1 allocated, 2 released.
  std::uint32_t memory_kind;
  std::uint32_t correlation;
  std::uint64_t address;
  std::uint64_t bytes;
  std::uint64_t timestamp;
  std::uint64_t program_counter;
  std::uint32_t process;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  const char* name;
  std::uint32_t is_async;
  std::uint32_t padding;
  std::uint32_t pool_type;
  std::uint32_t padding2;
  std::uint64_t pool_address;
  std::uint64_t pool_release_threshold;
  std::uint64_t pool_size;
  std::uint64_t pool_utilized;
};

struct FORETRACE_CUPTI_RECORD MemoryPool {
  Kind kind;
  std::uint32_t operation;  ///< 1 created, 2 destroyed, 3 trimmed.
  std::uint32_t pool_type;
  std::uint32_t correlation;
  std::uint32_t process;
  std::uint32_t device;
  std::uint64_t least_bytes_kept;
  std::uint64_t address;
  std::uint64_t size;
  std::uint64_t release_threshold;
  std::uint64_t timestamp;
  std::uint64_t utilized;
};

struct FORETRACE_CUPTI_RECORD Overhead {
  Kind kind;
  std::uint32_t overhead_kind;
  std::uint32_t object_kind;  ///< 2: `object` is process and thread.
  std::uint32_t object[3];
  std::uint64_t start;
  std::uint64_t end;
  // Not in the shorter records of older versions:
  std::uint32_t correlation;
  std::uint32_t reserved;
  void* details;  ///< Allocated with malloc(); the receiver frees it.
};

/// The layout of CUpti_ActivityDevice3, 4 and 5, up to the name. Older ones differ.
struct FORETRACE_CUPTI_RECORD Device {
  Kind kind;
  std::uint32_t flags;
  std::uint64_t memory_bandwidth;  ///< Kilobytes a second.
  std::uint64_t memory_bytes;
  std::uint32_t constant_memory;
  std::uint32_t l2_bytes;
  std::uint32_t warp_size;
  std::uint32_t core_clock_khz;
  std::uint32_t copy_engines;
  std::uint32_t multiprocessors;
  std::uint32_t limits[14];
  std::uint32_t major;
  std::uint32_t minor;
  std::uint32_t ordinal;
  std::uint32_t has_ecc;
  std::uint8_t uuid[16];
  const char* name;
};

struct FORETRACE_CUPTI_RECORD Context {
  Kind kind;
  std::uint32_t context;
  std::uint32_t device;
  std::uint16_t api_kind;
  std::uint16_t null_stream;
};

struct FORETRACE_CUPTI_RECORD Stream {
  Kind kind;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t priority;
  std::uint32_t flag;
  std::uint32_t correlation;
};

struct FORETRACE_CUPTI_RECORD Name {
  Kind kind;
  std::uint32_t object_kind;
  std::uint32_t object[3];
  std::uint32_t padding;
  const char* name;
};

enum class Domain : std::uint32_t { driver = 1, runtime = 2, resource = 3, state = 6 };

// Callbacks of the driver domain that open and close a window.
constexpr std::uint32_t kProfilerStart = 308;
constexpr std::uint32_t kProfilerStop = 309;
// The same callbacks of the runtime domain.
constexpr std::uint32_t kRuntimeProfilerStart = 171;
constexpr std::uint32_t kRuntimeProfilerStop = 172;
// Calls that programs make very often and that no prediction needs.
constexpr std::uint32_t kFrequentDriverCalls[] = {304 /* cuCtxGetCurrent */,
                                                  392 /* cuDevicePrimaryCtxGetState */,
                                                  686 /* cuKernelGetAttribute */};
constexpr std::uint32_t kFrequentRuntimeCalls[] = {17 /* cudaGetDevice */};
// Callbacks of the resource domain.
constexpr std::uint32_t kGraphNodeDependencyCreated = 15;
constexpr std::uint32_t kGraphNodeCloned = 20;
// A callback of the state domain.
constexpr std::uint32_t kFatalError = 1;

/// The data of callbacks of the driver and runtime domains; only the first field is declared.
struct CallbackData {
  std::uint32_t site;  ///< 0 entering, 1 leaving.
};

struct ResourceData {
  void* context;
  void* handle;
  void* descriptor;  ///< GraphData for the callbacks above.
};

struct GraphData {
  void* graph;
  void* original_graph;
  void* node;
  void* original_node;
  std::uint32_t node_type;
  void* dependency;
  void* graph_exec;
};

struct StateData {
  Result result;
  const char* message;
};

enum class Attribute : std::uint32_t { device_buffer_size = 0, device_buffer_pool_limit = 2 };
constexpr std::uint32_t kSystemThreadIds = 1;
constexpr std::uint32_t kForceFlush = 1;

using Subscriber = void*;
using Callback = void (*)(void* user, Domain domain, std::uint32_t id, const void* data);
using BufferRequested = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
using BufferCompleted = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                                 std::size_t size, std::size_t valid);
using TimestampCallback = std::uint64_t (*)();

/// cuptiSubscribe_v2 takes these parameters.
struct SubscriberParams {
  std::size_t struct_size;
  const char* subscriber_name;
  char* old_subscriber_name;
  std::size_t old_subscriber_size;
};

}  // namespace foretrace::cupti

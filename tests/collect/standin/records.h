#pragma once

// CUPTI's activity records as they lie in a buffer, complete, as CUDA 13.0 writes them. The
// stand-in fills them; the library under test reads them by a description of its own
// (collect/cupti/cupti_abi.h); abi_check.cc compares both with NVIDIA's headers. Older versions
// write the same records with fewer bytes at the end, so one description and a table of sizes are
// enough.

#include <cstddef>
#include <cstdint>

namespace standin {

enum KindNumber : std::uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kName = 11,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kCudaEvent = 36,
  kStream = 37,
  kSynchronization = 38,
  kInternalLaunchApi = 48,
  kMemory2 = 49,
  kMemoryPool = 50,
  kMaxKinds = 64,
};

#define STANDIN_RECORD __attribute__((packed, aligned(8)))

struct STANDIN_RECORD KernelRecord {
  std::uint32_t kind, cache_and_registers, cache_requested, cache_executed;
  std::uint64_t start, end, completed;
  std::uint32_t device, context, stream;
  std::int32_t grid_x, grid_y, grid_z, block_x, block_y, block_z;
  std::int32_t static_shared, dynamic_shared;
  std::uint32_t local_per_thread, local_total, correlation;
  std::int64_t grid_id;
  const char* name;
  void* reserved;
  std::uint64_t queued, submitted;
  std::uint32_t launch_and_carveout, shared_executed;
  std::uint64_t graph_node;
  std::uint32_t shared_limit, graph;
  void* access_policy;
  std::uint32_t channel, channel_type;
  std::uint32_t cluster_x, cluster_y, cluster_z, cluster_policy;
  std::uint64_t local_total_long;
  std::uint32_t most_potential_clusters, most_active_clusters;
  std::uint64_t device_launched;
};

struct STANDIN_RECORD MemcpyRecord {
  std::uint32_t kind;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation, runtime_correlation, padding;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph, channel, channel_type, device_launched;
  std::uint64_t copy_count;
};

struct STANDIN_RECORD MemcpyPeerRecord {
  std::uint32_t kind;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream;
  std::uint32_t source_device, source_context, destination_device, destination_context;
  std::uint32_t correlation;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph, channel, channel_type, padding;
};

struct STANDIN_RECORD MemsetRecord {
  std::uint32_t kind, value;
  std::uint64_t bytes, start, end;
  std::uint32_t device, context, stream, correlation;
  std::uint16_t flags, memory_kind;
  std::uint32_t padding;
  void* reserved;
  std::uint64_t graph_node;
  std::uint32_t graph, channel, channel_type, device_launched;
};

struct STANDIN_RECORD ApiRecord {
  std::uint32_t kind, callback;
  std::uint64_t start, end;
  std::uint32_t process, thread, correlation, return_value;
};

struct STANDIN_RECORD SynchronizationRecord {
  std::uint32_t kind, type;
  std::uint64_t start, end;
  std::uint32_t correlation, context, stream, event;
  std::uint64_t event_sync_id;
  std::uint32_t return_value, padding;
};

struct STANDIN_RECORD CudaEventRecord {
  std::uint32_t kind, correlation, context, stream, event, padding, device, padding2;
  void* reserved;
  std::uint64_t device_timestamp, event_sync_id;
};

struct STANDIN_RECORD Memory2Record {
  std::uint32_t kind, operation, memory_kind, correlation;
  std::uint64_t address, bytes, timestamp, program_counter;
  std::uint32_t process, device, context, stream;
  const char* name;
  std::uint32_t is_async, padding, pool_type, padding2;
  std::uint64_t pool_address, pool_release_threshold, pool_size, pool_utilized;
  const char* source;
};

struct STANDIN_RECORD MemoryPoolRecord {
  std::uint32_t kind, operation, pool_type, correlation, process, device;
  std::uint64_t least_bytes_kept, address, size, release_threshold, timestamp, utilized;
  std::uint64_t is_managed;
};

struct STANDIN_RECORD OverheadRecord {
  std::uint32_t kind, overhead_kind, object_kind, object[3];
  std::uint64_t start, end;
  std::uint32_t correlation, reserved;
  void* details;
};

struct STANDIN_RECORD DeviceRecord {
  std::uint32_t kind, flags;
  std::uint64_t memory_bandwidth, memory_bytes;
  std::uint32_t constant_memory, l2_bytes, warp_size, core_clock_khz, copy_engines, multiprocessors;
  std::uint32_t limits[14];
  std::uint32_t major, minor, id, has_ecc;
  std::uint8_t uuid[16];
  const char* name;
  std::uint64_t visible_and_mig;
  std::uint32_t gpu_instance, compute_instance;
  std::uint8_t mig_uuid[16];
  std::uint32_t is_numa_node, numa_id;
};

struct STANDIN_RECORD ContextRecord {
  std::uint32_t kind, context, device;
  std::uint16_t api_kind, null_stream;
  std::uint32_t parent;
  std::uint8_t is_green, padding;
  std::uint16_t multiprocessors;
  std::uint32_t cig_mode, padding2;
};

struct STANDIN_RECORD StreamRecord {
  std::uint32_t kind, context, stream, priority, flag, correlation;
};

struct STANDIN_RECORD NameRecord {
  std::uint32_t kind, object_kind, object[3], padding;
  const char* name;
};

/// The length of the record of a kind in this API version of CUPTI; 0 for a kind that is not
/// played. From the headers of CUDA 13.0, which say for each shorter record until which version it
/// was used, and those of 11.8 (version 18).
constexpr std::size_t record_bytes(std::uint32_t kind, std::uint32_t version) {
  const bool is_13 = version >= 130000;
  const bool is_12_8 = version >= 26;
  switch (kind) {
    case kConcurrentKernel:
      if (version < 18) return 176;
      if (version == 18) return 200;
      return is_13 ? sizeof(KernelRecord) : 208;
    case kMemcpy:
      return is_12_8 ? sizeof(MemcpyRecord) : 88;
    case kMemcpyPeer:
      return sizeof(MemcpyPeerRecord);
    case kMemset:
      return sizeof(MemsetRecord);
    case kDriver:
    case kRuntime:
    case kInternalLaunchApi:
      return sizeof(ApiRecord);
    case kSynchronization:
      return is_12_8 ? sizeof(SynchronizationRecord) : 40;
    case kCudaEvent:
      return is_12_8 ? sizeof(CudaEventRecord) : 24;
    case kMemory2:
      return is_13 ? sizeof(Memory2Record) : 120;
    case kMemoryPool:
      return is_13 ? sizeof(MemoryPoolRecord) : 72;
    case kOverhead:
      if (version < 22) return 40;
      return is_13 ? sizeof(OverheadRecord) : 48;
    case kDevice:
      return is_13 ? sizeof(DeviceRecord) : 176;
    case kContext:
      return is_13 ? sizeof(ContextRecord) : is_12_8 ? 24 : 16;
    case kStream:
      return sizeof(StreamRecord);
    case kName:
      return sizeof(NameRecord);
    default:
      return 0;
  }
}

static_assert(sizeof(KernelRecord) == 216 && sizeof(MemcpyRecord) == 96);
static_assert(sizeof(MemcpyPeerRecord) == 96 && sizeof(MemsetRecord) == 88);
static_assert(sizeof(ApiRecord) == 40 && sizeof(SynchronizationRecord) == 56);
static_assert(sizeof(CudaEventRecord) == 56 && sizeof(Memory2Record) == 128);
static_assert(sizeof(MemoryPoolRecord) == 80 && sizeof(OverheadRecord) == 56);
static_assert(sizeof(DeviceRecord) == 184 && sizeof(ContextRecord) == 32);
static_assert(sizeof(StreamRecord) == 24 && sizeof(NameRecord) == 32);

}  // namespace standin

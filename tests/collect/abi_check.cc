// Compares our descriptions of CUPTI's binary interface with NVIDIA's. At compile time: every
// offset, size and number of collect/cupti/cupti_abi.h (read by the collector) and of
// standin/records.h (written by the stand-in). At run time: the strides of NVIDIA's own iterator
// over records that were laid out by the stand-in's description. This works without a GPU and
// without a driver. It is built only where the CUDA toolkit (13 or 11.8) is installed, and returns
// 77 where only its headers are.

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "collect/cupti/cupti_abi.h"
#include "collect/standin/records.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cupti.h>
#if CUPTI_API_VERSION > 18
#include <cupti_activity_deprecated.h>
#endif
#pragma GCC diagnostic pop

namespace {

namespace abi = foretrace::cupti;

// A field of ours (the collector's or the stand-in's) equals NVIDIA's field: same place, same size.
#define SAME(Ours, field, Theirs, their_field)                            \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, their_field) && \
                    sizeof(Ours::field) == sizeof(Theirs::their_field),   \
                #Ours "::" #field " is not " #Theirs "::" #their_field)
#define SAME_PLACE(Ours, field, Theirs, their_field) \
  static_assert(offsetof(Ours, field) == offsetof(Theirs, their_field), #Ours "::" #field)
#define NUMBER(ours, theirs) \
  static_assert(static_cast<long long>(ours) == static_cast<long long>(theirs), #theirs)

// The headers of CUDA 11.8 (version 18) lack this.
#if CUPTI_API_VERSION > 18
#define NEWER(...) __VA_ARGS__
#else
#define NEWER(...) static_assert(true)
#endif

// Kernels. The collector reads the same fields of every version from CUDA 11.6 on.
#define COLLECTOR_KERNEL(Theirs)                                                           \
  SAME(abi::Kernel, kind, Theirs, kind);                                                   \
  SAME(abi::Kernel, cache_config, Theirs, cacheConfig);                                    \
  SAME(abi::Kernel, shared_memory_config, Theirs, sharedMemoryConfig);                     \
  SAME(abi::Kernel, registers_per_thread, Theirs, registersPerThread);                     \
  SAME(abi::Kernel, partitioned_cache_requested, Theirs, partitionedGlobalCacheRequested); \
  SAME(abi::Kernel, partitioned_cache_executed, Theirs, partitionedGlobalCacheExecuted);   \
  SAME(abi::Kernel, start, Theirs, start);                                                 \
  SAME(abi::Kernel, end, Theirs, end);                                                     \
  SAME(abi::Kernel, completed, Theirs, completed);                                         \
  SAME(abi::Kernel, device, Theirs, deviceId);                                             \
  SAME(abi::Kernel, context, Theirs, contextId);                                           \
  SAME(abi::Kernel, stream, Theirs, streamId);                                             \
  SAME_PLACE(abi::Kernel, grid, Theirs, gridX);                                            \
  SAME_PLACE(abi::Kernel, grid[1], Theirs, gridY);                                         \
  SAME_PLACE(abi::Kernel, grid[2], Theirs, gridZ);                                         \
  SAME_PLACE(abi::Kernel, block, Theirs, blockX);                                          \
  SAME_PLACE(abi::Kernel, block[1], Theirs, blockY);                                       \
  SAME_PLACE(abi::Kernel, block[2], Theirs, blockZ);                                       \
  SAME(abi::Kernel, static_shared_memory, Theirs, staticSharedMemory);                     \
  SAME(abi::Kernel, dynamic_shared_memory, Theirs, dynamicSharedMemory);                   \
  SAME(abi::Kernel, local_memory_per_thread, Theirs, localMemoryPerThread);                \
  SAME(abi::Kernel, local_memory_total, Theirs, localMemoryTotal);                         \
  SAME(abi::Kernel, correlation, Theirs, correlationId);                                   \
  SAME(abi::Kernel, grid_id, Theirs, gridId);                                              \
  SAME(abi::Kernel, name, Theirs, name);                                                   \
  SAME(abi::Kernel, reserved, Theirs, reserved0);                                          \
  SAME(abi::Kernel, queued, Theirs, queued);                                               \
  SAME(abi::Kernel, submitted, Theirs, submitted);                                         \
  SAME(abi::Kernel, launch_type, Theirs, launchType);                                      \
  SAME(abi::Kernel, carveout_requested_by_user, Theirs, isSharedMemoryCarveoutRequested);  \
  SAME(abi::Kernel, carveout_requested, Theirs, sharedMemoryCarveoutRequested);            \
  SAME(abi::Kernel, shared_memory_executed, Theirs, sharedMemoryExecuted);                 \
  SAME(abi::Kernel, graph_node, Theirs, graphNodeId);                                      \
  SAME(abi::Kernel, shared_memory_limit, Theirs, shmemLimitConfig);                        \
  SAME(abi::Kernel, graph, Theirs, graphId)
COLLECTOR_KERNEL(CUpti_ActivityKernel7);
COLLECTOR_KERNEL(CUpti_ActivityKernel8);
NEWER(COLLECTOR_KERNEL(CUpti_ActivityKernel9));
NEWER(COLLECTOR_KERNEL(CUpti_ActivityKernel10));

#define COLLECTOR_MEMCPY(Theirs)                                        \
  SAME(abi::Memcpy, kind, Theirs, kind);                                \
  SAME(abi::Memcpy, copy_kind, Theirs, copyKind);                       \
  SAME(abi::Memcpy, source_kind, Theirs, srcKind);                      \
  SAME(abi::Memcpy, destination_kind, Theirs, dstKind);                 \
  SAME(abi::Memcpy, flags, Theirs, flags);                              \
  SAME(abi::Memcpy, bytes, Theirs, bytes);                              \
  SAME(abi::Memcpy, start, Theirs, start);                              \
  SAME(abi::Memcpy, end, Theirs, end);                                  \
  SAME(abi::Memcpy, device, Theirs, deviceId);                          \
  SAME(abi::Memcpy, context, Theirs, contextId);                        \
  SAME(abi::Memcpy, stream, Theirs, streamId);                          \
  SAME(abi::Memcpy, correlation, Theirs, correlationId);                \
  SAME(abi::Memcpy, runtime_correlation, Theirs, runtimeCorrelationId); \
  SAME(abi::Memcpy, reserved, Theirs, reserved0);                       \
  SAME(abi::Memcpy, graph_node, Theirs, graphNodeId);                   \
  SAME(abi::Memcpy, graph, Theirs, graphId)
COLLECTOR_MEMCPY(CUpti_ActivityMemcpy4);
COLLECTOR_MEMCPY(CUpti_ActivityMemcpy5);
NEWER(COLLECTOR_MEMCPY(CUpti_ActivityMemcpy6));

#define COLLECTOR_PEER(Theirs)                                      \
  SAME(abi::MemcpyPeer, copy_kind, Theirs, copyKind);               \
  SAME(abi::MemcpyPeer, source_kind, Theirs, srcKind);              \
  SAME(abi::MemcpyPeer, destination_kind, Theirs, dstKind);         \
  SAME(abi::MemcpyPeer, flags, Theirs, flags);                      \
  SAME(abi::MemcpyPeer, bytes, Theirs, bytes);                      \
  SAME(abi::MemcpyPeer, start, Theirs, start);                      \
  SAME(abi::MemcpyPeer, end, Theirs, end);                          \
  SAME(abi::MemcpyPeer, device, Theirs, deviceId);                  \
  SAME(abi::MemcpyPeer, context, Theirs, contextId);                \
  SAME(abi::MemcpyPeer, stream, Theirs, streamId);                  \
  SAME(abi::MemcpyPeer, source_device, Theirs, srcDeviceId);        \
  SAME(abi::MemcpyPeer, source_context, Theirs, srcContextId);      \
  SAME(abi::MemcpyPeer, destination_device, Theirs, dstDeviceId);   \
  SAME(abi::MemcpyPeer, destination_context, Theirs, dstContextId); \
  SAME(abi::MemcpyPeer, correlation, Theirs, correlationId);        \
  SAME(abi::MemcpyPeer, graph_node, Theirs, graphNodeId);           \
  SAME(abi::MemcpyPeer, graph, Theirs, graphId)
COLLECTOR_PEER(CUpti_ActivityMemcpyPtoP3);
COLLECTOR_PEER(CUpti_ActivityMemcpyPtoP4);

#define COLLECTOR_MEMSET(Theirs)                         \
  SAME(abi::Memset, value, Theirs, value);               \
  SAME(abi::Memset, bytes, Theirs, bytes);               \
  SAME(abi::Memset, start, Theirs, start);               \
  SAME(abi::Memset, end, Theirs, end);                   \
  SAME(abi::Memset, device, Theirs, deviceId);           \
  SAME(abi::Memset, context, Theirs, contextId);         \
  SAME(abi::Memset, stream, Theirs, streamId);           \
  SAME(abi::Memset, correlation, Theirs, correlationId); \
  SAME(abi::Memset, flags, Theirs, flags);               \
  SAME(abi::Memset, memory_kind, Theirs, memoryKind);    \
  SAME(abi::Memset, graph_node, Theirs, graphNodeId);    \
  SAME(abi::Memset, graph, Theirs, graphId)
COLLECTOR_MEMSET(CUpti_ActivityMemset3);
COLLECTOR_MEMSET(CUpti_ActivityMemset4);

SAME(abi::Api, callback, CUpti_ActivityAPI, cbid);
SAME(abi::Api, start, CUpti_ActivityAPI, start);
SAME(abi::Api, end, CUpti_ActivityAPI, end);
SAME(abi::Api, process, CUpti_ActivityAPI, processId);
SAME(abi::Api, thread, CUpti_ActivityAPI, threadId);
SAME(abi::Api, correlation, CUpti_ActivityAPI, correlationId);
SAME(abi::Api, return_value, CUpti_ActivityAPI, returnValue);

#define COLLECTOR_SYNC(Theirs)                                    \
  SAME(abi::Synchronization, type, Theirs, type);                 \
  SAME(abi::Synchronization, start, Theirs, start);               \
  SAME(abi::Synchronization, end, Theirs, end);                   \
  SAME(abi::Synchronization, correlation, Theirs, correlationId); \
  SAME(abi::Synchronization, context, Theirs, contextId);         \
  SAME(abi::Synchronization, stream, Theirs, streamId);           \
  SAME(abi::Synchronization, event, Theirs, cudaEventId)
COLLECTOR_SYNC(CUpti_ActivitySynchronization);
NEWER(COLLECTOR_SYNC(CUpti_ActivitySynchronization2));
NEWER(SAME(abi::Synchronization, event_sync_id, CUpti_ActivitySynchronization2, cudaEventSyncId));
// The size of a record must tell whether it has this field.
static_assert(sizeof(CUpti_ActivitySynchronization) <=
              offsetof(abi::Synchronization, event_sync_id));

#define COLLECTOR_EVENT(Theirs)                             \
  SAME(abi::CudaEvent, correlation, Theirs, correlationId); \
  SAME(abi::CudaEvent, context, Theirs, contextId);         \
  SAME(abi::CudaEvent, stream, Theirs, streamId);           \
  SAME(abi::CudaEvent, event, Theirs, eventId)
COLLECTOR_EVENT(CUpti_ActivityCudaEvent);
NEWER(COLLECTOR_EVENT(CUpti_ActivityCudaEvent2));
NEWER(SAME(abi::CudaEvent, device, CUpti_ActivityCudaEvent2, deviceId));
NEWER(SAME(abi::CudaEvent, device_timestamp, CUpti_ActivityCudaEvent2, deviceTimestamp));
NEWER(SAME(abi::CudaEvent, event_sync_id, CUpti_ActivityCudaEvent2, cudaEventSyncId));
static_assert(sizeof(CUpti_ActivityCudaEvent) <= offsetof(abi::CudaEvent, device));

#define COLLECTOR_MEMORY(Theirs)                                                              \
  SAME(abi::Memory, operation, Theirs, memoryOperationType);                                  \
  SAME(abi::Memory, memory_kind, Theirs, memoryKind);                                         \
  SAME(abi::Memory, correlation, Theirs, correlationId);                                      \
  SAME(abi::Memory, address, Theirs, address);                                                \
  SAME(abi::Memory, bytes, Theirs, bytes);                                                    \
  SAME(abi::Memory, timestamp, Theirs, timestamp);                                            \
  SAME(abi::Memory, program_counter, Theirs, PC);                                             \
  SAME(abi::Memory, process, Theirs, processId);                                              \
  SAME(abi::Memory, device, Theirs, deviceId);                                                \
  SAME(abi::Memory, context, Theirs, contextId);                                              \
  SAME(abi::Memory, stream, Theirs, streamId);                                                \
  SAME(abi::Memory, name, Theirs, name);                                                      \
  SAME(abi::Memory, is_async, Theirs, isAsync);                                               \
  SAME_PLACE(abi::Memory, pool_type, Theirs, memoryPoolConfig.memoryPoolType);                \
  SAME_PLACE(abi::Memory, pool_address, Theirs, memoryPoolConfig.address);                    \
  SAME_PLACE(abi::Memory, pool_release_threshold, Theirs, memoryPoolConfig.releaseThreshold); \
  SAME_PLACE(abi::Memory, pool_size, Theirs, memoryPoolConfig.pool.size)
COLLECTOR_MEMORY(CUpti_ActivityMemory2);
COLLECTOR_MEMORY(CUpti_ActivityMemory3);
NEWER(COLLECTOR_MEMORY(CUpti_ActivityMemory4));
NEWER(SAME_PLACE(abi::Memory, pool_utilized, CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize));

#define COLLECTOR_POOL(Theirs)                                        \
  SAME(abi::MemoryPool, operation, Theirs, memoryPoolOperationType);  \
  SAME(abi::MemoryPool, pool_type, Theirs, memoryPoolType);           \
  SAME(abi::MemoryPool, correlation, Theirs, correlationId);          \
  SAME(abi::MemoryPool, process, Theirs, processId);                  \
  SAME(abi::MemoryPool, device, Theirs, deviceId);                    \
  SAME(abi::MemoryPool, least_bytes_kept, Theirs, minBytesToKeep);    \
  SAME(abi::MemoryPool, address, Theirs, address);                    \
  SAME(abi::MemoryPool, size, Theirs, size);                          \
  SAME(abi::MemoryPool, release_threshold, Theirs, releaseThreshold); \
  SAME(abi::MemoryPool, timestamp, Theirs, timestamp)
COLLECTOR_POOL(CUpti_ActivityMemoryPool);
COLLECTOR_POOL(CUpti_ActivityMemoryPool2);
NEWER(COLLECTOR_POOL(CUpti_ActivityMemoryPool3));
NEWER(SAME(abi::MemoryPool, utilized, CUpti_ActivityMemoryPool3, utilizedSize));

#define COLLECTOR_OVERHEAD(Theirs)                          \
  SAME(abi::Overhead, overhead_kind, Theirs, overheadKind); \
  SAME(abi::Overhead, object_kind, Theirs, objectKind);     \
  SAME(abi::Overhead, object, Theirs, objectId);            \
  SAME(abi::Overhead, start, Theirs, start);                \
  SAME(abi::Overhead, end, Theirs, end)
COLLECTOR_OVERHEAD(CUpti_ActivityOverhead);
NEWER(COLLECTOR_OVERHEAD(CUpti_ActivityOverhead2));
NEWER(COLLECTOR_OVERHEAD(CUpti_ActivityOverhead3));
NEWER(SAME(abi::Overhead, correlation, CUpti_ActivityOverhead3, correlationId));
NEWER(SAME(abi::Overhead, details, CUpti_ActivityOverhead3, overheadData));
static_assert(sizeof(CUpti_ActivityOverhead) <= offsetof(abi::Overhead, correlation));
NEWER(static_assert(sizeof(CUpti_ActivityOverhead2) <= offsetof(abi::Overhead, details)));

#define COLLECTOR_DEVICE(Theirs)                                      \
  SAME(abi::Device, flags, Theirs, flags);                            \
  SAME(abi::Device, memory_bandwidth, Theirs, globalMemoryBandwidth); \
  SAME(abi::Device, memory_bytes, Theirs, globalMemorySize);          \
  SAME(abi::Device, constant_memory, Theirs, constantMemorySize);     \
  SAME(abi::Device, l2_bytes, Theirs, l2CacheSize);                   \
  SAME(abi::Device, warp_size, Theirs, numThreadsPerWarp);            \
  SAME(abi::Device, core_clock_khz, Theirs, coreClockRate);           \
  SAME(abi::Device, copy_engines, Theirs, numMemcpyEngines);          \
  SAME(abi::Device, multiprocessors, Theirs, numMultiprocessors);     \
  SAME_PLACE(abi::Device, limits, Theirs, maxIPC);                    \
  SAME(abi::Device, major, Theirs, computeCapabilityMajor);           \
  SAME(abi::Device, minor, Theirs, computeCapabilityMinor);           \
  SAME(abi::Device, ordinal, Theirs, id);                             \
  SAME(abi::Device, has_ecc, Theirs, eccEnabled);                     \
  SAME(abi::Device, uuid, Theirs, uuid);                              \
  SAME(abi::Device, name, Theirs, name)
COLLECTOR_DEVICE(CUpti_ActivityDevice3);
COLLECTOR_DEVICE(CUpti_ActivityDevice4);
NEWER(COLLECTOR_DEVICE(CUpti_ActivityDevice5));

#define COLLECTOR_CONTEXT(Theirs)                       \
  SAME(abi::Context, context, Theirs, contextId);       \
  SAME(abi::Context, device, Theirs, deviceId);         \
  SAME(abi::Context, api_kind, Theirs, computeApiKind); \
  SAME(abi::Context, null_stream, Theirs, nullStreamId)
COLLECTOR_CONTEXT(CUpti_ActivityContext);
NEWER(COLLECTOR_CONTEXT(CUpti_ActivityContext2));
NEWER(COLLECTOR_CONTEXT(CUpti_ActivityContext3));

SAME(abi::Stream, context, CUpti_ActivityStream, contextId);
SAME(abi::Stream, stream, CUpti_ActivityStream, streamId);
SAME(abi::Stream, priority, CUpti_ActivityStream, priority);
SAME(abi::Stream, flag, CUpti_ActivityStream, flag);
SAME(abi::Stream, correlation, CUpti_ActivityStream, correlationId);
SAME(abi::Name, object_kind, CUpti_ActivityName, objectKind);
SAME(abi::Name, object, CUpti_ActivityName, objectId);
SAME(abi::Name, name, CUpti_ActivityName, name);

// CUPTI passes these to callbacks.
SAME(abi::CallbackData, site, CUpti_CallbackData, callbackSite);
SAME(abi::ResourceData, context, CUpti_ResourceData, context);
SAME(abi::ResourceData, handle, CUpti_ResourceData, resourceHandle);
SAME(abi::ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME(abi::GraphData, graph, CUpti_GraphData, graph);
SAME(abi::GraphData, original_graph, CUpti_GraphData, originalGraph);
SAME(abi::GraphData, node, CUpti_GraphData, node);
SAME(abi::GraphData, original_node, CUpti_GraphData, originalNode);
SAME(abi::GraphData, node_type, CUpti_GraphData, nodeType);
SAME(abi::GraphData, dependency, CUpti_GraphData, dependency);
SAME(abi::GraphData, graph_exec, CUpti_GraphData, graphExec);
NEWER(SAME_PLACE(abi::StateData, result, CUpti_StateData, notification.result));
NEWER(SAME_PLACE(abi::StateData, message, CUpti_StateData, notification.message));
NEWER(SAME(abi::SubscriberParams, struct_size, CUpti_SubscriberParams, structSize));
NEWER(SAME(abi::SubscriberParams, subscriber_name, CUpti_SubscriberParams, subscriberName));
NEWER(SAME(abi::SubscriberParams, old_subscriber_name, CUpti_SubscriberParams, oldSubscriberName));
NEWER(SAME(abi::SubscriberParams, old_subscriber_size, CUpti_SubscriberParams, oldSubscriberSize));
NEWER(static_assert(sizeof(abi::SubscriberParams) == CUpti_SubscriberParams_STRUCT_SIZE));

NUMBER(abi::kSuccess, CUPTI_SUCCESS);
NUMBER(abi::kInvalidParameter, CUPTI_ERROR_INVALID_PARAMETER);
NUMBER(abi::kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
NUMBER(abi::kNotInitialized, CUPTI_ERROR_NOT_INITIALIZED);
NUMBER(abi::kInvalidKind, CUPTI_ERROR_INVALID_KIND);
NUMBER(abi::kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
NUMBER(abi::kLegacyProfilerNotSupported, CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED);
NUMBER(abi::kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
NUMBER(abi::kVirtualizedInsufficientPrivileges,
       CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES);
NUMBER(abi::kUnknown, CUPTI_ERROR_UNKNOWN);

NUMBER(abi::Kind::memcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
NUMBER(abi::Kind::memset, CUPTI_ACTIVITY_KIND_MEMSET);
NUMBER(abi::Kind::driver, CUPTI_ACTIVITY_KIND_DRIVER);
NUMBER(abi::Kind::runtime, CUPTI_ACTIVITY_KIND_RUNTIME);
NUMBER(abi::Kind::device, CUPTI_ACTIVITY_KIND_DEVICE);
NUMBER(abi::Kind::context, CUPTI_ACTIVITY_KIND_CONTEXT);
NUMBER(abi::Kind::concurrent_kernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
NUMBER(abi::Kind::name, CUPTI_ACTIVITY_KIND_NAME);
NUMBER(abi::Kind::overhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
NUMBER(abi::Kind::memcpy_peer, CUPTI_ACTIVITY_KIND_MEMCPY2);
NUMBER(abi::Kind::cuda_event, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
NUMBER(abi::Kind::stream, CUPTI_ACTIVITY_KIND_STREAM);
NUMBER(abi::Kind::synchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
NUMBER(abi::Kind::internal_launch_api, CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API);
NUMBER(abi::Kind::memory, CUPTI_ACTIVITY_KIND_MEMORY2);
NUMBER(abi::Kind::memory_pool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);

NUMBER(abi::Domain::driver, CUPTI_CB_DOMAIN_DRIVER_API);
NUMBER(abi::Domain::runtime, CUPTI_CB_DOMAIN_RUNTIME_API);
NUMBER(abi::Domain::resource, CUPTI_CB_DOMAIN_RESOURCE);
NEWER(NUMBER(abi::Domain::state, CUPTI_CB_DOMAIN_STATE));
NUMBER(abi::kProfilerStart, CUPTI_DRIVER_TRACE_CBID_cuProfilerStart);
NUMBER(abi::kProfilerStop, CUPTI_DRIVER_TRACE_CBID_cuProfilerStop);
NUMBER(abi::kFrequentDriverCalls[0], CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);
NUMBER(abi::kFrequentDriverCalls[1], CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState);
NEWER(NUMBER(abi::kFrequentDriverCalls[2], CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute));
NUMBER(abi::kFrequentRuntimeCalls[0], CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020);
NUMBER(abi::kGraphNodeDependencyCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_DEPENDENCY_CREATED);
NUMBER(abi::kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
NEWER(NUMBER(abi::kFatalError, CUPTI_CBID_STATE_FATAL_ERROR));
NUMBER(abi::Attribute::device_buffer_size, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
NUMBER(abi::Attribute::device_buffer_pool_limit, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);
NUMBER(abi::kSystemThreadIds, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
NUMBER(abi::kForceFlush, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);

// Functions are passed as pointers, so their types are compared as far as C allows.
static_assert(sizeof(abi::Result) == sizeof(CUptiResult));
static_assert(sizeof(abi::Subscriber) == sizeof(CUpti_SubscriberHandle));
static_assert(sizeof(CUpti_CallbackId) == 4 && sizeof(CUpti_CallbackDomain) == 4);

// The stand-in's records.
using standin::KernelRecord;
NEWER(SAME(KernelRecord, start, CUpti_ActivityKernel10, start));
NEWER(SAME(KernelRecord, completed, CUpti_ActivityKernel10, completed));
NEWER(SAME(KernelRecord, stream, CUpti_ActivityKernel10, streamId));
NEWER(SAME(KernelRecord, grid_x, CUpti_ActivityKernel10, gridX));
NEWER(SAME(KernelRecord, block_z, CUpti_ActivityKernel10, blockZ));
NEWER(SAME(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId));
NEWER(SAME(KernelRecord, name, CUpti_ActivityKernel10, name));
NEWER(SAME(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId));
NEWER(SAME(KernelRecord, graph, CUpti_ActivityKernel10, graphId));
NEWER(SAME(KernelRecord, channel, CUpti_ActivityKernel10, channelID));
NEWER(SAME(KernelRecord, local_total_long, CUpti_ActivityKernel10, localMemoryTotal_v2));
NEWER(SAME(standin::MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes));
NEWER(SAME(standin::MemcpyRecord, correlation, CUpti_ActivityMemcpy6, correlationId));
NEWER(SAME(standin::MemcpyRecord, graph, CUpti_ActivityMemcpy6, graphId));
NEWER(SAME(standin::MemcpyRecord, copy_count, CUpti_ActivityMemcpy6, copyCount));
SAME(standin::MemcpyPeerRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME(standin::MemcpyPeerRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME(standin::MemcpyPeerRecord, graph, CUpti_ActivityMemcpyPtoP4, graphId);
SAME(standin::MemsetRecord, correlation, CUpti_ActivityMemset4, correlationId);
SAME(standin::MemsetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);
SAME(standin::MemsetRecord, graph, CUpti_ActivityMemset4, graphId);
SAME(standin::ApiRecord, callback, CUpti_ActivityAPI, cbid);
SAME(standin::ApiRecord, return_value, CUpti_ActivityAPI, returnValue);
NEWER(SAME(standin::SynchronizationRecord, event, CUpti_ActivitySynchronization2, cudaEventId));
NEWER(SAME(standin::SynchronizationRecord, event_sync_id, CUpti_ActivitySynchronization2,
           cudaEventSyncId));
NEWER(SAME(standin::CudaEventRecord, event, CUpti_ActivityCudaEvent2, eventId));
NEWER(SAME(standin::CudaEventRecord, event_sync_id, CUpti_ActivityCudaEvent2, cudaEventSyncId));
NEWER(SAME(standin::Memory2Record, timestamp, CUpti_ActivityMemory4, timestamp));
NEWER(SAME(standin::Memory2Record, name, CUpti_ActivityMemory4, name));
NEWER(SAME(standin::Memory2Record, source, CUpti_ActivityMemory4, source));
NEWER(SAME(standin::MemoryPoolRecord, timestamp, CUpti_ActivityMemoryPool3, timestamp));
NEWER(SAME(standin::MemoryPoolRecord, utilized, CUpti_ActivityMemoryPool3, utilizedSize));
NEWER(SAME(standin::OverheadRecord, object, CUpti_ActivityOverhead3, objectId));
NEWER(SAME(standin::OverheadRecord, details, CUpti_ActivityOverhead3, overheadData));
NEWER(SAME(standin::DeviceRecord, major, CUpti_ActivityDevice5, computeCapabilityMajor));
NEWER(SAME(standin::DeviceRecord, name, CUpti_ActivityDevice5, name));
NEWER(SAME(standin::DeviceRecord, mig_uuid, CUpti_ActivityDevice5, migUuid));
NEWER(SAME(standin::DeviceRecord, numa_id, CUpti_ActivityDevice5, numaId));
NEWER(SAME(standin::ContextRecord, null_stream, CUpti_ActivityContext3, nullStreamId));
NEWER(SAME(standin::ContextRecord, cig_mode, CUpti_ActivityContext3, cigMode));
SAME(standin::StreamRecord, correlation, CUpti_ActivityStream, correlationId);
SAME(standin::NameRecord, name, CUpti_ActivityName, name);

// The lengths of records: those of CUDA 13.0, and those of 12.4 and 11.8 as far as the headers have
// them.
constexpr std::uint32_t k13 = 130001;
constexpr std::uint32_t k12_4 = 22;
constexpr std::uint32_t k11_8 = 18;
#define LENGTH(kind, version, Theirs) \
  static_assert(standin::record_bytes(kind, version) == sizeof(Theirs), #Theirs)
NEWER(LENGTH(standin::kConcurrentKernel, k13, CUpti_ActivityKernel10));
NEWER(LENGTH(standin::kConcurrentKernel, k12_4, CUpti_ActivityKernel9));
LENGTH(standin::kConcurrentKernel, 17, CUpti_ActivityKernel7);
NEWER(LENGTH(standin::kMemcpy, k13, CUpti_ActivityMemcpy6));
LENGTH(standin::kMemcpy, k12_4, CUpti_ActivityMemcpy5);
LENGTH(standin::kMemcpyPeer, k13, CUpti_ActivityMemcpyPtoP4);
LENGTH(standin::kMemset, k13, CUpti_ActivityMemset4);
LENGTH(standin::kMemset, k12_4, CUpti_ActivityMemset4);
LENGTH(standin::kRuntime, k13, CUpti_ActivityAPI);
NEWER(LENGTH(standin::kSynchronization, k13, CUpti_ActivitySynchronization2));
LENGTH(standin::kSynchronization, k12_4, CUpti_ActivitySynchronization);
NEWER(LENGTH(standin::kCudaEvent, k13, CUpti_ActivityCudaEvent2));
LENGTH(standin::kCudaEvent, k12_4, CUpti_ActivityCudaEvent);
NEWER(LENGTH(standin::kMemory2, k13, CUpti_ActivityMemory4));
LENGTH(standin::kMemory2, k12_4, CUpti_ActivityMemory3);
NEWER(LENGTH(standin::kMemoryPool, k13, CUpti_ActivityMemoryPool3));
LENGTH(standin::kMemoryPool, k12_4, CUpti_ActivityMemoryPool2);
NEWER(LENGTH(standin::kOverhead, k13, CUpti_ActivityOverhead3));
NEWER(LENGTH(standin::kOverhead, k12_4, CUpti_ActivityOverhead2));
NEWER(LENGTH(standin::kDevice, k13, CUpti_ActivityDevice5));
LENGTH(standin::kDevice, k12_4, CUpti_ActivityDevice4);
NEWER(LENGTH(standin::kContext, k13, CUpti_ActivityContext3));
LENGTH(standin::kContext, k12_4, CUpti_ActivityContext);
LENGTH(standin::kStream, k13, CUpti_ActivityStream);
LENGTH(standin::kName, k13, CUpti_ActivityName);
LENGTH(standin::kConcurrentKernel, k11_8, CUpti_ActivityKernel8);
LENGTH(standin::kMemcpy, k11_8, CUpti_ActivityMemcpy5);
LENGTH(standin::kMemcpyPeer, k11_8, CUpti_ActivityMemcpyPtoP4);
LENGTH(standin::kMemset, k11_8, CUpti_ActivityMemset4);
LENGTH(standin::kRuntime, k11_8, CUpti_ActivityAPI);
LENGTH(standin::kSynchronization, k11_8, CUpti_ActivitySynchronization);
LENGTH(standin::kCudaEvent, k11_8, CUpti_ActivityCudaEvent);
LENGTH(standin::kMemory2, k11_8, CUpti_ActivityMemory3);
LENGTH(standin::kMemoryPool, k11_8, CUpti_ActivityMemoryPool2);
LENGTH(standin::kOverhead, k11_8, CUpti_ActivityOverhead);
LENGTH(standin::kDevice, k11_8, CUpti_ActivityDevice4);
LENGTH(standin::kContext, k11_8, CUpti_ActivityContext);
LENGTH(standin::kStream, k11_8, CUpti_ActivityStream);
LENGTH(standin::kName, k11_8, CUpti_ActivityName);

using Iterate = CUptiResult (*)(std::uint8_t*, std::size_t, CUpti_Activity**);

constexpr std::uint32_t kKinds[] = {
    standin::kMemcpy,         standin::kMemset,     standin::kDriver,
    standin::kRuntime,        standin::kDevice,     standin::kContext,
    standin::kName,           standin::kOverhead,   standin::kConcurrentKernel,
    standin::kMemcpyPeer,     standin::kCudaEvent,  standin::kStream,
    standin::kMemory2,        standin::kMemoryPool, standin::kInternalLaunchApi,
    standin::kSynchronization};

/// A buffer of zeros, except for the kinds; `places` receives the offset of each record.
std::vector<std::uint8_t> lay_out(std::uint32_t version, std::vector<std::size_t>& places) {
  std::size_t size = 0;
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t kind : kKinds) {
      places.push_back(size);
      size += standin::record_bytes(kind, version);
    }
  }
  std::vector<std::uint8_t> buffer(size, 0);
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::memcpy(&buffer[places[i]], &kKinds[i % std::size(kKinds)], sizeof(std::uint32_t));
  }
  return buffer;
}

/// True if NVIDIA's iterator finds the records where they were put.
bool agrees(Iterate next, std::uint32_t version) {
  std::vector<std::size_t> places;
  std::vector<std::uint8_t> buffer = lay_out(version, places);
  CUpti_Activity* record = nullptr;
  for (const std::size_t place : places) {
    const CUptiResult result = next(buffer.data(), buffer.size(), &record);
    const auto found =
        record == nullptr ? -1 : reinterpret_cast<std::uint8_t*>(record) - buffer.data();
    if (result != CUPTI_SUCCESS || found != static_cast<std::ptrdiff_t>(place)) {
      std::printf("a record put at %zu is found at %td, result %d\n", place, found, result);
      return false;
    }
  }
  const CUptiResult end = next(buffer.data(), buffer.size(), &record);
  if (end != CUPTI_ERROR_MAX_LIMIT_REACHED) std::printf("behind the last record: %d\n", end);
  return end == CUPTI_ERROR_MAX_LIMIT_REACHED;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kSkipped = 77;
  const char* library = count > 1 ? arguments[1] : "libcupti.so";
  void* cupti = dlopen(library, RTLD_NOW);
  if (cupti == nullptr) {
    std::printf("headers agree; NVIDIA's library is not here: %s\n", dlerror());
    return kSkipped;
  }
  const auto next = reinterpret_cast<Iterate>(dlsym(cupti, "cuptiActivityGetNextRecord"));
  const auto version =
      reinterpret_cast<CUptiResult (*)(std::uint32_t*)>(dlsym(cupti, "cuptiGetVersion"));
  std::uint32_t number = 0;
  if (next == nullptr || version == nullptr || version(&number) != CUPTI_SUCCESS) return 1;
  if (number / 100 != k13 / 100 && number != k11_8) {
    std::printf("this CUPTI, version %u, is of another CUDA than 13.0 and 11.8\n", number);
    return kSkipped;
  }
  const bool agree = agrees(next, number);
  if (agree) std::printf("headers and the iterator of CUPTI, version %u, agree\n", number);
  return agree ? 0 : 1;
}

// The played driver: devices whose streams run in order, and a record of everything that they do,
// with the kinds and fields that NVIDIA documents.

#include <unistd.h>

#include <cstdlib>

#include "collect/standin/device.h"
#include "collect/standin/library.h"

namespace standin {

namespace {

void create_stream(std::uint32_t device, std::uint32_t stream, std::uint32_t priority) {
  StreamRecord record{};
  record.kind = kStream;
  record.context = context_of(device);
  record.stream = stream;
  record.priority = priority;
  record.correlation = last_correlation();
  activity().write(&record);
}

void init(std::uint32_t count) {
  for (std::uint32_t device = 0; device < count; ++device) {
    DeviceRecord record{};
    record.kind = kDevice;
    record.memory_bandwidth = 4'814'200'000;  // Kilobytes a second.
    record.memory_bytes = 150'754'820'096;
    record.l2_bytes = 62'914'560;
    record.warp_size = 32;
    record.core_clock_khz = 1'980'000;
    record.multiprocessors = 132;
    record.major = 9;
    record.id = device;
    record.name = "NVIDIA H200";
    activity().write(&record);
    ContextRecord context{};
    context.kind = kContext;
    context.context = context_of(device);
    context.device = device;
    context.api_kind = 1;
    context.null_stream = kNullStream;
    activity().write(&context);
    create_stream(device, kNullStream, 0);
  }
  if (library().faults.ends_first) std::atexit([] { activity().end(); });
  if (!library().faults.replay.empty()) replay(library());
}

constexpr std::uint32_t kCudaLaunchKernel = 211;
constexpr std::uint32_t kCuLaunchKernel = 307;

std::uint32_t launch(const Launch* launch) {
  const Call call(launch->by_driver ? kDriverDomain : kRuntimeDomain,
                  launch->by_driver ? kCuLaunchKernel : kCudaLaunchKernel);
  run_kernel(*launch, {call.correlation(), 0, 0});
  return call.correlation();
}

void copy_to_peer(const Copy& copy, std::uint32_t correlation) {
  const auto [start, end] = put(copy.device, copy.stream, copy.duration_ns);
  MemcpyPeerRecord record{};
  record.kind = kMemcpyPeer;
  record.copy_kind = copy.kind;
  record.source_kind = record.destination_kind = 3;
  record.flags = copy.is_async ? 1 : 0;
  record.bytes = copy.bytes;
  record.device = copy.device;
  record.context = context_of(copy.device);
  record.stream = copy.stream;
  record.source_device = copy.device;
  record.source_context = context_of(copy.device);
  record.destination_device = copy.to_device;
  record.destination_context = context_of(copy.to_device);
  record.correlation = correlation;
  const Unfinished unfinished{0, kMemcpyPeer, start, end};
  activity().write(&record, &unfinished);
}

void copy(const Copy* copy) {
  constexpr std::uint32_t kMemcpyCall = 31;
  constexpr std::uint32_t kMemcpyAsyncCall = 41;
  constexpr std::uint32_t kMemcpyPeerAsyncCall = 161;
  constexpr std::uint8_t kToPeer = 10;
  constexpr std::uint8_t kPinned = 2;
  constexpr std::uint8_t kOnDevice = 3;
  const bool to_peer = copy->kind == kToPeer;
  const Call call(kRuntimeDomain, to_peer          ? kMemcpyPeerAsyncCall
                                  : copy->is_async ? kMemcpyAsyncCall
                                                   : kMemcpyCall);
  if (to_peer) return copy_to_peer(*copy, call.correlation());
  const auto [start, end] = put(copy->device, copy->stream, copy->duration_ns);
  MemcpyRecord record{};
  record.kind = kMemcpy;
  record.copy_kind = copy->kind;
  record.source_kind = copy->kind == 1 ? kPinned : kOnDevice;
  record.destination_kind = copy->kind == 2 ? kPinned : kOnDevice;
  record.flags = copy->is_async ? 1 : 0;
  record.bytes = copy->bytes;
  record.device = copy->device;
  record.context = context_of(copy->device);
  record.stream = copy->stream;
  record.correlation = record.runtime_correlation = call.correlation();
  record.copy_count = 1;
  const Unfinished unfinished{0, kMemcpy, start, end};
  activity().write(&record, &unfinished);
  if (!copy->is_async) wait_until(end);
}

void fill(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes, std::uint64_t duration) {
  const Call call(kRuntimeDomain, 51);
  const auto [start, end] = put(device, stream, duration);
  MemsetRecord record{};
  record.kind = kMemset;
  record.bytes = bytes;
  record.device = device;
  record.context = context_of(device);
  record.stream = stream;
  record.correlation = call.correlation();
  record.flags = 1;
  record.memory_kind = 3;
  const Unfinished unfinished{0, kMemset, start, end};
  activity().write(&record, &unfinished);
}

void plain_call(std::uint32_t domain, std::uint32_t id) { const Call call(domain, id); }

void allocate(const Allocation* allocation) {
  const std::uint32_t calls[2][2] = {{20, 22}, {373, 375}};
  const Call call(kRuntimeDomain, calls[allocation->from_pool][allocation->is_release]);
  Memory2Record record{};
  record.kind = kMemory2;
  record.operation = allocation->is_release ? 2 : 1;
  record.memory_kind = 3;
  record.correlation = call.correlation();
  record.address = allocation->address;
  record.bytes = allocation->bytes;
  record.timestamp = activity().now();
  record.process = static_cast<std::uint32_t>(getpid());
  record.device = allocation->device;
  record.context = context_of(allocation->device);
  record.stream = allocation->from_pool ? allocation->stream : kNone;
  if (allocation->from_pool) {
    record.is_async = 1;
    record.pool_type = 1;
    record.pool_address = 0x7000;
    record.pool_size = allocation->bytes;
  }
  activity().write(&record);
}

void pool(std::uint32_t operation, std::uint32_t device, std::uint64_t address,
          std::uint64_t size) {
  MemoryPoolRecord record{};
  record.kind = kMemoryPool;
  record.operation = operation;
  record.pool_type = 1;
  record.process = static_cast<std::uint32_t>(getpid());
  record.device = device;
  record.address = address;
  record.size = size;
  record.timestamp = activity().now();
  record.utilized = size / 2;
  activity().write(&record);
}

void profiler(bool start) {
  const Call outer(kRuntimeDomain, start ? 171 : 172);
  const Call inner(kDriverDomain, start ? 308 : 309);
}

void command_buffer_full(std::uint64_t duration) {
  struct Details {
    std::uint32_t length, channel, channel_type;
  };
  OverheadRecord record{};
  record.kind = kOverhead;
  record.overhead_kind = 6U << 16;
  record.object_kind = 2;
  record.object[0] = static_cast<std::uint32_t>(getpid());
  record.object[1] = own_thread();
  record.start = activity().now();
  record.end = record.start + duration;
  record.correlation = last_correlation();
  const bool has_details =
      record_bytes(kOverhead, library().faults.version) == sizeof(OverheadRecord) &&
      activity().is_enabled(kOverhead);
  if (has_details) record.details = std::calloc(1, sizeof(Details));
  activity().write(&record);
}

void fail(std::int32_t code, const char* message) {
  struct StateData {
    std::int32_t result;
    const char* message;
  };
  constexpr std::uint32_t kFatalError = 1;
  const StateData state{code, message};
  library().call_back(kStateDomain, kFatalError, &state);
  activity().end();
}

}  // namespace

}  // namespace standin

extern "C" __attribute__((visibility("default"))) const standin::Driver standin_driver;
const standin::Driver standin_driver = {
    [] { return standin::library().faults.version; },
    standin::init,
    standin::create_stream,
    standin::launch,
    standin::copy,
    standin::fill,
    standin::plain_call,
    standin::synchronize_stream,
    standin::synchronize_device,
    standin::record_event,
    standin::wait_event,
    standin::synchronize_event,
    standin::allocate,
    standin::pool,
    standin::profiler,
    standin::create_graph,
    standin::add_node,
    standin::add_dependency,
    standin::instantiate,
    standin::launch_graph,
    standin::node_id,
    standin::command_buffer_full,
    standin::fail,
    [](std::uint32_t kind) { return standin::activity().counts(kind); },
    [] { return standin::activity().lost(); },
    [] { return standin::activity().client_ns(); },
};

#pragma once

// The interface between the stand-in for libcupti and a program that plays a CUDA program: the part
// of the driver that CUPTI watches. Devices run the work on their streams in order, for the
// durations that the caller gives. The program finds the stand-in by the symbol kDriverSymbol;
// without it (NVIDIA's own library, or none) nothing is played.
//
// Environment FORETRACE_STANDIN, a comma list:
//
//     version=N        of the interface; decides sizes of records, and what is fatal
//     no_driver=1      every call answers as NVIDIA's does without a driver: 999
//     subscribe=CODE   cuptiSubscribe fails
//     holder=NAME      the name that cuptiSubscribe_v2 returns for the client that holds CUPTI
//     register=CODE    cuptiActivityRegisterCallbacks fails
//     enable.KIND=CODE cuptiActivityEnable of that kind fails
//     untimed=N        every Nth kernel comes without times
//     bad_record=N     the Nth record of a buffer is cut: the iterator stops with 21
//     worker_us=N      the worker thread waits this long before it delivers a buffer
//     deliver=caller   buffers are delivered on the thread that flushes
//     strict=1         CUPTI holds one lock during callbacks, and its functions take it
//     exit=first       CUPTI ends itself before the program's exit handlers run
//     flush=hang       cuptiActivityFlushAll never returns
//     null=crash|count what happens if a buffer is null, instead of the version's behaviour
//     replay=FILE      delivers the buffers of a dump (FORETRACE_RAW) when the program starts

#include <cstdint>

namespace standin {

struct Launch {
  const char* name;
  std::uint32_t device;
  std::uint32_t stream;
  std::uint64_t duration_ns;
  bool by_driver;  ///< By cuLaunchKernel, not through the runtime.
  std::int32_t grid[3];
  std::int32_t block[3];
};

struct Copy {
  std::uint8_t kind;  ///< As CUPTI numbers them: 1 in, 2 out, 8 on the device, 10 to a peer.
  std::uint32_t device;
  std::uint32_t stream;
  std::uint32_t to_device;  ///< Set for peer copies.
  std::uint64_t bytes;
  std::uint64_t duration_ns;
  bool is_async;
};

struct Allocation {
  bool is_release;
  bool from_pool;
  std::uint32_t device;
  std::uint32_t stream;
  std::uint64_t address;
  std::uint64_t bytes;
};

/// Counts records of one kind.
struct Counts {
  std::uint64_t written;    ///< Put into a buffer.
  std::uint64_t dropped;    ///< Dropped for lack of a buffer.
  std::uint64_t untimed;    ///< Written records that will never have times.
  std::uint64_t delivered;  ///< The client has read them and came back.
  std::uint64_t bytes;      ///< Total bytes of the copies and fills written.
};

/// Every function may be called from any thread.
struct Driver {
  std::uint32_t (*version)();
  /// cuInit calls this after the injection.
  void (*init)(std::uint32_t devices);
  void (*create_stream)(std::uint32_t device, std::uint32_t stream, std::uint32_t priority);
  std::uint32_t (*launch)(const Launch* launch);
  void (*copy)(const Copy* copy);
  void (*fill)(std::uint32_t device, std::uint32_t stream, std::uint64_t bytes,
               std::uint64_t duration_ns);
  /// A call that puts no work on a device. `domain` is 1 for the driver, 2 for the runtime.
  void (*call)(std::uint32_t domain, std::uint32_t callback);
  void (*synchronize_stream)(std::uint32_t device, std::uint32_t stream);
  void (*synchronize_device)(std::uint32_t device);
  void (*record_event)(std::uint32_t event, std::uint32_t device, std::uint32_t stream);
  void (*wait_event)(std::uint32_t event, std::uint32_t device, std::uint32_t stream);
  void (*synchronize_event)(std::uint32_t event);
  void (*allocate)(const Allocation* allocation);
  /// 1 created, 2 destroyed, 3 trimmed.
  void (*pool)(std::uint32_t operation, std::uint32_t device, std::uint64_t address,
               std::uint64_t size);
  /// cudaProfilerStart and cudaProfilerStop.
  void (*profiler)(bool start);
  void* (*create_graph)();
  void* (*add_node)(void* graph, const char* kernel, std::uint64_t duration_ns);
  /// `after` waits for `before`.
  void (*add_dependency)(void* before, void* after);
  void* (*instantiate)(void* graph);
  std::uint32_t (*launch_graph)(void* executable, std::uint32_t device, std::uint32_t stream);
  std::uint64_t (*node_id)(void* node);
  /// The command buffer is full for a moment, which makes an overhead record with details to be
  /// freed.
  void (*command_buffer_full)(std::uint64_t duration_ns);
  /// CUPTI meets a fatal error, reports it, and ends itself.
  void (*fail)(std::int32_t code, const char* message);
  Counts (*counts)(std::uint32_t kind);
  /// The number of records that the client will never see, because CUPTI ended with them.
  std::uint64_t (*lost)();
  /// The time that the client took to read buffers.
  std::uint64_t (*client_ns)();
};

constexpr const char* kDriverSymbol = "standin_driver";

}  // namespace standin

// Any records, however contradictory, must give a graph that can be replayed, or a TraceError.

#include <cstddef>
#include <cstdint>
#include <string>

#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/simulate.h"
#include "fuzz/supply.h"

namespace foretrace {
namespace {

constexpr const char* kNames[] = {"aten::mm",
                                  "cudaLaunchKernel",
                                  "cudaMemcpyAsync",
                                  "cudaStreamSynchronize",
                                  "cudaDeviceSynchronize",
                                  "cudaEventSynchronize",
                                  "cudaFree",
                                  "ProfilerStep#1",
                                  "ProfilerStep#2",
                                  "Optimizer.step#SGD.step",
                                  "enumerate(DataLoader)#next",
                                  "autograd::engine::evaluate_function: MmBackward0",
                                  "nn.Module: Linear_0",
                                  "ncclDevKernel_AllReduce",
                                  "gemm",
                                  "elementwise"};

NameId name(Trace& trace, Supply& supply) { return trace.names.intern(kNames[supply.below(16)]); }

void add_host(Trace& trace, Supply& supply) {
  HostRecord record;
  record.start_ns = supply.time(), record.duration_ns = supply.time();
  record.name = name(trace, supply);
  record.kind = static_cast<HostKind>(supply.below(6));
  record.thread = static_cast<std::uint16_t>(supply.below(3));
  record.correlation = supply.below(16);
  if (supply.below(4) == 0) {
    record.details = static_cast<std::uint32_t>(trace.op_details.size());
    trace.op_details.push_back({.shapes = trace.names.intern("[[4, 8], [8, 2]]"),
                                .types = {},
                                .values = {},
                                .stack = {},
                                .sequence = supply.below(4)});
  }
  trace.hosts.push_back(record);
}

void add_device(Trace& trace, Supply& supply) {
  DeviceRecord record;
  record.start_ns = supply.time(), record.duration_ns = supply.time();
  record.name = name(trace, supply);
  record.kind = static_cast<DeviceKind>(supply.below(4));
  record.direction = static_cast<CopyDirection>(supply.below(6));
  record.stream = static_cast<std::uint16_t>(supply.below(3));
  record.correlation = supply.below(16);
  record.grid = supply.below(3) * 100;
  trace.devices.push_back(record);
}

void add_sync(Trace& trace, Supply& supply) {
  SyncRecord record;
  record.start_ns = supply.time();
  record.correlation = supply.below(16);
  record.stream = supply.below(4) == 0 ? kNone : supply.below(3);
  record.wait_on_stream = supply.below(4) == 0 ? kNone : supply.below(3);
  record.wait_on_correlation = supply.below(16);
  record.kind = static_cast<SyncKind>(supply.below(5));
  trace.syncs.push_back(record);
}

Trace make_trace(Supply& supply) {
  Trace trace;
  trace.threads.resize(3);
  trace.streams = {{0, 7}, {0, 20}, {1, 7}};
  trace.tick_ns = supply.below(2) == 0 ? 1 : 1000;
  trace.world_size = 2;
  while (!supply.empty()) {
    switch (supply.below(8)) {
      case 0:
        add_sync(trace, supply);
        break;
      case 1:
        trace.memory.push_back({.time_ns = supply.time(),
                                .address = supply.below(4),
                                .bytes = static_cast<std::int64_t>(supply.next()) - 128,
                                .device = static_cast<std::int16_t>(supply.below(2))});
        break;
      case 2:
      case 3:
      case 4:
        add_host(trace, supply);
        break;
      default:
        add_device(trace, supply);
    }
  }
  return trace;
}

}  // namespace
}  // namespace foretrace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace foretrace;
  Supply supply(data, size);
  const Trace trace = make_trace(supply);
  try {
    const Inference inference = infer(trace);
    // No Error is caught for the replay: inferred graphs have no cycles.
    const Timeline timeline = [&] {
      try {
        return simulate(inference.graph);
      } catch (const Error&) {
        __builtin_trap();
      }
    }();
    step_times(inference.graph, timeline);
    breakdown(inference.graph, inference.recorded);
  } catch (const TraceError&) {
  }
  return 0;
}

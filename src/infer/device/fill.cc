// How much of a device the blocks of a kernel fill, from the launch's grid:
//
//     fill = blocks * threads per block / (multiprocessors * slots of each * share that suffices)
//
// A multiprocessor does not need all its thread slots to be busy: half of them saturate memory, and
// compute-bound kernels use at most a quarter, because registers and shared memory are full then
// (both recalled: usual advice on occupancy). Registers and shared memory of a single kernel are
// not recorded, and not counted.

#include <cstdint>
#include <vector>

#include "foretrace/machine.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Share of a device's thread slots with which a kernel reaches the full memory bandwidth, or the
/// full arithmetic rate. Chosen.
constexpr double kSaturatesMemory = 0.5;
constexpr double kSaturatesArithmetic = 0.25;

/// Thread slots of a multiprocessor, by compute capability (CUDA C++ Programming Guide, technical
/// specifications); others have 2048.
int threads_of(const Device& device) {
  if (device.major == 7 && device.minor == 5) return 1024;
  if (device.major == 8 && device.minor != 0) return 1536;
  return device.major == 12 ? 1536 : 2048;
}

/// Thread slots of a device; 0 if unknown.
double resident_threads(const Trace& trace, std::int32_t ordinal) {
  for (const Device& device : trace.properties) {
    if (device.ordinal == ordinal)
      return static_cast<double>(device.multiprocessors) * threads_of(device);
  }
  return 0;
}

}  // namespace

void measure_fill(const Records& records, Graph& graph) {
  const Trace& trace = records.trace;
  // By name; 0 if not determined yet.
  std::vector<double> saturating_shares(trace.names.size(), 0);
  for (const DeviceEvent& event : records.events) {
    const DeviceRecord& record = trace.devices[event.record];
    if (event.kind != TaskKind::kernel || record.grid == 0 || record.block == 0) continue;
    const double capacity = resident_threads(trace, trace.streams[event.stream].device);
    if (capacity <= 0) continue;
    double& share = saturating_shares[static_cast<std::size_t>(record.name)];
    if (share == 0) {
      const bool arithmetic = classify_kernel(trace.names[record.name]).bound == Boundness::compute;
      share = arithmetic ? kSaturatesArithmetic : kSaturatesMemory;
    }
    const double threads = static_cast<double>(record.grid) * record.block;
    graph.task(event.task).fill = static_cast<float>(threads / (capacity * share));
  }
}

}  // namespace foretrace::infer_detail

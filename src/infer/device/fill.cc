// How much of a device the blocks of a kernel fill, from the launch's grid:
//
//     fill = blocks * threads per block / (multiprocessors * threads that suffice for each)
//
// A multiprocessor does not need all its thread slots to be busy: half of them saturate memory, and
// compute-bound kernels use at most a quarter (both recalled: usual advice on occupancy). Nor does
// it hold more blocks than its registers and shared memory allow, where the launch's are recorded:
// one block of 384 threads with 168 registers each is all that fits.

#include <algorithm>
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

/// Bytes of shared memory of a multiprocessor, by compute capability (as above).
std::int64_t shared_memory_of(const Device& device) {
  constexpr std::int64_t kKiB = 1024;
  if (device.major == 7) return (device.minor == 5 ? 64 : 96) * kKiB;
  if (device.major == 8 && device.minor == 0) return 164 * kKiB;
  if (device.major == 8 && device.minor == 7) return 164 * kKiB;
  if (device.major == 9 || device.major == 10) return 228 * kKiB;
  return 100 * kKiB;
}

/// The most threads of a kernel that a multiprocessor holds.
double most_threads(const Device& device, const DeviceRecord& record, const LaunchShape* shape) {
  constexpr std::int64_t kRegisters = 65536;  // On every compute capability since 5.0.
  constexpr std::int64_t kReserved = 1024;    // Shared memory that the driver takes of a block.
  const int threads = threads_of(device);
  const bool is_known = device.major >= 7 && device.name.find("AMD") == device.name.npos;
  if (shape == nullptr || shape->registers == 0 || !is_known) return threads;
  std::int64_t blocks = kRegisters / (std::int64_t{shape->registers} * record.block);
  if (const std::int64_t shared = std::int64_t{shape->static_shared} + shape->dynamic_shared;
      shared > 0)
    blocks = std::min(blocks, shared_memory_of(device) / (shared + kReserved));
  return std::min<double>(threads,
                          static_cast<double>(std::max<std::int64_t>(blocks, 1)) * record.block);
}

/// nullptr if unknown.
const Device* device_with(const Trace& trace, std::int32_t ordinal) {
  const auto found = std::find_if(trace.properties.begin(), trace.properties.end(),
                                  [&](const Device& device) { return device.ordinal == ordinal; });
  return found == trace.properties.end() ? nullptr : &*found;
}

}  // namespace

void measure_fill(const Records& records, Graph& graph) {
  const Trace& trace = records.trace;
  // By name; 0 if not determined yet.
  std::vector<double> saturating_shares(trace.names.size(), 0);
  for (const DeviceEvent& event : records.events) {
    const DeviceRecord& record = trace.devices[event.record];
    if (event.kind != TaskKind::kernel || record.grid == 0 || record.block == 0) continue;
    const Device* const device = device_with(trace, trace.streams[event.stream].device);
    if (device == nullptr || device->multiprocessors == 0) continue;
    double& share = saturating_shares[static_cast<std::size_t>(record.name)];
    if (share == 0) {
      const bool arithmetic = classify_kernel(trace.names[record.name]).bound == Boundness::compute;
      share = arithmetic ? kSaturatesArithmetic : kSaturatesMemory;
    }
    const double threads = static_cast<double>(record.grid) * record.block;
    const LaunchShape* const shape =
        record.launch < trace.launches.size() ? &trace.launches[record.launch] : nullptr;
    const double suffice =
        std::min(threads_of(*device) * share, most_threads(*device, record, shape));
    graph.task(event.task).fill =
        static_cast<float>(threads / (suffice * static_cast<double>(device->multiprocessors)));
  }
}

}  // namespace foretrace::infer_detail

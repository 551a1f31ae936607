// How much of a device the blocks of a kernel take up, from the launch's grid:
//
//     fill = blocks * threads of a block / (multiprocessors * threads of one * part that suffices)
//
// Not all the threads a multiprocessor has places for are needed to keep it busy: half of them
// saturate memory, and kernels made for arithmetic run a quarter at most, as registers and shared
// memory are full then (both recalled: usual advice on occupancy). Registers and shared memory of a
// single kernel are not recorded, and not counted.

#include <cstdint>
#include <vector>

#include "foretrace/machine.h"
#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// The share of a device's places for threads with which a kernel reaches the bandwidth of memory,
/// or the rate of arithmetic, of the whole device. Chosen.
constexpr double kSaturatesMemory = 0.5;
constexpr double kSaturatesArithmetic = 0.25;

/// Places for threads on a multiprocessor, by compute capability (CUDA C++ Programming Guide,
/// technical specifications); others have 2048.
int threads_of(const Device& device) {
  if (device.major == 7 && device.minor == 5) return 1024;
  if (device.major == 8 && device.minor != 0) return 1536;
  return device.major == 12 ? 1536 : 2048;
}

class FillCounter {
 public:
  FillCounter(const Records& records, Graph& graph) : records_(records), graph_(graph) {}

  void count() {
    for (const DeviceEvent& event : records_.events) {
      if (event.kind != TaskKind::kernel) continue;
      const DeviceRecord& record = records_.trace.devices[event.record];
      const double places = places_on(records_.trace.streams[event.stream].device);
      if (record.grid == 0 || record.block == 0 || places <= 0) continue;
      const double threads = static_cast<double>(record.grid) * record.block;
      graph_.task(event.task).fill =
          static_cast<float>(threads / (places * part_that_suffices(record.name)));
    }
  }

 private:
  /// 0 if unknown.
  double places_on(std::int32_t ordinal) const {
    for (const Device& device : records_.trace.properties) {
      if (device.ordinal == ordinal)
        return static_cast<double>(device.multiprocessors) * threads_of(device);
    }
    return 0;
  }

  double part_that_suffices(NameId name) {
    const auto at = static_cast<std::size_t>(name);
    if (parts_.size() <= at) parts_.resize(at + 1, 0);
    if (parts_[at] == 0) {
      const bool arithmetic =
          classify_kernel(records_.trace.names[name]).bound == Boundness::compute;
      parts_[at] = arithmetic ? kSaturatesArithmetic : kSaturatesMemory;
    }
    return parts_[at];
  }

  const Records& records_;
  Graph& graph_;
  std::vector<double> parts_;  ///< By name; 0: not asked yet.
};

}  // namespace

void measure_fill(const Records& records, Graph& graph) { FillCounter(records, graph).count(); }

}  // namespace foretrace::infer_detail

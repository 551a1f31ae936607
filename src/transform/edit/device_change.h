#pragma once

// Inputs of the roofline model for a change of device: the class of each kernel, judged by its
// name, and the peak rates of a device.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/transform.h"
#include "machine/operation_rates.h"

namespace foretrace {

/// Calls classify_kernel() once for each distinct name.
class KernelClasses {
 public:
  explicit KernelClasses(const Graph& graph) : graph_(graph) {}
  const KernelClass& of(NameId name);
  std::string_view name_of(const Task& task) const { return graph_.names()[task.name]; }

 private:
  const Graph& graph_;
  std::vector<KernelClass> classes_;
  std::vector<char> known_;
};

/// The precision of a job, as the names of its kernels say.
struct JobPrecision {
  double half = 0;  ///< Share of the time of kernels bound by arithmetic in half or narrower types.
  double twice = 0;  ///< Share of the time of all kernels in double precision.
  bool has_kernels = false;
  bool of_framework = false;  ///< Whether any kernel is known to be one of a framework.

  /// A job that spends half of its time or more so computes in that precision: kernels whose names
  /// do not tell their precision do so, too.
  bool mostly_half() const { return half >= 0.5; }
  bool mostly_double() const { return twice >= 0.5; }
};
JobPrecision precision_of(const Graph& graph);

/// Finds a kernel's row in the table of rates of operations: attention or a product if it is bound
/// by arithmetic.
OperationKind operation_of(const KernelClass& kernel, std::string_view name);

/// The arithmetic that `kernel` seems to use: double or half if its name says so, TF32 if it runs
/// on tensor cores of a device that has it, otherwise FP32.
Arithmetic arithmetic_of(const KernelClass& kernel, const DeviceModel& device);

/// Whether arithmetic, not the bandwidth of memory, limits a kernel that took as long as recorded
/// at `rate`: its known operations explain half of its time or more, or they are not known.
bool limited_by_arithmetic(const Task& task, const OperationRate& rate);

/// Gives kernels that now compute in `type` names that say so, for later changes and for another of
/// the same kind.
void name_narrow(Graph& graph, const std::vector<TaskId>& kernels, std::string_view type);

/// The built-in device that a graph's work was recorded on; nullptr if it is not known.
const DeviceModel* recorded_device(const Graph& graph);

/// Returns the device that `name`, the value of `setting`, means or, if it is empty, the device
/// that the graph's work runs on. Throws Error naming `setting` if that device is unknown.
DeviceModel device_for(const Graph& graph, const Context& context, std::string_view setting,
                       const std::string& name);

/// Returns the memory bandwidth of the device in `context` or, if there is none, of the recorded
/// device. Throws Error if that is unknown; the message begins with `wanted_for`.
Bandwidth memory_rate(const Graph& graph, const Context& context, const std::string& wanted_for);

}  // namespace foretrace

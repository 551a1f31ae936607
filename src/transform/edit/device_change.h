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

/// Share, 0 to 1, of the time of kernels bound by arithmetic that is spent in half precision or
/// narrower, as their names say; 0 if no kernel is bound by arithmetic.
double share_in_half_precision(const Graph& graph);

/// A job with this share or more computes in half precision: kernels whose names do not tell their
/// precision do so, too.
constexpr double kMostlyHalf = 0.5;

/// Returns the peak of the precision that `kernel` seems to compute in: half if its name says so,
/// TF32 if it runs on tensor cores, otherwise FP32.
Throughput peak_of(const DeviceModel& device, const KernelClass& kernel);

/// Returns the device that `name`, the value of `setting`, means or, if it is empty, the device
/// that the graph's work runs on. Throws Error naming `setting` if that device is unknown.
DeviceModel device_for(const Graph& graph, const Context& context, std::string_view setting,
                       const std::string& name);

}  // namespace foretrace

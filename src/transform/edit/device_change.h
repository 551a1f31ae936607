#pragma once

// How much faster a kernel gets when what it runs on changes: the roofline, as far as names of
// kernels tell.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/machine.h"
#include "foretrace/transform.h"

namespace foretrace {

/// classify_kernel(), once for each distinct name.
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

/// The peak of the precision `kernel` seems to compute in: half where its name says so, TF32 where
/// it runs on tensor cores, otherwise FP32.
Throughput peak_of(const DeviceModel& device, const KernelClass& kernel);

/// The device that `name` (a setting) means or, if it is empty, the one that the graph's work runs
/// on. Throws Error with the setting.
DeviceModel device_for(const Graph& graph, const Context& context, std::string_view setting,
                       const std::string& name);

}  // namespace foretrace

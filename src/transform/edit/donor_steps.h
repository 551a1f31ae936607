#pragma once

// Takes the times of kernels from another trace: the kernels of one typical step in order, and the
// median time of kernels of the same name or kind.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Numbers names: equal names in two traces get the same number, however each trace interned them.
class NameNumbers {
 public:
  std::uint32_t of(std::string_view name);

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

/// The kernels of each step, in the order in which they start.
using KernelSteps = std::map<std::int32_t, std::vector<TaskId>>;
KernelSteps kernel_steps(const Graph& graph, const std::vector<TaskId>& kernels);

/// Names the kind of work a kernel does, to match kernels whose names differ between the traces.
std::string kind_of_kernel(std::string_view name);

struct DonorKernel {
  std::string name;
  Nanoseconds duration{0};
};

class DonorSteps {
 public:
  explicit DonorSteps(const Graph& donor);

  /// The step with the median number of kernels; each duration is the median over all steps with
  /// the same kernels. Empty if the donor has no kernels.
  const std::vector<DonorKernel>& typical() const { return typical_; }
  bool has_steps() const { return has_steps_; }
  std::optional<Nanoseconds> by_name(std::string_view name) const;
  /// Returns the median time of kernels of that kind; if both traces record operations, returns the
  /// kind's time per operation times `flops`. Returns nullopt if the donor has no such kernel.
  std::optional<Nanoseconds> by_kind(const std::string& kind, double flops) const;

 private:
  void take_typical(const Graph& donor, const KernelSteps& steps);

  struct KernelTimes {
    std::vector<Nanoseconds> durations;  ///< Empty once `typical`, their median, is known.
    Nanoseconds typical{0};
    double flops = 0;
    Nanoseconds with_flops{0};  ///< The total time of kernels whose arithmetic is known.
  };
  bool has_steps_ = false;
  std::vector<DonorKernel> typical_;
  std::map<std::string, KernelTimes, std::less<>> names_, kinds_;
};

}  // namespace foretrace

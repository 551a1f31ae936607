#pragma once

// Takes the times of kernels from another trace: one typical step of it, in order, and the
// middle time of each kernel by name and by kind.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// Names that both traces share get the same number, however each of them interned it.
class NameNumbers {
 public:
  std::uint32_t of(std::string_view name);

 private:
  std::map<std::string, std::uint32_t, std::less<>> numbers_;
};

/// Kernels of one step, in the order in which they start.
using KernelSteps = std::map<std::int32_t, std::vector<TaskId>>;
KernelSteps kernel_steps(const Graph& graph, const std::vector<TaskId>& kernels);

/// Names the kind of work a kernel does, for kernels that are called differently in both traces.
std::string kind_of_kernel(std::string_view name);

struct DonorKernel {
  std::string name;
  Nanoseconds duration{0};
};

class DonorSteps {
 public:
  explicit DonorSteps(const Graph& donor);

  /// The step with the middle number of kernels; each time is the middle one of the steps with the
  /// same kernels. Empty without kernels.
  const std::vector<DonorKernel>& typical() const { return typical_; }
  bool has_steps() const { return has_steps_; }
  std::optional<Nanoseconds> by_name(std::string_view name) const;
  /// Returns the time of kernels of that kind; by their arithmetic where both traces know it.
  std::optional<Nanoseconds> by_kind(const std::string& kind, double flops) const;

 private:
  void take_typical(const Graph& donor, const KernelSteps& steps);

  struct Known {
    std::vector<Nanoseconds> durations;  ///< Until `typical` is known, their median.
    Nanoseconds typical{0};
    double flops = 0;
    Nanoseconds with_flops{0};  ///< The total time of kernels whose arithmetic is known.
  };
  bool has_steps_ = false;
  std::vector<DonorKernel> typical_;
  std::map<std::string, Known, std::less<>> names_, kinds_;
};

}  // namespace foretrace

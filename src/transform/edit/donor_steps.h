#pragma once

// Takes the times of kernels from another trace: the kernels of each kind of step in order, and the
// median time of kernels of the same name or kind.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// The kernels of each step, in the order in which they start.
using KernelSteps = std::map<std::int32_t, std::vector<TaskId>>;
KernelSteps kernel_steps(const Graph& graph, const Timeline& timeline,
                         const std::vector<TaskId>& kernels);

/// Steps with the same kernels in the same order.
struct StepKind {
  std::vector<const std::vector<TaskId>*> steps;  ///< Elements of KernelSteps.
  bool is_common = true;                          ///< At least a tenth of all steps.
};
/// Returns the kinds that recur, the commonest first. If none does, the only kind is the step with
/// the median number of kernels. Without steps, the whole recording is one.
std::vector<StepKind> step_kinds(const Graph& graph, const KernelSteps& steps);

/// How much of a step the device waits: no kernel, copy or collective runs.
double waiting_share(const Graph& graph, const Timeline& timeline);

/// Names the kind of work a kernel does, to match kernels whose names differ between the traces.
std::string kind_of_kernel(std::string_view name);

struct DonorKernel {
  std::string name;
  Nanoseconds duration{0};
};

class DonorSteps {
 public:
  explicit DonorSteps(const Graph& donor);

  struct Kind {
    std::vector<DonorKernel> kernels;  ///< Each duration is the median over the steps.
    bool is_common = true;
  };
  /// See step_kinds(). Empty if the donor has no kernels.
  const std::vector<Kind>& kinds() const { return step_kinds_; }
  /// See waiting_share().
  double waits() const { return waits_; }
  bool has_steps() const { return has_steps_; }
  std::optional<Nanoseconds> by_name(std::string_view name) const;
  /// Returns the median time of kernels of that kind; if both traces record operations, returns the
  /// kind's time per operation times `flops`. Returns nullopt if the donor has no such kernel.
  std::optional<Nanoseconds> by_kind(const std::string& kind, double flops) const;

 private:
  struct KernelTimes {
    std::vector<Nanoseconds> durations;  ///< Empty once `typical`, their median, is known.
    Nanoseconds typical{0};
    double flops = 0;
    Nanoseconds with_flops{0};  ///< The total time of kernels whose arithmetic is known.
  };
  bool has_steps_ = false;
  double waits_ = 0;
  std::vector<Kind> step_kinds_;
  std::map<std::string, KernelTimes, std::less<>> names_, kinds_;
};

}  // namespace foretrace

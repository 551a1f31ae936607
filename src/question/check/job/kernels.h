#pragma once

// Compares kernels of one name and shape with the earlier times of the same kernels.
//
// A kernel's own time depends on no host, so it varies little, and hundreds of kernels are compared
// at once. Two quantities guard against chance:
//
//     pace     the slowdown of most kernels: the clock, the device. A single kernel is judged
//              relative to it.
//     noise    sigma^2 = (scatter of all kernels between the two recordings)^2
//                      + (variation of its own steps)^2
//                      + (variation between several blessed recordings)^2
//                      + (resolution of the recorder's clock)^2
//              With n kernels, one is slower beyond sqrt(2 ln(100 n)) sigma, which noise reaches by
//              chance in less than one comparison out of a hundred (Bonferroni, of a normal tail).
//
// In addition it must take kMinSlower longer, in each step longer than in any before, and the
// time added to all such kernels of its name must be kMinShare of the work of all kernels.

#include <cstdint>
#include <vector>

#include "foretrace/question/check.h"
#include "question/check/job/job_summary.h"

namespace foretrace {

struct JobKernels {
  std::vector<KernelTimes> kernels;  ///< Sorted by name and key.
  /// By task, an index into `kernels`; kNone for tasks that are no listed kernel.
  std::vector<std::uint32_t> kernel_of;
};
JobKernels kernels_of(const ObservedJob& job);

/// A kernel counts as slower only if it takes longer by at least this share.
constexpr double kMinSlower = 0.05;
/// The least time added in a step, as a share of the work of all kernels.
constexpr double kMinShare = 0.001;

struct SlowerKernel {
  std::uint32_t before = 0, now = 0;  ///< Indices into the two lists.
  double ratio = 1;                   ///< Slowdown relative to the pace.
  Nanoseconds added{0};               ///< Time added per step, beyond the pace.
};
/// Sorted by the time they add, most first.
std::vector<SlowerKernel> slower_kernels(const std::vector<KernelTimes>& before,
                                         const std::vector<KernelTimes>& now);

/// Share of the work in `before` that belongs to kernels in both lists, from 0 to 1; 1 if `before`
/// has no work.
double compared_share(const std::vector<KernelTimes>& before, const std::vector<KernelTimes>& now);

/// By which factor a typical kernel takes longer in each step of `now` than in `before`: the median
/// weighted by work, where no kernel weighs more than a tenth. In parts of a million; empty if the
/// two have hardly any kernel in common.
std::vector<std::int64_t> kernel_pace(const std::vector<KernelTimes>& before,
                                      const std::vector<KernelTimes>& now);

}  // namespace foretrace

#pragma once

// How fast the kernels of a recording run, by op and shape, against what the device can do.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// Kernels of one name that an op with these shapes launches.
struct KernelRow {
  std::string op;       ///< "aten::addmm"; empty if no op was recorded.
  std::string shapes;   ///< "[[768], [4096, 768], [768, 768]]"; empty if not recorded.
  std::string kernel;   ///< As recorded.
  double count = 0;     ///< In a step.
  Nanoseconds time{0};  ///< In a step.
  Nanoseconds each{0};  ///< Mean duration.
  double flops = 0;     ///< Of one; 0 if not known.
  std::string
      arithmetic;  ///< "bf16 or fp16", "tf32"; by the kernel's name, empty if that does not say.
  double peak_flops = 0;  ///< Per second, of this arithmetic on the device; 0 if not known.
  /// The least time that arithmetic and the reading of inputs allow, relative to `each`; 0 if not
  /// known.
  double of_roofline = 0;

  double flops_per_second() const {
    return each.count() > 0 ? flops / (static_cast<double>(each.count()) * 1e-9) : 0;
  }
  /// Time in a step beyond the roofline; 0 if that is not known.
  Nanoseconds lost() const {
    if (of_roofline <= 0 || of_roofline >= 1) return Nanoseconds{0};
    return Nanoseconds(
        static_cast<std::int64_t>(static_cast<double>(time.count()) * (1 - of_roofline)));
  }
};

struct KernelReport {
  std::string trace, device;  ///< `device`: whose peaks are used; empty if it is not known.
  std::int32_t rank = 0;
  std::int64_t ranks = 1;
  bool has_steps = false;       ///< Otherwise figures are those of the whole recording.
  Nanoseconds all{0};           ///< Time of all kernels in a step.
  Nanoseconds known{0};         ///< Of those that are compared with the roofline.
  double of_roofline = 0;       ///< Of all those together.
  std::int64_t impossible = 0;  ///< Rows faster than the roofline, which count as not known.
  std::vector<KernelRow> rows;  ///< Most time lost to the roofline first, then longest first.
};

}  // namespace foretrace

#pragma once

// Where the time of a rank's devices goes, by the definitions of Holistic Trace Analysis, so that
// its users find their figures again:
//
//     kernel time   |<--------------------------------------->|   first start to last finish
//     computes       ######    ####        ######    ########     any kernel that only computes
//     other               ~~~~~~  ~~                ~~            collectives, copies and fills
//     idle                           ......
//
// The recorded work ends with what is launched before the last profiler step begins, if there are
// at least two steps: that step is often not whole. Without steps, all work counts.

#include "foretrace/trace.h"

namespace foretrace {

/// Unions of intervals over all devices and streams of a trace; all 0 without device work. Idle,
/// compute and non-compute add up to the kernel time.
struct DeviceShares {
  Nanoseconds kernel_time{0};
  Nanoseconds idle{0};
  Nanoseconds compute{0};
  Nanoseconds non_compute{0};    ///< Something runs, but nothing computes.
  Nanoseconds communication{0};  ///< Kernels of NCCL run, whatever else does.
  Nanoseconds overlap{0};        ///< They run while others compute.
};

/// Takes time O(n log n) in the device records.
DeviceShares device_shares(const Trace& trace);

}  // namespace foretrace

#pragma once

// The one table of calls that wait for a device, by what they wait for. Names of CUDA and HIP
// differ only in the prefix; Level Zero, SYCL (Unified Runtime) and others have names of their own.
// It is only about names: whether work was awaited is for infer/host/calls.cc to find out.

#include <cstdint>
#include <string_view>

namespace foretrace {

/// Names the work that a call waits for. some_work: the call synchronizes, but its name does not
/// say with what. at_release: it frees memory, and waits for the device before its own work.
enum class WaitCall : std::uint8_t { none, stream, event, device, some_work, at_release };

WaitCall wait_call(std::string_view call);

/// Whether a driver call allocates or frees memory: "cudaMalloc", "hipFree", "cuMemAlloc_v2" ...,
/// but not from a pool (cudaMallocAsync).
bool is_driver_allocation(std::string_view call);

}  // namespace foretrace

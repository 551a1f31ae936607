#pragma once

// The one table of calls that wait for a device, by what they wait for. Names of CUDA and HIP
// differ only in the prefix; Level Zero, SYCL (Unified Runtime) and others have names of their own.
// It is only about names: whether work was awaited is for infer/host/calls.cc to find out.

#include <cstdint>
#include <string_view>

namespace foretrace {

/// What a call waits for. some_work: the name says that it synchronizes, but not with what.
/// at_release: a call that frees memory, which waits for the device before it does its own work.
enum class WaitCall : std::uint8_t { none, stream, event, device, some_work, at_release };

WaitCall wait_call(std::string_view call);

/// Whether a driver call allocates or frees memory: "cudaMalloc", "hipFree", "cuMemAlloc_v2" ...,
/// but not from a pool (cudaMallocAsync).
bool is_driver_allocation(std::string_view call);

}  // namespace foretrace

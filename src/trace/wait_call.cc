#include "trace/wait_call.h"

#include <algorithm>

#include "base/contains.h"

namespace foretrace {
namespace {

struct WaitName {
  std::string_view part;  ///< Of the name.
  WaitCall wait;
};

/// The first line that fits decides. Recalled of CUDA, HIP, Level Zero (ze), Unified Runtime (ur)
/// and its predecessor (pi), Ascend (aclrt), Cambricon (cnrt) and JAX.
constexpr WaitName kWaitNames[] = {
    {"WaitEvent", WaitCall::none},  // A stream waits, not the host.
    {"StreamSynchronize", WaitCall::stream},
    {"SynchronizeStream", WaitCall::stream},
    {"QueueSynchronize", WaitCall::stream},
    {"CommandListHostSynchronize", WaitCall::stream},
    {"QueueFinish", WaitCall::stream},
    {"cnrtQueueSync", WaitCall::stream},
    {"EventSynchronize", WaitCall::event},
    {"SynchronizeEvent", WaitCall::event},
    {"EventHostSynchronize", WaitCall::event},
    {"FenceHostSynchronize", WaitCall::event},
    {"urEventWait", WaitCall::event},
    {"piEventsWait", WaitCall::event},
    {"DeviceSynchronize", WaitCall::device},
    {"SynchronizeDevice", WaitCall::device},
    {"deviceSynchronize", WaitCall::device},
    {"CtxSynchronize", WaitCall::device},
    {"ThreadSynchronize", WaitCall::device},
    {"block_until_ready", WaitCall::some_work},
    {"BlockUntilReady", WaitCall::some_work},
    {"BlockHostUntil", WaitCall::some_work},
    // A device of a kind not known: its calls are still named by the verb, in either case.
    {"ynchroniz", WaitCall::some_work},
};

constexpr std::string_view kReleases[] = {"cudaFree", "cudaHostAlloc", "hipFree", "hipHostFree",
                                          "cuMemFree"};
constexpr std::string_view kDriverAllocations[] = {
    "cudaMalloc", "cudaFree",  "cudaHostAlloc", "hipMalloc",   "hipFree",       "hipHostMalloc",
    "cuMemAlloc", "cuMemFree", "hipExtMalloc",  "hipHostFree", "cuMemHostAlloc"};

template <std::size_t size>
bool starts_with_any(std::string_view call, const std::string_view (&known)[size]) {
  return std::any_of(std::begin(known), std::end(known),
                     [&](std::string_view part) { return call.starts_with(part); });
}

}  // namespace

WaitCall wait_call(std::string_view call) {
  for (const WaitName& known : kWaitNames) {
    if (contains(call, known.part)) return known.wait;
  }
  const bool in_order = contains(call, "Async");
  return !in_order && starts_with_any(call, kReleases) ? WaitCall::at_release : WaitCall::none;
}

bool is_driver_allocation(std::string_view call) {
  return !contains(call, "Async") && starts_with_any(call, kDriverAllocations);
}

}  // namespace foretrace

// A library for LD_PRELOAD. It does two things that the library that the driver loads cannot do.
//
// It intercepts the function that PyTorch's caching allocator calls for each block that it
// allocates or frees, notes the block and passes the call on. The symbols are those of PyTorch 2
// and of 1.9 to 1.13; in a version with another name, no blocks are recorded and nothing breaks.
//
// It also reserves CUPTI for the recording. A second client, such as torch.profiler, would take the
// buffers over silently, so its calls get the error that CUPTI returns when it is in use.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>

#include "collect/cupti/cupti_abi.h"
#include "collect/runtime/keep_errno.h"
#include "collect/runtime/library_bridge.h"
#include "collect/runtime/standard_error.h"

extern "C" {
__attribute__((visibility("default"))) foretrace::collect::LibraryBridge foretrace_library_bridge{
    .standard_error = foretrace::collect::FileIdentity::of(STDERR_FILENO)};
}

namespace {

/// The layout of c10::Device: type (0 CPU, 1 CUDA, 20 HIP) and ordinal.
struct TorchDevice {
  std::int8_t type;
  std::int8_t ordinal;
};
constexpr std::int8_t kHost = 0;

using Report = void (*)(void* block, std::int64_t bytes, std::size_t allocated,
                        std::size_t reserved, TorchDevice device);

template <class Function>
Function next_of(const char* name, const char* library_name) {
  if (void* next = dlsym(RTLD_NEXT, name)) return reinterpret_cast<Function>(next);
  // RTLD_NEXT does not find a library that Python loaded with RTLD_LOCAL.
  void* library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library, name));
}

struct Change {
  void* block;
  std::int64_t bytes;
  std::size_t allocated, reserved;
  TorchDevice device;
};

void note(const Change& change) {
  const foretrace::collect::KeepErrno keep;
  const auto found = foretrace_library_bridge.note_block.load(std::memory_order_acquire);
  if (found == nullptr) return;
  const foretrace::collect::BlockChange block{
      reinterpret_cast<std::uintptr_t>(change.block), change.bytes,
      static_cast<std::int64_t>(change.allocated), static_cast<std::int64_t>(change.reserved),
      static_cast<std::int16_t>(change.device.type == kHost ? -1 : change.device.ordinal)};
  found(&block);
}

bool recording_holds_cupti() {
  const auto holds = foretrace_library_bridge.holds_cupti.load(std::memory_order_acquire);
  return holds != nullptr && holds() == 1;
}

void warn_once() {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  constexpr std::string_view kText =
      "foretrace: another profiler asked for CUPTI and was refused, as this program is being "
      "recorded\n";
  foretrace::collect::write_line(kText, foretrace_library_bridge.standard_error);
}

foretrace::cupti::Result refuse() {
  const foretrace::collect::KeepErrno keep;
  warn_once();
  return foretrace::cupti::kMultipleSubscribers;
}

/// Finds the real function of whichever version of libcupti is loaded. Returns nullptr if none is.
template <class Function>
Function cupti_function(const char* name) {
  for (const char* library : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"}) {
    if (const auto function = next_of<Function>(name, library)) return function;
  }
  return nullptr;
}

}  // namespace

// These names are given by PyTorch and CUPTI.
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
extern "C" {

__attribute__((visibility("default"))) void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(
    void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
    TorchDevice device);
__attribute__((visibility("default"))) void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(
    void* block, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
    TorchDevice device);
__attribute__((visibility("default"))) foretrace::cupti::Result cuptiSubscribe(
    foretrace::cupti::Subscriber* subscriber, foretrace::cupti::Callback callback, void* user);
__attribute__((visibility("default"))) foretrace::cupti::Result cuptiActivityRegisterCallbacks(
    foretrace::cupti::BufferRequested requested, foretrace::cupti::BufferCompleted completed);

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void* block, std::int64_t bytes,
                                                           std::size_t allocated,
                                                           std::size_t reserved,
                                                           TorchDevice device) {
  note({block, bytes, allocated, reserved, device});
  static const auto next =
      next_of<Report>("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE", "libc10.so");
  if (next != nullptr) next(block, bytes, allocated, reserved, device);
}

void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void* block, std::int64_t bytes,
                                                           std::size_t allocated,
                                                           std::size_t reserved,
                                                           TorchDevice device) {
  note({block, bytes, allocated, reserved, device});
  static const auto next =
      next_of<Report>("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE", "libc10.so");
  if (next != nullptr) next(block, bytes, allocated, reserved, device);
}

foretrace::cupti::Result cuptiSubscribe(foretrace::cupti::Subscriber* subscriber,
                                        foretrace::cupti::Callback callback, void* user) {
  if (recording_holds_cupti()) return refuse();
  const auto real = cupti_function<decltype(&cuptiSubscribe)>("cuptiSubscribe");
  return real == nullptr ? foretrace::cupti::kUnknown : real(subscriber, callback, user);
}

foretrace::cupti::Result cuptiActivityRegisterCallbacks(
    foretrace::cupti::BufferRequested requested, foretrace::cupti::BufferCompleted completed) {
  if (recording_holds_cupti()) return refuse();
  const auto real =
      cupti_function<decltype(&cuptiActivityRegisterCallbacks)>("cuptiActivityRegisterCallbacks");
  return real == nullptr ? foretrace::cupti::kUnknown : real(requested, completed);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)

#include "collect/played/cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "collect/standin/records.h"
#include "support/wait.h"

namespace played {

namespace {

const standin::Driver* found = nullptr;

constexpr struct {
  std::uint32_t kind;
  const char* name;
} kKinds[] = {
    {standin::kConcurrentKernel, "kernel"}, {standin::kMemcpy, "copy"},
    {standin::kMemcpyPeer, "peer_copy"},    {standin::kMemset, "fill"},
    {standin::kRuntime, "runtime"},         {standin::kDriver, "driver"},
    {standin::kSynchronization, "sync"},    {standin::kCudaEvent, "event"},
    {standin::kMemory2, "memory"},          {standin::kMemoryPool, "pool"},
    {standin::kDevice, "device"},           {standin::kContext, "context"},
    {standin::kStream, "stream"},           {standin::kOverhead, "overhead"},
};

void inject() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  if (path == nullptr) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("injection %s\n", dlerror());
    return;
  }
  const auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  std::printf("injection %d\n", initialize == nullptr ? -1 : initialize());
}

}  // namespace

const standin::Driver* driver() { return found; }

void start_cuda(std::uint32_t devices) {
  inject();
  // PLAYED_CUPTI is a library under another path, which FORETRACE_CUPTI names as well.
  const char* const names[] = {"libcupti.so.13", "libcupti.so.12", std::getenv("PLAYED_CUPTI")};
  for (const char* name : names) {
    void* library = name == nullptr ? nullptr : dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) continue;
    found = static_cast<const standin::Driver*>(dlsym(library, standin::kDriverSymbol));
    if (found != nullptr) break;
  }
  if (found != nullptr) found->init(devices);
}

void launch(const char* name, std::uint64_t duration_ns, std::uint32_t stream,
            std::uint32_t device) {
  if (found == nullptr) return;
  const standin::Launch launch{name, device, stream, duration_ns, false, {132, 2, 1}, {256, 1, 1}};
  found->launch(&launch);
}

void run_steps(std::uint64_t count, std::uint32_t device) {
  constexpr std::uint32_t kStream = 7;
  constexpr std::uint64_t kBytes = 4096;
  for (std::uint64_t i = 0; i < count && found != nullptr; ++i) {
    const standin::Copy in{1, device, kStream, 0, kBytes, 2000, true};
    const standin::Copy out{2, device, kStream, 0, kBytes / 2, 1000, true};
    found->copy(&in);
    found->fill(device, kStream, kBytes, 500);
    launch("gemm_kernel(float*, float const*, int)", 3000, kStream, device);
    launch("void at::native::vectorized_elementwise_kernel<4, add>(int)", 1500, kStream, device);
    found->copy(&out);
    found->synchronize_stream(device, kStream);
  }
}

void report() {
  if (found == nullptr) {
    std::printf("no driver\n");
    return;
  }
  for (const auto& kind : kKinds) {
    const standin::Counts counts = found->counts(kind.kind);
    if (counts.written + counts.dropped == 0) continue;
    std::printf("record %s written %lu dropped %lu untimed %lu bytes %lu\n", kind.name,
                counts.written, counts.dropped, counts.untimed, counts.bytes);
  }
  std::printf("lost %lu\n", found->lost());
}

void wait_for_delivery() {
  if (found == nullptr) return;
  std::uint64_t wanted[std::size(kKinds)] = {};
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    wanted[i] = kKinds[i].kind == standin::kOverhead ? 0 : found->counts(kKinds[i].kind).written;
  const auto is_there = [&] {
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
      if (found->counts(kKinds[i].kind).delivered < wanted[i]) return false;
    }
    return true;
  };
  foretrace::wait_until(is_there);
}

}  // namespace played

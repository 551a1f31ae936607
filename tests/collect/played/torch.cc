#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "collect/played/cuda.h"
#include "collect/played/scripts.h"

namespace played {

/// Arguments: the folder of the mock libraries, and how many blocks.
int play_torch(const Arguments& arguments) {
  start_cuda();
  // Loads it as Python loads an extension that was linked with libtorch.
  void* library = dlopen((arguments.at(0) + "/libc10_cuda.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("%s\n", dlerror());
    return 1;
  }
  const auto block =
      reinterpret_cast<void (*)(void*, std::int64_t, std::size_t, std::size_t, std::int8_t)>(
          dlsym(library, "played_block"));
  const auto reports = reinterpret_cast<std::uint64_t (*)()>(dlsym(library, "played_reports"));
  const std::uint64_t count = number(arguments, 1, 10);
  std::size_t allocated = 0;
  constexpr std::size_t kReserved = std::size_t{20} << 20;
  for (std::uint64_t i = 0; i < count; ++i) {
    allocated += 512 * (i + 1);
    block(reinterpret_cast<void*>(0x7f0000000000 + i * 1'048'576),
          static_cast<std::int64_t>(512 * (i + 1)), allocated, kReserved, 0);
  }
  std::printf("peak %zu\n", allocated);
  for (std::uint64_t i = 0; i < count; ++i) {
    allocated -= 512 * (i + 1);
    block(reinterpret_cast<void*>(0x7f0000000000 + i * 1'048'576),
          -static_cast<std::int64_t>(512 * (i + 1)), allocated, kReserved, 0);
  }
  std::printf("reached %lu\n", reports());
  return 0;
}

}  // namespace played

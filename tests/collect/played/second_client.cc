// A program that is linked with libcupti and profiles itself, as PyTorch's Kineto does: first as it
// did until 2026 (subscribe, then register), then as it does since (register alone).

#include <cstdint>
#include <cstdio>

#include "collect/played/cuda.h"

extern "C" {
std::int32_t cuptiSubscribe(void** subscriber,
                            void (*callback)(void*, std::uint32_t, std::uint32_t, const void*),
                            void* user);
std::int32_t cuptiActivityRegisterCallbacks(void (*requested)(std::uint8_t**, std::size_t*,
                                                              std::size_t*),
                                            void (*completed)(void*, std::uint32_t, std::uint8_t*,
                                                              std::size_t, std::size_t));
std::int32_t cuptiActivityFlushAll(std::uint32_t flag);
}

namespace {

std::uint64_t stolen = 0;

void listen(void*, std::uint32_t, std::uint32_t, const void*) {}

void request(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  alignas(8) static std::uint8_t bytes[1 << 16];
  *buffer = bytes;
  *size = sizeof bytes;
  *most = 0;
}

void complete(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t valid) {
  stolen += valid;
}

}  // namespace

int main() {
  played::start_cuda();
  played::run_steps(10);
  void* subscriber = nullptr;
  std::printf("subscribe %d\n", cuptiSubscribe(&subscriber, listen, nullptr));
  std::printf("register %d\n", cuptiActivityRegisterCallbacks(request, complete));
  played::run_steps(10);
  std::printf("stolen %lu\n", stolen);
  played::report();
  return 0;
}

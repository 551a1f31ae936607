#include "collect/played/torch_mock.h"

void played_block(void* pointer, std::int64_t bytes, std::size_t total_allocated,
                  std::size_t total_reserved, std::int8_t device) {
  c10::reportMemoryUsageToProfiler(pointer, bytes, total_allocated, total_reserved, {1, device});
}

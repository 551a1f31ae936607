#include "collect/cupti/buffers.h"

#include <cstdlib>

namespace foretrace::collect {

std::uint8_t* Buffers::take() {
  const std::lock_guard lock(mutex_);
  if (in_use_ >= most_ && !always_gives_) return nullptr;
  void* buffer = free_;
  if (free_ != nullptr) {
    free_ = free_->next;
  } else if (posix_memalign(&buffer, 64, bytes_) != 0) {
    return nullptr;
  }
  ++in_use_;
  return static_cast<std::uint8_t*>(buffer);
}

void Buffers::give_back(std::uint8_t* buffer) {
  if (buffer == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (in_use_ > 0) --in_use_;
  if (in_use_ >= most_) {
    std::free(buffer);
    return;
  }
  auto* free = reinterpret_cast<FreeBuffer*>(buffer);
  free->next = free_;
  free_ = free;
}

bool Buffers::is_scarce() {
  const std::lock_guard lock(mutex_);
  return in_use_ > most_;
}

}  // namespace foretrace::collect

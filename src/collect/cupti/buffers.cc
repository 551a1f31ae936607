#include "collect/cupti/buffers.h"

#include <cstdlib>

namespace foretrace::collect {

std::uint8_t* Buffers::take() {
  const std::lock_guard lock(mutex_);
  if (out_ >= most_ && !always_gives_) return nullptr;
  void* buffer = free_;
  if (free_ != nullptr) {
    free_ = free_->next;
  } else if (posix_memalign(&buffer, 64, bytes_) != 0) {
    return nullptr;
  }
  ++out_;
  return static_cast<std::uint8_t*>(buffer);
}

void Buffers::give_back(std::uint8_t* buffer) {
  if (buffer == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (out_ > 0) --out_;
  if (out_ >= most_) {
    std::free(buffer);
    return;
  }
  auto* free = reinterpret_cast<Free*>(buffer);
  free->next = free_;
  free_ = free;
}

bool Buffers::is_scarce() {
  const std::lock_guard lock(mutex_);
  return out_ > most_;
}

}  // namespace foretrace::collect

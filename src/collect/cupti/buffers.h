#pragma once

// The buffers that CUPTI fills. They are reused, and their number is limited, so that a slow disk
// cannot use up the program's memory.

#include <cstddef>
#include <cstdint>
#include <mutex>

namespace foretrace::collect {

class Buffers {
 public:
  void set_limits(std::uint32_t most, std::size_t bytes) {
    most_ = most;
    bytes_ = bytes;
  }
  /// For versions of CUPTI that crash if they get no buffer: take() then exceeds the limit, and
  /// is_scarce() reports that filled buffers should be discarded unread.
  void always_give() { always_gives_ = true; }

  /// Returns nullptr if the allowed number of buffers is in use, or if there is no memory.
  std::uint8_t* take();
  void give_back(std::uint8_t* buffer);
  std::size_t bytes() const { return bytes_; }
  bool is_scarce();

 private:
  struct FreeBuffer {
    FreeBuffer* next;
  };

  std::mutex mutex_;
  FreeBuffer* free_ = nullptr;
  std::uint32_t in_use_ = 0;
  std::uint32_t most_ = 64;
  std::size_t bytes_ = std::size_t{4} << 20;
  bool always_gives_ = false;
};

}  // namespace foretrace::collect

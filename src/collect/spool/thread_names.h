#pragma once

#include <cstddef>
#include <cstdint>

#include "collect/spool/spool_writer.h"

namespace foretrace::collect {

/// The names that the system has for the threads of this process.
class ThreadNames {
 public:
  /// Writes the names of threads that are new or renamed since the last call.
  void write_new(SpoolWriter& writer);

 private:
  static constexpr std::size_t kMax = 4096;
  struct NamedThread {
    std::uint32_t thread;
    std::uint32_t name;
    bool is_new;
  };

  void read();
  void note(std::uint32_t thread, std::uint32_t name);

  NamedThread threads_[kMax] = {};
  std::size_t count_ = 0;
  Texts* texts_ = nullptr;
};

}  // namespace foretrace::collect

#pragma once

// Rows that the program's own threads make (NVTX ranges, allocator blocks, graph nodes) gather in a
// log per thread, so that threads do not wait for each other or for the disk; the recorder drains
// the logs at every flush.

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "collect/spool/spool_writer.h"

namespace foretrace::collect {

class ThreadLog {
 public:
  /// The calling thread's; nullptr if there is no memory for one.
  static ThreadLog* own(SpoolWriter& writer);

  template <class Row>
  void add(const Row& row) {
    add(&row, sizeof row);
  }

  std::uint32_t thread() const { return thread_; }
  /// NVTX ranges that are open on this thread.
  int depth = 0;

  /// Writes what all logs hold, and forgets those of threads that have ended.
  static void drain_all();

 private:
  static constexpr std::size_t kRoom = std::size_t{64} << 10;

  /// Copies the contents of a log, so that its thread can go on while they are written.
  struct Copy {
    std::size_t used = 0;
    std::uint32_t rows = 0;
    char bytes[kRoom];
  };

  void add(const void* row, std::size_t bytes);
  void move_to(Copy& copy);
  bool is_copy() const;

  std::mutex mutex_;
  SpoolWriter* writer_ = nullptr;
  int process_ = 0;  ///< That of the thread.
  std::uint32_t thread_ = 0;
  std::uint32_t rows_ = 0;
  std::size_t used_ = 0;
  bool has_ended_ = false;
  ThreadLog* next_ = nullptr;
  char bytes_[kRoom];

  friend class ThreadLogs;
};

}  // namespace foretrace::collect

#pragma once

// The rows of the program's own threads (NVTX ranges, allocator blocks, graph nodes) are collected
// in one log per thread, so that threads do not wait for each other or for the disk. The recorder
// drains the logs at every flush.

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "collect/spool/spool_writer.h"

namespace foretrace::collect {

class ThreadLog {
 public:
  /// Returns the log of the calling thread, or nullptr if there is no memory for one.
  static ThreadLog* of_calling_thread(SpoolWriter& writer);

  template <class Row>
  void add(const Row& row) {
    add(&row, sizeof row);
  }

  std::uint32_t thread() const { return thread_; }
  /// Number of NVTX ranges that are open on this thread.
  int depth = 0;

  /// Writes the rows of all logs, and deletes the logs of threads that have ended.
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
  int process_ = 0;  ///< The process that created this log.
  std::uint32_t thread_ = 0;
  std::uint32_t rows_ = 0;
  std::size_t used_ = 0;
  bool has_ended_ = false;
  ThreadLog* next_ = nullptr;
  char bytes_[kRoom];

  friend class ThreadLogs;
};

}  // namespace foretrace::collect

#pragma once

// Appends chunks to the spool of this process. Safe to use from any thread; never throws. Records
// that cannot be written are counted, and the file always ends with a whole chunk.
//
// Only the file thread (file_thread.h) uses the file. Callers copy the data to be written. For rows
// of the program's threads, they do not wait until the file thread has written them; for everything
// else they wait, but for a limited time, in case the disk hangs.

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collect/runtime/file_thread.h"
#include "collect/runtime/recorder_file.h"
#include "collect/spool/texts.h"
#include "trace/spool.h"

namespace foretrace::collect {

class SpoolWriter {
 public:
  using Timeout = FileThread::Timeout;

  /// Creates "<folder>/<process>.spool". Returns 0 or an errno.
  int open(const char* folder);
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }

  /// Writes rows after the texts that are new, so that no row uses the number of an unknown text.
  void write_rows(const char* rows, std::size_t bytes, std::uint32_t count, Timeout timeout);
  template <class Row>
  void write_row(const Row& row) {
    write_rows(reinterpret_cast<const char*>(&row), sizeof row, 1, Timeout::program);
  }
  void write_fact(std::string_view key, std::string_view value);
  /// Writes new texts and the header with its counters.
  void write_header();
  void finish();
  /// Gives up the file in the child of a fork; it belongs to the parent.
  void abandon();
  /// Prepares for the end of the program: from `rows_until` on, rows are counted as lost instead of
  /// written, and from `until` on, no thread waits for the disk. Both are monotonic times.
  void set_deadlines(std::uint64_t rows_until, std::uint64_t until);
  /// Whether the program closed the file and it cannot be opened again.
  bool is_lost() const { return is_lost_; }
  /// Returns the number of rows that are lost, or not written yet and lost if the disk hangs.
  std::uint64_t lost() const { return lost_ + left_to_write_; }

  FileThread files;
  Texts texts;

  // The recorder sets these counters of the header; see spool::Header.
  std::atomic<std::uint64_t> dropped_by_cupti{0};
  std::atomic<std::uint64_t> untimed{0};
  std::atomic<std::uint64_t> unknown_records{0};
  std::atomic<std::uint64_t> discarded_records{0};
  std::atomic<std::uint32_t> cupti_version{0};
  std::atomic<std::uint32_t> cupti_error{0};
  std::atomic<spool::Clock> device_clock{spool::Clock::monotonic};

 private:
  template <void (SpoolWriter::*task)(), class Prepare>
  bool run(const Prepare& prepare, Timeout timeout);
  bool stage(const char* bytes, std::size_t size, std::uint32_t count);

  // These run on the file thread.
  void create();
  void put_rows();
  void put_fact();
  void put_header();
  void put_end();
  int put_texts();
  int put_chunk(spool::ChunkKind kind, const char* body, std::size_t bytes, std::uint32_t count);
  void write_header_as(spool::State state);

  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_lost_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> left_to_write_{0};  ///< Rows that the file thread is writing.
  std::atomic<std::uint64_t> rows_until_{UINT64_MAX};

  // Only the task under way uses these: while it is prepared, and on the file thread.
  RecorderFile file_;
  char path_[PATH_MAX] = {};
  int create_error_ = 0;
  char* staged_ = nullptr;  ///< The caller's data, copied.
  std::size_t staged_room_ = 0;
  std::size_t staged_bytes_ = 0;
  std::uint32_t staged_count_ = 0;
  std::uint64_t end_ = 0;
  Texts::Body unwritten_;  ///< Texts that could not be written yet.
  std::uint64_t rows_ = 0;
  std::uint32_t disk_error_ = 0;
};

}  // namespace foretrace::collect

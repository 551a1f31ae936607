#pragma once

// Appends chunks to the spool of this process. Safe to use from any thread; never throws. What
// cannot be written is counted, and the file always ends with a whole chunk.
//
// The file belongs to a thread of its own (file_thread.h). Callers copy what is to be written. The
// program's threads leave rows with that thread; for everything else callers wait until it is
// written, but no longer than a hanging disk deserves.

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collect/own/file_thread.h"
#include "collect/own/own_file.h"
#include "collect/spool/texts.h"
#include "trace/spool.h"

namespace foretrace::collect {

class SpoolWriter {
 public:
  using Patience = FileThread::Patience;

  /// Creates "<folder>/<process>.spool". Returns 0 or an errno.
  int open(const char* folder);
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }

  /// New texts go in front, so that rows never use a number that is not explained.
  void write_rows(const char* rows, std::size_t bytes, std::uint32_t count, Patience patience);
  template <class Row>
  void write_row(const Row& row) {
    write_rows(reinterpret_cast<const char*>(&row), sizeof row, 1, Patience::of_program);
  }
  void write_fact(std::string_view key, std::string_view value);
  /// Puts counters, and what they count, on disk.
  void write_header();
  void finish();
  /// After a fork, in the child: forget the file, which is the parent's.
  void abandon();
  /// The program is to end: rows are counted as lost from `rows_until` on, and nobody waits for the
  /// disk beyond `until`; both of the monotonic clock.
  void hurry(std::uint64_t rows_until, std::uint64_t until);
  /// The program closed the file, and it cannot be opened again.
  bool is_gone() const { return is_gone_; }
  /// Rows that are not on disk, nor ever will be if the disk hangs.
  std::uint64_t lost() const { return lost_ + left_to_write_; }

  FileThread files;
  Texts texts;

  // Only the recorder knows these; see spool::Header.
  std::atomic<std::uint64_t> dropped_by_cupti{0};
  std::atomic<std::uint64_t> untimed{0};
  std::atomic<std::uint64_t> unknown_records{0};
  std::atomic<std::uint64_t> discarded_records{0};
  std::atomic<std::uint32_t> cupti_version{0};
  std::atomic<std::uint32_t> cupti_error{0};
  std::atomic<spool::Clock> device_clock{spool::Clock::monotonic};

 private:
  template <void (SpoolWriter::*task)(), class Prepare>
  bool run(const Prepare& prepare, Patience patience);
  bool stage(const char* bytes, std::size_t size, std::uint32_t count);

  // On the thread of files.
  void create();
  void put_rows();
  void put_fact();
  void put_header();
  void put_end();
  int put_texts();
  int put_chunk(spool::ChunkKind kind, const char* body, std::size_t bytes, std::uint32_t count);
  void write_header_as(spool::State state);

  std::atomic<bool> is_open_{false};
  std::atomic<bool> is_gone_{false};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> left_to_write_{0};  ///< Rows with the thread of files.
  std::atomic<std::uint64_t> rows_until_{UINT64_MAX};

  // Used by the task under way, and by the thread of files.
  OwnFile file_;
  char path_[PATH_MAX] = {};
  int create_error_ = 0;
  char* staged_ = nullptr;  ///< Copied from the caller.
  std::size_t staged_room_ = 0;
  std::size_t staged_bytes_ = 0;
  std::uint32_t staged_count_ = 0;
  std::uint64_t end_ = 0;
  Texts::Body unwritten_;  ///< Texts that the disk had no room for.
  std::uint64_t rows_ = 0;
  std::uint32_t disk_error_ = 0;
};

}  // namespace foretrace::collect

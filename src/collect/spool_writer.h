#pragma once

// Appends chunks to the spool of this process. Safe to use from any thread; never throws. What
// cannot be written is counted, and the file always ends with a whole chunk.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "collect/texts.h"
#include "foretrace/spool.h"

namespace foretrace::collect {

class SpoolWriter {
 public:
  /// Creates "<folder>/<process>.spool". Returns 0 or an errno.
  int open(const char* folder);
  bool is_open() const { return file_.load(std::memory_order_relaxed) >= 0; }

  /// New texts go in front, so that rows never use a number that is not explained.
  void write_rows(const char* rows, std::size_t bytes, std::uint32_t count);
  template <class Row>
  void write_row(const Row& row) {
    write_rows(reinterpret_cast<const char*>(&row), sizeof row, 1);
  }
  void write_fact(std::string_view key, std::string_view value);
  /// Puts counters, and what they count, on disk.
  void write_header();
  void finish();
  /// After a fork, in the child: forget the file, which is the parent's.
  void abandon();

  Texts texts;

  // What only the recorder knows; see spool::Header.
  std::atomic<std::uint64_t> dropped_by_cupti{0};
  std::atomic<std::uint64_t> untimed{0};
  std::atomic<std::uint64_t> unknown_records{0};
  std::atomic<std::uint64_t> discarded_records{0};
  std::atomic<std::uint32_t> cupti_version{0};
  std::atomic<std::uint32_t> cupti_error{0};
  std::atomic<spool::Clock> device_clock{spool::Clock::monotonic};

 private:
  bool write_chunk(spool::ChunkKind kind, const char* body, std::size_t bytes, std::uint32_t count);
  bool write_texts();
  bool write_at(const char* bytes, std::size_t size, std::uint64_t offset);
  void write_locked_header(spool::State state);

  std::mutex mutex_;
  std::atomic<int> file_{-1};
  std::uint64_t end_ = 0;
  Texts::Body unwritten_;  ///< Texts that the disk had no room for.
  std::uint64_t rows_ = 0;
  std::uint64_t lost_ = 0;
  std::uint32_t disk_error_ = 0;
};

}  // namespace foretrace::collect

#pragma once

// The chunks of a spool (trace/spool.h), each checked before it is used. A damaged chunk is left
// out and the next one searched for, so that a torn or damaged file yields everything that is
// intact.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "import/files/trace_file.h"
#include "trace/spool.h"

namespace foretrace {

class SpoolFile {
 public:
  /// Maps the file, or reads it if it is packed. Throws TraceError if it is not a spool.
  explicit SpoolFile(const TraceFile& input);
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;

  const spool::Header& header() const { return header_; }
  std::size_t size() const { return bytes_.size(); }

  struct Chunk {
    spool::ChunkKind kind = spool::ChunkKind::rows;
    std::uint32_t count = 0;
    std::string_view body;
  };

  struct Damage {
    std::int64_t chunks = 0;       ///< That could not be used.
    std::int64_t rows = 0;         ///< In them, as far as known.
    std::int64_t bytes = 0;        ///< Passed over in search of the next chunk.
    std::int64_t first_at = -1;    ///< Byte of the first damage.
    bool ends_in_a_chunk = false;  ///< The last one was being written when all ended.
  };

  /// Calls `visit` with each whole chunk, in order. Linear.
  template <class Visit>
  Damage each_chunk(Visit&& visit) const;

 private:
  /// The next chunk at or after `at`, which moves past it; false at the end.
  bool next(std::size_t& at, Chunk& chunk, Damage& damage) const;
  void pass_over(std::size_t& at, Damage& damage) const;

  std::string_view bytes_;
  std::string read_;  ///< Unless mapped.
  void* mapped_ = nullptr;
  spool::Header header_;
};

template <class Visit>
SpoolFile::Damage SpoolFile::each_chunk(Visit&& visit) const {
  Damage damage;
  Chunk chunk;
  for (std::size_t at = spool::kHeaderBytes; next(at, chunk, damage);) visit(chunk);
  return damage;
}

}  // namespace foretrace

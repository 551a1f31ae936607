#pragma once

// Reads the chunks of a spool (trace/spool.h) and checks each of them. After a damaged chunk the
// reader searches for the next intact one, so that a damaged file yields everything that is intact.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "import/files/trace_file.h"
#include "trace/spool.h"

namespace foretrace {

class SpoolFile {
 public:
  /// Maps the file into memory, or reads it if it is packed. Throws TraceError if it is not a
  /// spool.
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
    std::int64_t chunks = 0;       ///< Number of unusable chunks.
    std::int64_t rows = 0;         ///< Number of rows in them, as far as known.
    std::int64_t bytes = 0;        ///< Bytes skipped in search of the next chunk.
    std::int64_t first_at = -1;    ///< Position of the first damage; -1 if there is none.
    bool ends_in_a_chunk = false;  ///< Whether the file ends within a chunk.
  };

  /// Calls `visit` with each intact chunk, in order. Takes linear time.
  template <class Visit>
  Damage each_chunk(Visit&& visit) const;

 private:
  /// Finds the next intact chunk at or after `at` and moves `at` past it. Returns false at the end.
  bool next(std::size_t& at, Chunk& chunk, Damage& damage) const;
  void pass_over(std::size_t& at, Damage& damage) const;

  std::string_view bytes_;
  std::string read_;  ///< The bytes of a file that is not mapped.
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

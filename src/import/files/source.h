#pragma once

// The bytes of a trace, in order, after decompression. Only a window of them is kept.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "foretrace/notes.h"

namespace foretrace {

/// The stage that produces bytes: unpacking the file, the archive in it, or a packed member of the
/// archive. Members that nobody reads count as `skipped`.
enum class UnpackStage : std::uint8_t { file, archive, member, skipped, count };

/// Limits the output of a packed file. A few megabytes of gzip can unpack to terabytes, so the
/// output is counted as it appears.
///
/// Unless the user gives a limit, one trace may unpack to 16 GiB and, beyond the first 256 MiB, to
/// 200 times the bytes taken from the file. Traces of real programs shrink to a thirtieth or a
/// fortieth; gzip can reach a thousandth.
class UnpackBudget {
 public:
  /// Allows `most` bytes for each trace; 0 applies the rule above.
  explicit UnpackBudget(std::int64_t most = 0) : most_(most) {}

  void add_packed(std::size_t packed) { packed_ += static_cast<std::int64_t>(packed); }
  /// Counts unpacked bytes. Throws TraceError if they exceed a limit.
  void add_unpacked(UnpackStage stage, std::size_t unpacked);
  /// Begins a member of an archive. Each member has the full limit of a trace, but the ratio is
  /// that of the whole archive.
  void begin_trace();

  /// Throws TraceError if one trace may not unpack to this many bytes. Checks sizes that a file
  /// claims before it is unpacked.
  void check(std::int64_t unpacked) const;

 private:
  struct UnpackedBytes {
    std::int64_t total = 0, of_trace = 0;
  };

  std::int64_t most_;
  std::int64_t packed_ = 0;
  bool holds_several_ = false;
  std::array<UnpackedBytes, static_cast<std::size_t>(UnpackStage::count)> unpacked_;
};

class Source {
 public:
  virtual ~Source() = default;

  /// Reads up to `room` bytes and returns their number, which is 0 only at the end.
  virtual std::size_t read(char* to, std::size_t room) = 0;

  /// Why the bytes end too early, as a sentence without its full stop; empty if they are complete.
  /// REQUIRES: read() has returned 0.
  virtual std::string damage() const { return {}; }
};

/// A source whose first bytes can be read in advance.
class PeekedSource : public Source {
 public:
  explicit PeekedSource(std::unique_ptr<Source> rest) : rest_(std::move(rest)) {}

  /// The next `size` bytes without taking them; fewer only at the end. Valid until the next call.
  std::string_view peek(std::size_t size);

  std::size_t read(char* to, std::size_t room) override;
  std::string damage() const override { return rest_->damage(); }

 private:
  std::unique_ptr<Source> rest_;
  std::string head_;
  std::size_t taken_ = 0;
};

/// Reads all bytes, or stops soon after `most`. Throws TraceError if they end too early.
std::string read_whole(Source& bytes, std::size_t most = std::string::npos);

/// The bytes of a file as they are. Throws TraceError, without the path, if it cannot be opened.
std::unique_ptr<Source> open_file(const std::string& path);

std::unique_ptr<Source> inflate_gzip(std::unique_ptr<Source> compressed);
std::unique_ptr<Source> inflate_zstd(std::unique_ptr<Source> compressed);

/// Decompresses gzip, zstd, xz or bzip2, which it recognizes by the first bytes; other bytes stay
/// as they are. Throws TraceError for a Git LFS pointer. The output counts against the budget, and
/// read() throws TraceError if it exceeds the budget.
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes,
                                           std::shared_ptr<UnpackBudget> budget, UnpackStage stage);
/// The same with a budget of its own, for the `bytes` of a whole file.
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes);

/// Pass `bytes` on and count them in the budget as they are read: as bytes taken from the file, or
/// as unpacked bytes.
std::unique_ptr<Source> counted_as_packed(std::unique_ptr<Source> bytes,
                                          std::shared_ptr<UnpackBudget> budget);
std::unique_ptr<Source> counted_as_unpacked(std::unique_ptr<Source> bytes,
                                            std::shared_ptr<UnpackBudget> budget,
                                            UnpackStage stage);

/// Notes that a trace ends early. `where` says in which part ("in the list of events") and may be
/// empty, like `damage`, which says why the file could not be unpacked further.
void note_cut(Notes& notes, std::string_view where, const std::string& damage, std::int64_t at);

}  // namespace foretrace

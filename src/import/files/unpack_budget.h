#pragma once

// Limits the output of a packed file. A few megabytes of gzip can unpack to terabytes, so the
// output is counted as it appears.
//
// Unless the user gives a limit, one trace may unpack to 16 GiB and, beyond the first 256 MiB, to
// 200 times the bytes taken from the file. Traces of real programs shrink to a thirtieth or a
// fortieth; gzip can reach a thousandth.

#include <array>
#include <cstddef>
#include <cstdint>

namespace foretrace {

/// Where bytes appear: from the file, from the archive in it, from a packed member of the archive.
/// Skipped bytes are those of members that nobody reads.
enum class UnpackStage : std::uint8_t { file, archive, member, skipped, count };

class UnpackBudget {
 public:
  /// Allows `most` bytes for each trace; 0 applies the rule above.
  explicit UnpackBudget(std::int64_t most = 0) : most_(most) {}

  void took(std::size_t packed) { packed_ += static_cast<std::int64_t>(packed); }
  /// Throws TraceError if that is too much.
  void gave(UnpackStage stage, std::size_t unpacked);
  /// Begins a member of an archive: it may use as much as the one before. The ratio is that of the
  /// whole archive.
  void begin_trace();

  /// Throws TraceError if this many bytes of one trace are too many. For sizes that a file claims.
  void check(std::int64_t unpacked) const;

 private:
  struct Given {
    std::int64_t all = 0, of_trace = 0;
  };

  std::int64_t most_;
  std::int64_t packed_ = 0;
  bool holds_several_ = false;
  std::array<Given, static_cast<std::size_t>(UnpackStage::count)> given_;
};

}  // namespace foretrace

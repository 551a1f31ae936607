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

/// The stage that produces bytes: unpacking the file, the archive in it, or a packed member of the
/// archive. Members that nobody reads count as `skipped`.
enum class UnpackStage : std::uint8_t { file, archive, member, skipped, count };

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

}  // namespace foretrace

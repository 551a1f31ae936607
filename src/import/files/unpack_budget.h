#pragma once

// How much may come out of a packed file. A few megabytes of gzip can hold terabytes, so what comes
// out is counted while it does.
//
// Unless the user says how much, 16 GiB of one trace are enough, and beyond the first 256 MiB no
// more than 200 times what was taken from the file. Traces of real programs shrink to a thirtieth
// or a fortieth; gzip can reach a thousandth.

#include <array>
#include <cstddef>
#include <cstdint>

namespace foretrace {

/// Where bytes come out: of the file, of the archive in it, of a packed member of the archive.
/// Skipped are those of members that nobody reads.
enum class UnpackStage : std::uint8_t { file, archive, member, skipped, count };

class UnpackBudget {
 public:
  /// `most` bytes of each trace; 0 for the rule above.
  explicit UnpackBudget(std::int64_t most = 0) : most_(most) {}

  void took(std::size_t packed) { packed_ += static_cast<std::int64_t>(packed); }
  /// Throws TraceError where that is too much.
  void gave(UnpackStage stage, std::size_t unpacked);
  /// A member of an archive: what was allowed of the last one is allowed again. The ratio is that
  /// of the whole archive.
  void begin_trace();

  /// Throws TraceError if so many bytes of one trace are too many. For sizes that a file claims.
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

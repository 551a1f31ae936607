#pragma once

// The bytes of a trace, in order, after decompression. Nothing here holds more than a window of
// them.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "import/files/unpack_budget.h"

namespace foretrace {

class Source {
 public:
  virtual ~Source() = default;

  /// Up to `room` bytes; 0 only at the end.
  virtual std::size_t read(char* to, std::size_t room) = 0;

  /// Why the bytes stop before their proper end, as a sentence without its full stop; empty if they
  /// do not. Known after read() has returned 0.
  virtual std::string damage() const { return {}; }
};

/// A source whose first bytes can be looked at without taking them.
class PeekedSource : public Source {
 public:
  explicit PeekedSource(std::unique_ptr<Source> rest) : rest_(std::move(rest)) {}

  /// Fewer than `size` only if there are no more. Valid until the next call.
  std::string_view peek(std::size_t size);

  std::size_t read(char* to, std::size_t room) override;
  std::string damage() const override { return rest_->damage(); }

 private:
  std::unique_ptr<Source> rest_;
  std::string head_;
  std::size_t taken_ = 0;
};

/// The bytes of a file as they are. Throws TraceError, without the path, if it cannot be opened.
std::unique_ptr<Source> open_file(const std::string& path);

std::unique_ptr<Source> inflate_gzip(std::unique_ptr<Source> compressed);
std::unique_ptr<Source> inflate_zstd(std::unique_ptr<Source> compressed);

/// Undoes gzip, zstd, xz or bzip2, if the first bytes say so; a Git LFS pointer is a TraceError.
/// Decompresses `bytes`. The output is counted, and too much of it is a TraceError of read().
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes,
                                           std::shared_ptr<UnpackBudget> budget, UnpackStage stage);
/// With a budget of its own, that `bytes` are counted against.
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes);

/// The bytes of `bytes`, counted as they are read: as taken from the file, or as unpacked.
std::unique_ptr<Source> counted_as_packed(std::unique_ptr<Source> bytes,
                                          std::shared_ptr<UnpackBudget> budget);
std::unique_ptr<Source> counted_as_unpacked(std::unique_ptr<Source> bytes,
                                            std::shared_ptr<UnpackBudget> budget,
                                            UnpackStage stage);

}  // namespace foretrace

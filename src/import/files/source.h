#pragma once

// The bytes of a trace, in order, after decompression. Only a window of them is kept.

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

  /// Why the bytes stop too early, as a sentence without its full stop; empty if they do not. Known
  /// after read() has returned 0.
  virtual std::string damage() const { return {}; }
};

/// A source whose first bytes can be read in advance.
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

/// Undoes gzip, zstd, xz or bzip2, by the first bytes; throws TraceError for a Git LFS pointer. The
/// output is counted, and read() throws TraceError if it is too much.
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes,
                                           std::shared_ptr<UnpackBudget> budget, UnpackStage stage);
/// The same with a budget of its own, which `bytes` count against.
std::unique_ptr<PeekedSource> decompressed(std::unique_ptr<Source> bytes);

/// The same bytes, counted as they are read: as taken from the file, or as unpacked.
std::unique_ptr<Source> counted_as_packed(std::unique_ptr<Source> bytes,
                                          std::shared_ptr<UnpackBudget> budget);
std::unique_ptr<Source> counted_as_unpacked(std::unique_ptr<Source> bytes,
                                            std::shared_ptr<UnpackBudget> budget,
                                            UnpackStage stage);

}  // namespace foretrace

#pragma once

// A sliding window over a long text. A parser works on the text in the window; if a value is
// incomplete at its end, the parser slides the window and parses the value again. So reading a text
// of any length takes as much memory as its longest event.

#include <cstdint>
#include <memory>

#include "import/files/source.h"

namespace foretrace {

class TextWindow {
 public:
  /// Number of readable zero bytes after end(); a scanner may look ahead this far.
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kSize = std::size_t{1} << 20;
  static constexpr std::size_t kLargest = std::size_t{1} << 28;

  explicit TextWindow(Source& bytes, std::size_t size = kSize);

  const char* begin() const { return buffer_.get(); }
  const char* end() const { return buffer_.get() + filled_; }

  /// Drops the text before `from` and reads more behind the rest. Moves `from` so that it points to
  /// the same text. Returns false if there is no more text. Throws TraceError if the text to keep
  /// is longer than kLargest.
  bool slide(const char*& from);

  /// Offset of a position in the whole text.
  std::int64_t offset(const char* at) const { return dropped_ + (at - buffer_.get()); }

 private:
  void grow();

  Source& bytes_;
  std::size_t capacity_;
  std::unique_ptr<char[]> buffer_;
  std::size_t filled_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace foretrace

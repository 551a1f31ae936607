#include "import/scan/text_window.h"

#include <cstring>
#include <fmt/core.h>
#include <string>

#include "foretrace/error.h"

namespace foretrace {

TextWindow::TextWindow(Source& bytes, std::size_t size)
    : bytes_(bytes), capacity_(size), buffer_(new char[size + kPadding]) {
  std::memset(buffer_.get(), 0, kPadding);
}

bool TextWindow::slide(const char*& from) {
  const auto drop = static_cast<std::size_t>(from - buffer_.get());
  const std::size_t keep = filled_ - drop;
  if (drop > 0) std::memmove(buffer_.get(), from, keep);
  dropped_ += static_cast<std::int64_t>(drop);
  filled_ = keep;
  if (keep > capacity_ / 2) grow();
  const std::size_t before = filled_;
  while (filled_ < capacity_) {
    const std::size_t got = bytes_.read(buffer_.get() + filled_, capacity_ - filled_);
    if (got == 0) break;
    filled_ += got;
  }
  std::memset(buffer_.get() + filled_, 0, kPadding);
  from = buffer_.get();
  return filled_ > before;
}

void TextWindow::grow() {
  if (capacity_ >= kLargest) {
    throw TraceError(
        fmt::format("one value is longer than {} MiB, at byte {}", kLargest >> 20U, dropped_));
  }
  std::unique_ptr<char[]> larger(new char[2 * capacity_ + kPadding]);
  std::memcpy(larger.get(), buffer_.get(), filled_);
  buffer_ = std::move(larger);
  capacity_ *= 2;
}

}  // namespace foretrace

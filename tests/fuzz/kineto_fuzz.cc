// Any bytes as a trace: a Trace or a TraceError, in a window of any size.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "foretrace/error.h"
#include "import/kineto_document.h"
#include "trace/validate.h"

namespace {

class Bytes : public foretrace::Source {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t read(char* to, std::size_t room) override {
    const std::size_t part = std::min(room, size_);
    std::memcpy(to, data_, part);
    data_ += part;
    size_ -= part;
    return part;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

/// The first byte chooses the window; what follows may also be compressed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t window = 64 + data[0] * std::size_t{16};
  std::optional<foretrace::Trace> trace;
  try {
    const auto bytes = foretrace::decompressed(std::make_unique<Bytes>(data + 1, size - 1));
    trace = foretrace::KinetoDocument(*bytes, window).read();
  } catch (const foretrace::TraceError&) {
    return 0;
  }
  foretrace::validate(
      *trace);  // What is read refers to nothing that is not there: throwing is a bug.
  return 0;
}

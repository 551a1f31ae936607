// Any bytes as a Perfetto trace: a Trace or a TraceError.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "foretrace/error.h"
#include "import/perfetto.h"
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

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foretrace::PeekedSource source(std::make_unique<Bytes>(data, size));
  try {
    foretrace::validate(foretrace::read_perfetto(source));
  } catch (const foretrace::TraceError&) {
    return 0;
  }
  return 0;
}

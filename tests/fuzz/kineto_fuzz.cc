// Any bytes as a trace: a Trace or a TraceError, in a window of any size.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "foretrace/error.h"
#include "fuzz/bytes.h"
#include "import/kineto/kineto_document.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
/// The first byte chooses the window; the rest may also be compressed.
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
      *trace);  // All references of a trace that was read are valid: throwing is a bug.
  return 0;
}

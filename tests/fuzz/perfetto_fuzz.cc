// Any bytes as a Perfetto trace: a Trace or a TraceError.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "foretrace/error.h"
#include "fuzz/bytes.h"
#include "import/perfetto/perfetto.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  foretrace::PeekedSource source(std::make_unique<Bytes>(data, size));
  try {
    foretrace::validate(foretrace::read_perfetto(source));
  } catch (const foretrace::TraceError&) {
    return 0;
  }
  return 0;
}

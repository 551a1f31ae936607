// Any bytes as an execution trace, Chakra's or PyTorch's, or as a profile of XLA: a Trace or a
// TraceError.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "foretrace/error.h"
#include "fuzz/bytes.h"
#include "import/execution_traces/chakra.h"
#include "import/execution_traces/pytorch_et.h"
#include "import/xplane/xplane.h"
#include "trace/validate.h"

namespace {

foretrace::Trace read(const std::uint8_t* data, std::size_t size) {
  // Input that begins like JSON is PyTorch's.
  if (data[0] == '{') {
    Bytes bytes(data, size);
    return foretrace::PytorchDocument(bytes, 64 + size % 100).read();
  }
  // Behind an X is a profile of XLA.
  if (data[0] == 'X') {
    Bytes bytes(data + 1, size - 1);
    return foretrace::read_xplane(bytes);
  }
  foretrace::PeekedSource bytes(std::make_unique<Bytes>(data, size));
  return foretrace::read_chakra(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::optional<foretrace::Trace> trace;
  try {
    trace = read(data, size);
  } catch (const foretrace::TraceError&) {
    return 0;
  }
  foretrace::validate(
      *trace);  // All references of a trace that was read are valid: throwing is a bug.
  return 0;
}

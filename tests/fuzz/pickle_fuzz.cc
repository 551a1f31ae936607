// Any bytes as a pickle: plain data or a TraceError. If the data is a memory snapshot, it gives a
// valid Trace or a TraceError. Time and memory are bounded by the number of bytes.

#include <cstddef>
#include <cstdint>
#include <string>

#include "foretrace/error.h"
#include "import/torch_memory/pickle.h"
#include "import/torch_memory/torch_memory.h"
#include "trace/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const foretrace::PlainData plain =
        foretrace::read_pickle({reinterpret_cast<const char*>(data), size});
    foretrace::to_json_text(plain, plain.root, 4096);
    foretrace::validate(foretrace::SnapshotReader(plain, size).read());
  } catch (const foretrace::TraceError&) {
  }
  return 0;
}

// Any bytes as a .ftrace file: a TraceError, or a Trace that is written and read back the same.

#include <cstddef>
#include <cstdint>

#include "foretrace/error.h"
#include "trace/ftrace_bytes.h"
#include "trace/ftrace_layout.h"
#include "trace/ftrace_section.h"

namespace {

/// Corrects magic, trailer and checksum of the index, so that the fuzzer reaches the code after
/// these checks.
std::string repaired(const std::uint8_t* data, std::size_t size) {
  namespace ftrace = foretrace::ftrace;
  std::string file(ftrace::kMagic);
  file += std::string("\1\0\0\0\0\0\0\0", 8);
  file.append(reinterpret_cast<const char*>(data), size);
  const std::size_t offset = ftrace::kHeaderSize + (size > 0 ? data[0] % size : 0);
  const std::string_view index = std::string_view(file).substr(offset);
  const std::uint64_t hash = foretrace::ftrace::xxh64(index);
  const std::uint64_t numbers[] = {offset, index.size(), hash};
  for (const std::uint64_t number : numbers) {
    for (int i = 0; i < 8; ++i) file += static_cast<char>(number >> (8 * i));
  }
  file += ftrace::kMagic;
  return file;
}

void read(std::string_view file) {
  try {
    const foretrace::Trace trace = foretrace::from_ftrace(file);
    const std::string written = foretrace::to_ftrace(trace);
    if (foretrace::to_ftrace(foretrace::from_ftrace(written)) != written) __builtin_trap();
  } catch (const foretrace::TraceError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read({reinterpret_cast<const char*>(data), size});
  read(repaired(data, size));
  return 0;
}

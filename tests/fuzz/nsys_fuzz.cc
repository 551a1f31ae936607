// Any bytes as a database of Nsight Systems: a TraceError, or traces that are written and read
// back. tests/scripts/nsys_totals_test.py makes a small database to begin with.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "trace/ftrace_bytes.h"

namespace {

std::string file_of_this_process() {
  std::string name =
      (std::filesystem::temp_directory_path() / "foretrace-fuzz-XXXXXX.sqlite").string();
  ::mkstemps(name.data(), 7);
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = file_of_this_process();
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  try {
    for (const foretrace::Trace& trace : foretrace::import_all(path))
      foretrace::from_ftrace(foretrace::to_ftrace(trace));
  } catch (const foretrace::TraceError&) {
  }
  return 0;
}

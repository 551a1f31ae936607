// Any bytes as a spool: a TraceError, or a trace that is written and read back. The checksums of
// chunks are corrected first, because otherwise nothing would reach the code that reads rows; if
// the lowest bit of the reserved field is set, they stay as they are. Seeds are the spools that
// `foretrace collect --keep-spool` leaves.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/crc32c.h"
#include "foretrace/error.h"
#include "import/files/registered.h"
#include "trace/ftrace_bytes.h"
#include "trace/spool.h"

namespace {

namespace spool = foretrace::spool;

std::string file_of_this_process() {
  std::string name =
      (std::filesystem::temp_directory_path() / "foretrace-fuzz-XXXXXX.spool").string();
  ::mkstemps(name.data(), 6);
  return name;
}

void make_checksums_right(std::string& file) {
  std::size_t at = spool::kHeaderBytes;
  spool::ChunkHeader head;
  while (at + sizeof head <= file.size()) {
    std::memcpy(static_cast<void*>(&head), file.data() + at, sizeof head);
    const std::size_t room = file.size() - at - sizeof head;
    if (head.magic != spool::kChunkMagic || head.bytes > room) {
      at += 8;
      continue;
    }
    if ((head.reserved & 1U) == 0) {
      head.body_crc = foretrace::crc32c(file.data() + at + sizeof head, head.bytes);
      head.head_crc = foretrace::crc32c(&head, offsetof(spool::ChunkHeader, head_crc));
      std::memcpy(file.data() + at, &head, sizeof head);
    }
    at += sizeof head + head.bytes / 8 * 8;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string path = file_of_this_process();
  std::string file(reinterpret_cast<const char*>(data), size);
  make_checksums_right(file);
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(file.data(), static_cast<std::streamsize>(file.size()));
  try {
    foretrace::from_ftrace(foretrace::to_ftrace(foretrace::read_spool(path)));
  } catch (const foretrace::TraceError&) {
  }
  return 0;
}

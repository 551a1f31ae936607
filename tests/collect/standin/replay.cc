// Delivers buffers that a collector dumped (FORETRACE_RAW): "FTRCRAW1", u32 version of CUPTI, u32
// 0, and entries {u32 type, u32 bytes, u64 address, bytes, zeros up to a multiple of 8}. An entry
// of type 1 is a text; records of later buffers point at it by this address. An entry of type 2 is
// a buffer.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "collect/standin/library.h"

namespace standin {

namespace {

using Texts = std::map<std::uint64_t, std::string>;

[[noreturn]] void reject(const char* what) {
  complain(what);
  std::abort();
}

/// Makes the pointer at `offset` of a record point at our copy of the text.
void point(std::uint8_t* record, std::size_t offset, const Texts& texts) {
  std::uint64_t address = 0;
  std::memcpy(&address, record + offset, sizeof address);
  const auto text = texts.find(address);
  const char* name = text == texts.end() ? nullptr : text->second.c_str();
  std::memcpy(record + offset, &name, sizeof name);
}

void point_all(std::uint8_t* record, std::uint32_t kind, std::size_t size, const Texts& texts) {
  if (kind == kConcurrentKernel) point(record, offsetof(KernelRecord, name), texts);
  if (kind == kDevice) point(record, offsetof(DeviceRecord, name), texts);
  if (kind == kName) point(record, offsetof(NameRecord, name), texts);
  if (kind == kMemory2) {
    point(record, offsetof(Memory2Record, name), texts);
    if (size > offsetof(Memory2Record, source))
      point(record, offsetof(Memory2Record, source), texts);
  }
  if (kind == kOverhead && size > offsetof(OverheadRecord, details))
    std::memset(record + offsetof(OverheadRecord, details), 0, sizeof(void*));
}

void replay_buffer(Activity& activity, std::uint8_t* buffer, std::size_t bytes, const Texts& texts,
                   std::uint32_t version) {
  std::uint8_t* record = nullptr;
  while (activity.next(buffer, bytes, &record) == 0) {
    std::uint32_t kind = 0;
    std::memcpy(&kind, record, sizeof kind);
    point_all(record, kind, record_bytes(kind, version), texts);
    activity.write(record);
  }
}

}  // namespace

void replay(Library& library) {
  std::ifstream file(library.faults.replay, std::ios::binary);
  std::string dump((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (dump.size() < 16 || dump.compare(0, 8, "FTRCRAW1") != 0) reject("no dump to replay");
  std::uint32_t version = 0;
  std::memcpy(&version, dump.data() + 8, sizeof version);
  library.faults.version = version;
  static auto* texts = new Texts;  // Names are read until the process ends.
  for (std::size_t at = 16; at + 16 <= dump.size();) {
    std::uint32_t type = 0;
    std::uint32_t bytes = 0;
    std::uint64_t address = 0;
    std::memcpy(&type, dump.data() + at, sizeof type);
    std::memcpy(&bytes, dump.data() + at + 4, sizeof bytes);
    std::memcpy(&address, dump.data() + at + 8, sizeof address);
    at += 16;
    if (bytes > dump.size() - at) reject("a dump is cut");
    // Records point at the first copy already.
    if (type == 1) texts->try_emplace(address, dump.substr(at, bytes));
    if (type == 2)
      replay_buffer(library.activity, reinterpret_cast<std::uint8_t*>(dump.data() + at), bytes,
                    *texts, version);
    at += (bytes + 7) / 8 * 8;
  }
}

}  // namespace standin

#include "collect/cupti/raw_dump.h"

#include <cstdlib>
#include <cstring>

namespace foretrace::collect {

struct RawDump::Entry {
  std::uint32_t type;  ///< 1 text, 2 buffer.
  std::uint32_t bytes;
  std::uint64_t address;
};

void RawDump::open(FileThread& files, const char* path, std::uint32_t version) {
  files_ = &files;
  path_ = path;
  const auto begin = [&] {
    const std::uint32_t head[2] = {version, 0};
    gather("FTRCRAW1", 8);
    gather(head, sizeof head);
  };
  files.run(
      begin,
      [](void* self) {
        auto& dump = *static_cast<RawDump*>(self);
        if (dump.file_.create(dump.path_) == 0) dump.write();
      },
      this, FileThread::Timeout::recorder);
}

void RawDump::add(const CuptiLibrary& cupti, std::uint8_t* buffer, std::size_t valid) {
  if (files_ == nullptr) return;
  const auto copy = [&] {
    cupti::Activity* record = nullptr;
    while (cupti.next_record(buffer, valid, &record) == cupti::kSuccess) {
      const char* name = nullptr;
      if (record->kind == cupti::Kind::concurrent_kernel)
        name = reinterpret_cast<const cupti::Kernel*>(record)->name;
      if (record->kind == cupti::Kind::device)
        name = reinterpret_cast<const cupti::Device*>(record)->name;
      if (name == nullptr) continue;
      gather_entry({1, static_cast<std::uint32_t>(std::strlen(name)),
                    reinterpret_cast<std::uintptr_t>(name)},
                   name);
    }
    gather_entry({2, static_cast<std::uint32_t>(valid), 0}, buffer);
  };
  files_->run(
      copy, [](void* self) { static_cast<RawDump*>(self)->write(); }, this,
      FileThread::Timeout::recorder);
}

void RawDump::gather_entry(const Entry& entry, const void* bytes) {
  static constexpr char kZeros[8] = {};
  gather(&entry, sizeof entry);
  gather(bytes, entry.bytes);
  gather(kZeros, (8 - entry.bytes % 8) % 8);
}

void RawDump::gather(const void* bytes, std::size_t size) {
  if (size_ + size > room_) {
    const std::size_t room = 2 * (size_ + size);
    auto* larger = static_cast<char*>(std::realloc(gathered_, room));
    if (larger == nullptr) return;
    gathered_ = larger;
    room_ = room;
  }
  std::memcpy(gathered_ + size_, bytes, size);
  size_ += size;
}

void RawDump::write() {
  if (file_.is_open() && file_.write_at(gathered_, size_, end_) == 0) end_ += size_;
  size_ = 0;
}

}  // namespace foretrace::collect

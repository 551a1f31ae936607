#pragma once

// Writes CUPTI's buffers unchanged, with the names that they point to, to a file that tests replay.

#include <cstddef>
#include <cstdint>

#include "collect/cupti/cupti_library.h"
#include "collect/runtime/file_thread.h"
#include "collect/runtime/recorder_file.h"

namespace foretrace::collect {

class RawDump {
 public:
  void open(FileThread& files, const char* path, std::uint32_t version);
  /// Writes a buffer. Does nothing unless a file is open.
  void add(const CuptiLibrary& cupti, std::uint8_t* buffer, std::size_t valid);

 private:
  struct Entry;
  void gather(const void* bytes, std::size_t size);
  void gather_entry(const Entry& entry, const void* bytes);
  void write();

  FileThread* files_ = nullptr;
  const char* path_ = nullptr;
  RecorderFile file_;
  std::uint64_t end_ = 0;
  char* gathered_ = nullptr;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace foretrace::collect

#pragma once

// A new file (base/files/new_file.h) that is written in small pieces, packed with gzip if its path
// ends in .gz. Unless it is closed, the old file stays as it was.

#include <memory>
#include <string>
#include <string_view>

namespace foretrace {

class PackedFile {
 public:
  /// Throws Error if the file cannot be written.
  explicit PackedFile(const std::string& path);
  PackedFile(const PackedFile&) = delete;
  PackedFile& operator=(const PackedFile&) = delete;
  ~PackedFile();

  /// Buffers up to a megabyte. Throws Error if the file cannot be written.
  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kFlushAt) flush();
  }
  /// Throws Error if anything could not be written.
  void close();

 private:
  static constexpr std::size_t kFlushAt = std::size_t{1} << 20;
  struct Sink;
  void flush();

  std::unique_ptr<Sink> sink_;
  std::string buffer_;
};

}  // namespace foretrace

#include "foretrace/packed_file.h"

#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "foretrace/error.h"

namespace foretrace {

/// Either of the two is open.
struct PackedFile::Sink {
  std::FILE* plain = nullptr;
  gzFile packed = nullptr;

  explicit Sink(const std::string& path) {
    // Level 3: twice as fast as the default, and 10 % larger.
    if (path.ends_with(".gz")) {
      packed = gzopen(path.c_str(), "wb3");
    } else {
      plain = std::fopen(path.c_str(), "wb");
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  ~Sink() { close(); }

  bool is_open() const { return plain != nullptr || packed != nullptr; }

  bool write(std::string_view bytes) {
    if (packed != nullptr) {
      return bytes.empty() ||
             gzwrite(packed, bytes.data(), static_cast<unsigned>(bytes.size())) > 0;
    }
    return std::fwrite(bytes.data(), 1, bytes.size(), plain) == bytes.size();
  }

  bool close() {
    bool good = true;
    if (packed != nullptr) good = gzclose(packed) == Z_OK;
    if (plain != nullptr) good = std::fclose(plain) == 0;
    packed = nullptr;
    plain = nullptr;
    return good;
  }
};

PackedFile::PackedFile(const std::string& path) : path_(path), sink_(std::make_unique<Sink>(path)) {
  if (!sink_->is_open()) throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

PackedFile::~PackedFile() {
  if (whole_) return;
  sink_->close();
  std::error_code ignored;  // A device, such as /dev/full, stays.
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
}

void PackedFile::flush() {
  if (!sink_->write(buffer_)) throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  buffer_.clear();
}

void PackedFile::close() {
  flush();
  if (!sink_->close()) throw Error("cannot write '" + path_ + "': " + std::strerror(errno));
  whole_ = true;
}

}  // namespace foretrace

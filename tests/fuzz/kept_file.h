#pragma once

// A file of this process alone, for readers that take a path.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

class KeptFile {
 public:
  explicit KeptFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("foretrace-fuzz-" + name + "-XXXXXX")) {
    ::close(::mkstemp(path_.data()));
  }
  ~KeptFile() { ::unlink(path_.c_str()); }
  KeptFile(const KeptFile&) = delete;
  KeptFile& operator=(const KeptFile&) = delete;

  void write(const std::uint8_t* data, std::size_t size) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

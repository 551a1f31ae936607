#pragma once

#include <sys/stat.h>

namespace foretrace::collect {

/// Identifies the file behind a descriptor. The number alone is not enough: the program may have
/// closed the descriptor, and a file of its own may have got the same number.
struct FileIdentity {
  bool known = false;  ///< False if the descriptor is not open or the path does not exist.
  dev_t device = 0;
  ino_t inode = 0;

  static FileIdentity of(int descriptor) {
    struct stat found {};
    if (descriptor < 0 || ::fstat(descriptor, &found) != 0) return {};
    return {true, found.st_dev, found.st_ino};
  }
  static FileIdentity at(const char* path) {
    struct stat found {};
    if (::lstat(path, &found) != 0) return {};
    return {true, found.st_dev, found.st_ino};
  }
  /// Whether both are the same file. Returns false if either is not known.
  bool is(const FileIdentity& other) const {
    return known && other.known && device == other.device && inode == other.inode;
  }
};

}  // namespace foretrace::collect
